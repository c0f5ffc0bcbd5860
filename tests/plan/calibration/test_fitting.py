"""Fitting constants: known ones come back, old samples fade, and what cannot be told apart is said."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.calibration.acceptance import Hardware, Rule, refusals_of_prefill, refusals_of_step
from kvpool.plan.calibration.drift import Drift
from kvpool.plan.calibration.least_squares import Fit, RecursiveLeastSquares
from kvpool.plan.calibration.models import PrefillSample, ServingFit, StepSample, timing_of
from kvpool.plan.calibration.sensitivity import sensitivity
from kvpool.plan.calibration.small_matrices import condition, eigen, inverse, times
from kvpool.plan.timing.model import TimingModel
from kvpool.sim.streams import Stream

MS = 1_000_000
H200 = TimingModel(2.21 * MS, 0.01949 * MS, 5.00e-7 * MS, 5.31 * MS, 0.0079 * MS, 3.27e-5 * MS)
HARDWARE = Hardware(4_800 * 10**9, 989 * 10**12, kv_bytes_per_token=147_456, active_parameters=8_000_000_000)


def served(timing: TimingModel, count: int, noise: float, seed: int = 1) -> ServingFit:
    """An engine that was watched for `count` steps and prefills, with relative noise."""
    fit, draw = ServingFit(), Stream(seed)
    for _ in range(count):
        running = 1 + draw.below(64)
        kv_tokens = running * (200 + draw.below(16_000))
        spent = timing.step_ns(running, kv_tokens) * (1 + noise * draw.normal())
        fit.add_step(StepSample(running, kv_tokens, round(spent)))
        prompt = 100 + draw.below(30_000)
        hit = draw.below(prompt) if draw.below(2) else 0
        spent = timing.prefill_ns(prompt, hit) * (1 + noise * draw.normal())
        fit.add_prefill(PrefillSample(prompt, hit, round(spent)))
    return fit


def test_constants_come_back_from_samples_without_noise() -> None:
    fit = served(H200, 200, noise=0.0)
    found = timing_of(fit.prefill(), fit.step())
    for name in H200.__dataclass_fields__:
        assert getattr(found, name) == pytest.approx(getattr(H200, name), rel=2e-3), name
    assert refusals_of_step(fit.step(), HARDWARE) == ()
    assert refusals_of_prefill(fit.prefill(), HARDWARE) == ()


def test_with_noise_true_constants_lie_in_about_95_of_100_intervals() -> None:
    inside = total = 0
    for seed in range(60):
        step = served(H200, 150, noise=0.02, seed=seed).step()
        truth = (H200.step_base_ns, H200.step_sequence_ns, H200.step_token_ns)
        for value, half, true in zip(step.constants, step.half_widths, truth, strict=True):
            inside += abs(value - true) <= half
            total += 1
    assert 0.80 <= inside / total <= 1.0


def test_old_samples_fade_so_that_a_slower_engine_is_believed() -> None:
    slower = TimingModel(*(1.5 * getattr(H200, name) for name in H200.__dataclass_fields__))
    fit, draw = ServingFit(), Stream(2)
    for timing, count in ((H200, 500), (slower, 700)):
        for _ in range(count):
            running = 1 + draw.below(64)
            kv_tokens = running * (200 + draw.below(16_000))
            fit.add_step(StepSample(running, kv_tokens, timing.step_ns(running, kv_tokens)))
    assert fit.step().constants[2] == pytest.approx(slower.step_token_ns, rel=0.01)


def test_recursive_sums_give_what_weighted_least_squares_gives_at_once() -> None:
    draw = Stream(5)
    samples = [((1.0, 10 * draw.uniform()), 3 + 10 * draw.uniform()) for _ in range(40)]
    fitted = RecursiveLeastSquares(2)
    for features, value in samples:
        fitted.add(features, value)
    weights = [0.99 ** (len(samples) - 1 - index) for index in range(len(samples))]
    s0 = sum(weights)
    sx = sum(w * f[1] for w, (f, _) in zip(weights, samples, strict=True))
    sy = sum(w * y for w, (_, y) in zip(weights, samples, strict=True))
    sxx = sum(w * f[1] ** 2 for w, (f, _) in zip(weights, samples, strict=True))
    sxy = sum(w * f[1] * y for w, (f, y) in zip(weights, samples, strict=True))
    slope = (s0 * sxy - sx * sy) / (s0 * sxx - sx * sx)
    assert fitted.fit().constants == pytest.approx(((sy - slope * sx) / s0, slope))


def test_a_batch_that_never_varies_tells_no_constants_apart() -> None:
    fit = ServingFit()
    for _ in range(100):
        fit.add_step(StepSample(32, 64_000, 9 * MS))
    step = fit.step()
    assert step.condition == inf
    (refusal,) = refusals_of_step(step, HARDWARE)
    assert refusal.rule is Rule.CONDITION
    assert "vary batch and context" in refusal.text


def test_contexts_that_grow_with_the_batch_do_not_tell_them_apart_either() -> None:
    fit = ServingFit()
    for running in range(1, 101):
        fit.add_step(StepSample(running, 1_000 * running, H200.step_ns(running, 1_000 * running)))
    assert [refusal.rule for refusal in refusals_of_step(fit.step(), HARDWARE)] == [Rule.CONDITION]


def good(**changes: object) -> Fit:
    values: dict[str, object] = {
        "constants": (5.31 * MS, 7_900.0, 32.7),
        "half_widths": (1.0, 1.0, 1.0),
        "r_squared": 0.99,
        "condition": 100.0,
        "samples": 500,
    }
    return Fit(**{**values, **changes})  # type: ignore[arg-type]  # fields by name, of the types above


@pytest.mark.parametrize(
    ("changes", "rule", "words"),
    [
        ({"samples": 12}, Rule.SAMPLES, "12 decode samples, of at least 30"),
        ({"r_squared": 0.9}, Rule.EXPLAINED, "90.0 %"),
        ({"condition": 1e6}, Rule.CONDITION, "not below 1e+06"),
        ({"constants": (-1.0, 7_900.0, 32.7)}, Rule.NOT_NEGATIVE, "step_base_ns is -1"),
        ({"constants": (5.0, 7_900.0, 30.0)}, Rule.PHYSICAL, "0.72 ns less than a token needs"),
    ],
)
def test_each_rule_refuses_with_its_reason(changes: dict[str, object], rule: Rule, words: str) -> None:
    (refusal,) = refusals_of_step(good(**changes), HARDWARE)
    assert refusal.rule is rule
    assert words in refusal.text


@pytest.mark.parametrize(
    "changes",
    [
        {"samples": 30},
        {"r_squared": 0.901},
        {"condition": 0.999e6},
        {"constants": (0.0, 7_900.0, 32.7)},
        # Reading 147,456 bytes at 4.8 TB/s.
        {"constants": (5.0, 7_900.0, 30.72)},
    ],
)
def test_what_just_keeps_a_rule_is_accepted(changes: dict[str, object]) -> None:
    assert refusals_of_step(good(**changes), HARDWARE) == ()


def test_constants_that_cannot_be_told_apart_are_not_judged_one_by_one() -> None:
    for constants in ((-1.0, 7_900.0, 32.7), (5.0, 7_900.0, 30.0)):
        refusals = refusals_of_step(good(condition=1e6, constants=constants), HARDWARE)
        assert [refusal.rule for refusal in refusals] == [Rule.CONDITION]


@pytest.mark.parametrize(
    ("token_ns", "rule"), [(0.0, Rule.PHYSICAL), (0.5, Rule.PHYSICAL), (-0.5, Rule.NOT_NEGATIVE)]
)
def test_a_constant_is_refused_for_its_sign_or_for_its_speed(token_ns: float, rule: Rule) -> None:
    (refusal,) = refusals_of_step(good(constants=(5.0, 7_900.0, token_ns)), HARDWARE)
    assert refusal.rule is rule


def test_prefill_cannot_be_faster_than_the_products_it_takes() -> None:
    floor_ns = 2 * 8e9 / 989e12 * 1e9
    fast = good(constants=(2.0 * MS, floor_ns * 0.9, 0.5))
    (refusal,) = refusals_of_prefill(fast, HARDWARE)
    assert refusal.rule is Rule.PHYSICAL
    assert "prefill_token_ns" in refusal.text
    assert refusals_of_prefill(good(constants=(2.0 * MS, floor_ns * 1.1, 0.5)), HARDWARE) == ()


def test_drift_makes_a_calibration_invalid_after_five_windows_and_not_before() -> None:
    drift = Drift()
    for _ in range(4):
        drift = drift.after_window(residuals_ns=15, measured_ns=100)
        assert not drift.invalid
    drift = drift.after_window(15, 100)
    assert drift.invalid
    for _ in range(20):
        drift = drift.after_window(0, 100)
    assert drift.invalid


def test_one_bad_window_among_good_ones_is_no_drift() -> None:
    drift = Drift()
    for window in range(50):
        drift = drift.after_window(12 if window % 5 == 0 else 5, 100)
    assert not drift.invalid
    assert drift.windows_above == 0


def test_a_window_without_samples_says_nothing() -> None:
    drift = Drift().after_window(30, 100)
    assert drift.after_window(0, 0) == drift


def test_eigenvalues_of_a_known_matrix() -> None:
    values, _ = eigen([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    assert sorted(values) == pytest.approx([2 - 2**0.5, 2.0, 2 + 2**0.5])
    assert condition([[1.0, 0.0], [0.0, 4.0]]) == pytest.approx(4.0)
    assert condition([[1.0, 1.0], [1.0, 1.0]]) == inf


@given(st.lists(st.lists(st.floats(-5, 5), min_size=3, max_size=3), min_size=4, max_size=8))
def test_a_matrix_times_its_inverse_is_one(rows: list[list[float]]) -> None:
    gram = [[sum(row[i] * row[j] for row in rows) + (i == j) for j in range(3)] for i in range(3)]
    inverted = inverse(gram)
    for index in range(3):
        unit = times(gram, [inverted[row][index] for row in range(3)])
        assert unit == pytest.approx([float(row == index) for row in range(3)], abs=1e-8)


def test_sensitivity_halves_and_doubles_each_constant_and_puts_the_widest_first() -> None:
    swings = sensitivity(lambda c: 10 / c["slow"] + c["small"] / 10, {"small": 1.0, "slow": 1.0})
    assert [swing.name for swing in swings] == ["slow", "small"]
    assert (swings[0].halved, swings[0].as_it_is, swings[0].doubled) == (20.1, 10.1, 5.1)
    assert swings[0].width == pytest.approx(10 / 10.1)
