"""Fits, curves and intervals, in figures that can be worked out by hand or at once."""

from __future__ import annotations

from fractions import Fraction
from math import comb, inf, sqrt

import pytest

from kvpool.plan.calibration.constants import Calibration, Constant, Source
from kvpool.plan.calibration.document import from_document, to_document
from kvpool.plan.calibration.drift import Drift
from kvpool.plan.calibration.least_squares import Fit, RecursiveLeastSquares
from kvpool.plan.calibration.sensitivity import Swing
from kvpool.plan.calibration.small_matrices import condition
from kvpool.plan.calibration.spread import _rank, quantile
from kvpool.plan.calibration.transfer_curve import Point, TransferCurve, fit_curve
from kvpool.plan.timing.model import LinkModel


def fitted(values: list[float], forgetting: float = 1.0) -> Fit:
    """A line through values at 0, 1, 2, ..."""
    line = RecursiveLeastSquares(2, forgetting)
    for place, value in enumerate(values):
        line.add((1.0, float(place)), value)
    return line.fit()


def test_a_line_through_four_points_is_that_of_the_textbook() -> None:
    found = fitted([1, 3, 2, 5])
    assert found.constants == pytest.approx((1.1, 1.1))
    # Residuals -0.1, 0.8, -1.3 and 0.6 make 2.7, of 8.75 around the mean.
    assert found.r_squared == pytest.approx(1 - 2.7 / 8.75)
    variance = 2.7 / (4 - 2)
    assert found.half_widths == pytest.approx(
        (1.96 * sqrt(variance * (1 / 4 + 1.5**2 / 5)), 1.96 * sqrt(variance / 5))
    )
    assert found.samples == 4


def test_samples_that_fade_count_by_their_weight() -> None:
    values, keep = [1.0, 3.0, 2.0, 5.0, 4.0], 0.8
    weights = [keep**age for age in (4, 3, 2, 1, 0)]
    found, total = fitted(values, keep), sum(weights)
    middle = sum(weight * place for place, weight in enumerate(weights)) / total
    mean = sum(weight * value for weight, value in zip(weights, values, strict=True)) / total
    wide = sum(weight * (place - middle) ** 2 for place, weight in enumerate(weights))
    line = [found.constants[0] + found.constants[1] * place for place in range(5)]
    missed = sum(w * (value - at) ** 2 for w, value, at in zip(weights, values, line, strict=True))
    around = sum(w * (value - mean) ** 2 for w, value in zip(weights, values, strict=True))
    assert found.r_squared == pytest.approx(1 - missed / around)
    effective = total**2 / sum(weight**2 for weight in weights)
    variance = missed / total * effective / (effective - 2)
    assert found.half_widths[1] == pytest.approx(1.96 * sqrt(variance * total / wide / effective))


def test_values_that_never_change_are_explained_by_nothing() -> None:
    found = fitted([5, 5, 5, 5])
    assert found.constants == pytest.approx((5, 0))
    assert found.r_squared == 0.0


def test_two_samples_fit_a_line_of_which_nothing_is_sure() -> None:
    assert fitted([1, 3]).half_widths == (inf, inf)
    assert fitted([1, 3, 4]).half_widths != (inf, inf)


def test_what_cannot_be_told_apart_has_no_constants() -> None:
    line = RecursiveLeastSquares(2)
    for _ in range(3):
        line.add((1.0, 2.0), 7.0)
    assert line.fit() == Fit((0.0, 0.0), (inf, inf), 0.0, inf, 3)


def test_a_condition_is_the_largest_eigenvalue_over_the_smallest() -> None:
    assert condition([[2.0, 0.0], [0.0, 8.0]]) == pytest.approx(4.0)
    assert condition([[5.0, 3.0], [3.0, 5.0]]) == pytest.approx(4.0)


@pytest.mark.parametrize("count", range(1, 31))
def test_as_many_samples_lie_outside_the_interval_as_one_in_twenty_allows(count: int) -> None:
    def misses(outside: int) -> Fraction:
        return 2 * Fraction(sum(comb(count, fewer) for fewer in range(outside)), 2**count)

    # Between the k-th smallest and the k-th largest; without an interval, from the first to the last.
    most = max((k for k in range(1, count // 2 + 1) if misses(k) <= Fraction(1, 20)), default=1)
    assert _rank(count) == most - 1


def test_a_quantile_lies_on_the_line_between_its_neighbours() -> None:
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    assert [quantile([0, 10, 30], share) for share in shares] == [0, 5, 10, 20, 30]


def point(size_bytes: int, spent_ns: int) -> Point:
    return Point(size_bytes, spent_ns, spent_ns, spent_ns, 1)


def test_a_curve_goes_straight_from_point_to_point_and_on_at_its_rate() -> None:
    curve = TransferCurve((point(100, 1_000), point(300, 2_000), point(400, 5_000)), LinkModel(7, 10**9), 0.0)
    asked = (0, -1, 50, 100, 150, 200, 300, 350, 400, 450)
    assert [curve.transfer_ns(size) for size in asked] == [
        *(0, 0, 1_000, 1_000, 1_250, 1_500, 2_000, 3_500, 5_000),
        5_000 + 50,
    ]


def test_a_line_is_fitted_to_relative_errors_whatever_the_order_of_its_points() -> None:
    points = [point(400, 3_000), point(100, 1_000), point(200, 1_300)]
    # Each equation is divided by its time: setup / t + size / t * slope = 1.
    setups = [Fraction(1, one.spent_ns) for one in points]
    slopes = [Fraction(one.size_bytes, one.spent_ns) for one in points]
    aa, bb = sum(a * a for a in setups), sum(b * b for b in slopes)
    ab = sum(a * b for a, b in zip(setups, slopes, strict=True))
    whole = aa * bb - ab * ab
    setup, slope = (
        (sum(setups) * bb - sum(slopes) * ab) / whole,
        (sum(slopes) * aa - sum(setups) * ab) / whole,
    )
    curve = fit_curve(points)
    assert curve.line == LinkModel(round(setup), round(10**9 / slope))
    assert [one.size_bytes for one in curve.points] == [100, 200, 400]
    missed = [abs(curve.line.transfer_ns(one.size_bytes) / one.spent_ns - 1) for one in points]
    assert curve.worst_error == pytest.approx(max(missed))


def test_without_a_set_up_time_the_rate_is_fitted_to_relative_errors_too() -> None:
    # A line would begin at -300 ns. sum(n / t) is 1.4, and sum((n / t)^2) is 1.16.
    curve = fit_curve([point(100, 100), point(200, 500)])
    assert curve.line == LinkModel(0, round(10**9 * 1.16 / 1.4))


def test_a_rate_below_a_byte_a_second_is_one() -> None:
    assert fit_curve([point(1, 10**10), point(2, 2 * 10**10)]).line.bytes_per_second == 1


def test_a_document_keeps_every_figure_of_a_curve() -> None:
    curve = TransferCurve((Point(1, 20, 10, 30, 4), Point(2, 25, 24, 26, 5)), LinkModel(7, 9), 0.1235)
    constant = Constant("link", "bytes/s", Source.MEASURED, 9.0, 8.0, 10.0, 9, "copied", "", curve)
    calibration = Calibration("2026-01-01T00:00:00Z", {"card": "none"}, (constant,))
    assert from_document(to_document(calibration)) == calibration


def test_drift_is_smoothed_by_three_tenths_and_begins_above_its_limit() -> None:
    just = Drift().after_window(10, 100)
    assert (just.error, just.windows_above) == (0.1, 0)
    assert just.after_window(20, 100).error == pytest.approx(0.13)
    assert just.after_window(20, 100).windows_above == 1
    assert Drift().after_window(1, 1).error == 1.0


@pytest.mark.parametrize(
    ("halved", "as_it_is", "doubled", "width"),
    [(5, 10, 30, 2.0), (-10, 10, 11, 2.0), (8, -10, -10, 1.8), (1, 0, 0, inf), (0, 0, 0, 0.0)],
)
def test_a_swing_is_as_wide_as_its_larger_change(
    halved: float, as_it_is: float, doubled: float, width: float
) -> None:
    assert Swing("x", halved, as_it_is, doubled).width == width
