"""Predicted lengths: the mean is near the truth, the bound covers what it says."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.routing.prediction import LengthPredictor, PredictionSettings
from kvpool.plan.sliding_window import SlidingWindow
from kvpool.sim.streams import Stream


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_bound_covers_the_stated_share_of_answers(alpha: float, seed: int) -> None:
    predictor = LengthPredictor(PredictionSettings(alpha=alpha))
    stream = Stream(seed)
    covered = total = 0
    for number in range(4000):
        truth = max(1, round(stream.lognormal(200, 0.8)))
        if number >= 500:
            total += 1
            covered += truth <= predictor.predict("chat", "").bound_tokens
        predictor.learn("chat", "", truth)
    assert covered / total == pytest.approx(1 - alpha, abs=0.02)


def test_the_mean_is_the_mean_and_not_the_median_of_a_skewed_length() -> None:
    predictor = LengthPredictor()
    stream = Stream(4)
    lengths = [max(1, round(stream.lognormal(200, 0.8))) for _ in range(3000)]
    means = []
    for length in lengths:
        means.append(predictor.predict("chat", "").mean_tokens)
        predictor.learn("chat", "", length)
    late = means[500:]
    assert sum(late) / len(late) == pytest.approx(sum(lengths) / len(lengths), rel=0.05)


def test_a_client_that_talks_longer_is_predicted_longer_and_a_new_one_like_its_class() -> None:
    predictor = LengthPredictor()
    for _ in range(60):
        predictor.learn("chat", "long", 2000)
        predictor.learn("chat", "short", 50)
    assert predictor.predict("chat", "long").mean_tokens > 20 * predictor.predict("chat", "short").mean_tokens
    new = predictor.predict("chat", "new").mean_tokens
    assert (
        predictor.predict("chat", "short").mean_tokens < new < predictor.predict("chat", "long").mean_tokens
    )


def test_before_enough_was_seen_the_bound_is_the_limit_of_the_engine() -> None:
    predictor = LengthPredictor(PredictionSettings(alpha=0.1, most_tokens=4096))
    for count in range(9):
        assert predictor.predict("chat", "").bound_tokens == 4096, count
        predictor.learn("chat", "", 100)
    assert predictor.predict("chat", "").bound_tokens < 4096


def test_the_newest_length_enters_by_a_twentieth_and_ratios_correct_the_mean() -> None:
    predictor = LengthPredictor(PredictionSettings(alpha=0.4))
    assert predictor.predict("chat", "").mean_tokens == 256
    predictor.learn("chat", "", 100)
    predictor.learn("chat", "", 200)
    # exp(log 100 + 0.05 * log 2) is 103.5; the ratios were 100 / 256 and 200 / 100.
    centre = 100 * 2**0.05
    assert predictor.predict("chat", "").mean_tokens == round(centre * (100 / 256 + 2) / 2)
    assert predictor.predict("chat", "").bound_tokens == math.ceil(centre * 2)


def test_only_the_last_ratios_count() -> None:
    predictor = LengthPredictor(PredictionSettings(smoothing=1.0, ratios=2))
    for length in (1, 100, 100, 100):
        predictor.learn("chat", "", length)
    assert predictor.predict("chat", "").mean_tokens == 100


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=60))
def test_a_prediction_is_within_its_limits_whatever_came_before(lengths: list[int]) -> None:
    predictor = LengthPredictor(PredictionSettings(most_tokens=4096))
    for length in lengths:
        predictor.learn("batch", "c", length)
    got = predictor.predict("batch", "c")
    assert 1 <= got.mean_tokens <= got.bound_tokens <= 4096


@given(st.lists(st.floats(0, 1e6), max_size=40), st.integers(1, 10))
def test_a_window_is_the_last_values_sorted(values: list[float], size: int) -> None:
    window = SlidingWindow(size)
    for value in values:
        window.add(value)
    last = sorted(values[-size:])
    assert len(window) == len(last)
    assert window.upper(0.5) == (last[-(-(len(last) + 1) // 2) - 1] if last else None)
    assert window.share_up_to(10.0) == (sum(one <= 10 for one in last) / len(last) if last else None)
