"""Curves of transfers, constants with provenance, and the documents they are kept in."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.calibration.constants import Calibration, Constant, Source, from_fit
from kvpool.plan.calibration.document import from_document, to_document
from kvpool.plan.calibration.spread import spread_of
from kvpool.plan.calibration.transfer_curve import Point, fit_curve
from kvpool.plan.timing.model import LinkModel

KIB, MIB = 1 << 10, 1 << 20
SIZES = (64 * KIB, MIB, 16 * MIB, 256 * MIB)


def points(time_ns: Callable[[int], int]) -> list[Point]:
    return [Point(size, time_ns(size), time_ns(size), time_ns(size), 5) for size in SIZES]


@given(st.integers(1_000, 5_000_000), st.integers(10**8, 10**12))
def test_a_line_comes_back_from_its_own_points(setup_ns: int, bytes_per_second: int) -> None:
    truth = LinkModel(setup_ns, bytes_per_second)
    curve = fit_curve(points(truth.transfer_ns))
    assert curve.line.bytes_per_second == pytest.approx(bytes_per_second, rel=0.01)
    assert curve.line.setup_ns == pytest.approx(setup_ns, rel=0.02, abs=20)
    assert curve.worst_error < 0.01


def test_answers_come_from_the_points_where_the_line_misses_them() -> None:
    def cached(size: int) -> int:
        return LinkModel(1_000, 40 * 10**9 if size <= MIB else 8 * 10**9).transfer_ns(size)

    curve = fit_curve(points(cached))
    assert curve.worst_error > 0.3
    for size in SIZES:
        assert curve.transfer_ns(size) == cached(size)
    between = curve.transfer_ns(8 * MIB)
    assert cached(MIB) < between < cached(16 * MIB)
    beyond = curve.transfer_ns(512 * MIB) - cached(256 * MIB)
    assert beyond == pytest.approx(256 * MIB * 1e9 / curve.line.bytes_per_second, rel=1e-6)
    assert curve.transfer_ns(1) == cached(64 * KIB)
    assert curve.transfer_ns(0) == 0


def test_a_set_up_time_below_zero_becomes_zero() -> None:
    curve = fit_curve([Point(MIB, 1_000, 1_000, 1_000, 1), Point(2 * MIB, 4_000, 4_000, 4_000, 1)])
    assert curve.line.setup_ns == 0
    assert curve.line.bytes_per_second > 0


def test_one_size_gives_no_line_and_neither_do_equal_times() -> None:
    with pytest.raises(ValueError, match="at least two sizes"):
        fit_curve([Point(MIB, 5, 5, 5, 1)])
    with pytest.raises(ValueError, match="no rate"):
        fit_curve([Point(MIB, 5_000, 5, 5, 1), Point(2 * MIB, 5_000, 5, 5, 1)])


def calibration() -> Calibration:
    curve = fit_curve(points(LinkModel(2_000, 10**10).transfer_ns))
    return Calibration(
        "2026-11-30T08:00:00Z",
        {"processors": "2", "driver": "none"},
        (
            Constant(
                "host.memory.node0.copy",
                "bytes/s",
                Source.MEASURED,
                1e10,
                9e9,
                1.1e10,
                7,
                "copies",
                curve=curve,
            ),
            Constant("card.memory.read", "bytes/s", Source.DATA_SHEET, 4.8e12, method="data sheet of H200"),
            Constant("card.copy.in", "bytes/s", Source.NOT_MEASURED, reason="no accelerator here"),
            *from_fit(("step_base_ns",), (5.0e6,), (1.0e4,), 400, "decode steps of one engine"),
        ),
    )


def test_a_document_comes_back_as_the_calibration_it_was() -> None:
    assert from_document(to_document(calibration())) == calibration()


def test_values_are_found_by_name_and_unknown_ones_are_none() -> None:
    found = calibration()
    assert found.value("host.memory.node0.copy") == 1e10
    assert found.value("card.copy.in") is None
    assert found.value("nothing") is None
    assert (found.constants[3].low, found.constants[3].high) == (4.99e6, 5.01e6)


@pytest.mark.parametrize(("value", "source"), [(None, Source.MEASURED), (1.0, Source.NOT_MEASURED)])
def test_a_figure_that_nobody_stands_behind_is_refused(value: float | None, source: Source) -> None:
    with pytest.raises(ValueError, match="source"):
        Constant("x", "ns", source, value)


def change(path: tuple[str | int, ...], value: object) -> object:
    document: Any = dict(to_document(calibration()))
    at = document
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (None, "the document"),
        ([], "the document"),
        (change(("format",), "kvpool-calibration/9"), "kvpool-calibration/9"),
        (change(("constants", 0, "value"), "fast"), "constants.0.value"),
        (change(("constants", 0, "worth"), 1.0), "constants.0.worth"),
        (change(("constants", 0, "source"), "Guess"), "constants.0.source"),
        (change(("constants", 2, "value"), 1.0), "card.copy.in"),
        (change(("constants", 0, "curve", "bytes_per_second"), 0), "curve.bytes_per_second"),
    ],
)
def test_a_document_that_is_none_is_refused_by_field(document: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_document(document)


def test_a_median_lies_between_the_ranks_that_the_binomial_gives() -> None:
    def interval(count: int) -> tuple[float, float, float]:
        found = spread_of([float(value) for value in range(1, count + 1)])
        return found.low, found.median, found.high

    assert interval(1) == (1, 1, 1)
    assert interval(5) == (1, 3, 5)
    assert interval(6) == (1, 3.5, 6)
    assert interval(10) == (2, 5.5, 9)
    assert interval(100) == (40, 50.5, 61)
    low, _, high = interval(5_000)
    assert (high - low) / 5_000 == pytest.approx(2 * 1.96 / 2 / 5_000**0.5, rel=0.02)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=120))
def test_a_spread_holds_its_median_whatever_order_samples_come_in(values: list[float]) -> None:
    found = spread_of(values)
    assert found.low <= found.median <= found.high
    assert found == spread_of(values[::-1])
