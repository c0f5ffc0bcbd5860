"""Ratios of prefill to decode: published ones, what limits them, and how they move."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.ratio.demand import Promise, Shape, held_tokens, mean_output_tokens, running_context_tokens
from kvpool.plan.ratio.rates import Impossible, Limit, Rates, rates, staged_sequences
from kvpool.plan.ratio.recommendation import Asked, Objective, Recommended, recommend, recommend_beside
from kvpool.plan.ratio.split import EQUAL_SHARE, Bounds, Split, best_split, splits
from kvpool.plan.ratio.table import ratio_table
from kvpool.plan.timing.model import LinkModel
from tests.plan.ratio.groups import LONG, MS, OPT_13B, PROMISE, QWEN3_8B, QWEN3_32B, SECOND


def found(answer: Recommended | Impossible) -> Recommended:
    assert isinstance(answer, Recommended), answer
    return answer


def rated(answer: Rates | Impossible) -> Rates:
    assert isinstance(answer, Rates), answer
    return answer


def refused(answer: object) -> Impossible:
    assert isinstance(answer, Impossible), answer
    return answer


def test_sixteen_thousand_in_and_450_out_on_h200_want_three_to_two() -> None:
    best = found(recommend(QWEN3_8B, Asked((LONG,), PROMISE)))
    assert str(best.split) == "3/2"
    assert best.rates.prefill == pytest.approx(2.04, abs=0.01)
    assert best.rates.batch == 45
    assert best.rates.decode == pytest.approx(3.12, abs=0.02)
    assert best.limited_by is Limit.PREFILL_RATE
    assert best.rates.decode_limit is Limit.TPOT


@pytest.mark.parametrize("cards", [5, 10, 20])
def test_three_to_two_is_found_for_a_fixed_number_of_cards(cards: int) -> None:
    best = found(recommend(QWEN3_8B, Asked((LONG,), PROMISE, cards=cards)))
    assert best.split == Split(3 * cards // 5, 2 * cards // 5)


def test_distserve_has_two_to_one_for_512_in_and_64_out_on_three_cards() -> None:
    asked = Asked((Shape(512, 64),), Promise(400 * MS, 40 * MS), cards=3)
    assert str(found(recommend(OPT_13B, asked)).split) == "2/1"


def test_distserves_own_rates_give_its_ratio_and_its_rate_for_each_card() -> None:
    best = best_split(5.6, 10.0, cards=3)
    assert best == Split(2, 1)
    assert best.rate(5.6, 10.0) / 3 == pytest.approx(3.3, abs=0.04)


RATE = st.floats(0.01, 100)
RATIO = st.fractions(Fraction(1, 8), 8, max_denominator=8)


@given(
    st.tuples(RATE, RATE),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.none() | st.integers(1, 80),
    st.tuples(st.just(Fraction(0)) | RATIO, st.none() | RATIO),
)
def test_no_split_is_better_than_the_one_that_is_found(
    rate: tuple[float, float],
    each: tuple[int, int],
    cards: int | None,
    limits: tuple[Fraction, Fraction | None],
) -> None:
    bounds = Bounds(*limits)

    def worth(split: Split) -> float:
        return split.rate(*rate) / (split.cards(*each) if cards is None else 1)

    everything = list(splits(*each, cards, bounds))
    best = best_split(*rate, *each, cards, bounds)
    if best is None:
        assert everything == []
    else:
        enough = EQUAL_SHARE * max(map(worth, everything))
        able = [split for split in everything if worth(split) >= enough]
        assert best == min(able, key=lambda one: (one.cards(*each), -worth(one), one.prefill))


@pytest.mark.parametrize(("cards", "split"), [(8, "6/1"), (32, "24/4")])
@pytest.mark.parametrize("tpot_ms", [30, 40, 50])
def test_aiconfigurator_has_six_prefill_cards_for_one_decode_pair(
    tpot_ms: int, cards: int, split: str
) -> None:
    """12,000 in and 343 out, Qwen3-32B on 32 H200: 6 prefill of one card to 1 decode of two, four times."""
    asked = Asked((Shape(12_000, 343),), Promise(5 * SECOND, tpot_ms * MS), cards=cards)
    assert str(found(recommend(QWEN3_32B, asked)).split) == split


def test_half_of_every_prompt_found_in_caches_about_halves_the_prefill_instances() -> None:
    """Exactly half where attention is negligible; long prompts keep three quarters of the square part."""
    linear = replace(QWEN3_8B, prefill=replace(QWEN3_8B.prefill, prefill_base_ns=0.0, prefill_square_ns=0.0))
    for roles, least, most in ((linear, 2.0, 2.0), (QWEN3_8B, 1.6, 2.0)):
        without = rated(rates(roles, (Shape(8_000, 300),), PROMISE))
        half = rated(rates(roles, (Shape(8_000, 300, hit_tokens=4_000),), PROMISE))
        assert least - 1e-6 <= half.prefill / without.prefill <= most + 1e-6
        assert half.decode == without.decode
    none, some = (
        found(recommend(linear, Asked((Shape(8_000, 300, hit),), PROMISE))).split for hit in (0, 4_000)
    )
    assert Fraction(none.prefill, none.decode) == pytest.approx(
        2 * Fraction(some.prefill, some.decode), rel=0.1
    )


def test_the_table_moves_with_every_length_and_never_stands_still() -> None:
    cells = list(
        ratio_table(
            QWEN3_8B, Asked((), Promise(5 * SECOND, 40 * MS)), (1_000, 16_000), (100, 450, 2_000), (0, 50)
        )
    )
    ratios = {
        (cell.shape.prompt_tokens, cell.shape.output_tokens, 100 * cell.shape.hit_tokens): Fraction(
            found(cell.answer).split.prefill, found(cell.answer).split.decode
        )
        for cell in cells
    }
    for prompt in (1_000, 16_000):
        for hit in (0, 50 * prompt):
            by_output = [ratios[prompt, output, hit] for output in (100, 450, 2_000)]
            assert by_output == sorted(by_output, reverse=True)
            assert len(set(by_output)) == 3
        for output in (100, 450, 2_000):
            assert ratios[prompt, output, 50 * prompt] < ratios[prompt, output, 0]


def test_the_objective_decides_the_ratio() -> None:
    def split(objective: Objective) -> Split:
        asked = Asked((LONG,), PROMISE, objective, cards=5, requests_per_1000_seconds=3_000)
        return found(recommend(QWEN3_8B, asked)).split

    by_ttft, by_tpot = split(Objective.TTFT), split(Objective.TPOT)
    assert split(Objective.THROUGHPUT) == Split(3, 2)
    assert by_ttft == Split(4, 1)
    assert by_tpot == Split(2, 3)
    assert by_ttft.prefill >= split(Objective.END_TO_END).prefill >= by_tpot.prefill


def test_as_few_cards_as_the_load_needs_are_taken_when_their_number_is_free() -> None:
    asked = Asked((LONG,), PROMISE, Objective.END_TO_END, requests_per_1000_seconds=6_000)
    assert found(recommend(QWEN3_8B, asked)).split == Split(3, 2)


def test_what_stops_the_decode_batch_is_told() -> None:
    small = replace(QWEN3_8B, decode_capacity_tokens=200_000)
    by_memory = rated(rates(small, (LONG,), PROMISE))
    assert by_memory.decode_limit is Limit.DECODE_MEMORY
    assert by_memory.batch == 200_000 // 16_450 - 1
    slow = replace(QWEN3_8B, link=LinkModel(1 * MS, 10**9))
    patient = replace(PROMISE, ttft_ns=10 * SECOND)
    by_link = rated(rates(slow, (LONG,), patient))
    assert by_link.decode_limit is Limit.TRANSFER
    assert by_link.decode == pytest.approx(1 / (0.001 + 16_000 * 147_456 / 1e9))
    assert found(recommend(slow, Asked((LONG,), patient))).limited_by is Limit.TRANSFER


def test_room_for_hand_offs_is_taken_out_of_decode_memory() -> None:
    roles = replace(QWEN3_8B, decode_capacity_tokens=400_000)
    one = rated(rates(roles, (LONG,), PROMISE)).batch
    four = rated(rates(replace(roles, staged_sequences=4), (LONG,), PROMISE)).batch
    assert one - four == 3
    assert staged_sequences(400_000, 16_450, 20) == 4
    assert staged_sequences(400_000, 16_450, 30) == 0


def test_a_step_that_is_too_slow_for_one_sequence_is_told_with_the_difference() -> None:
    answer = refused(recommend(QWEN3_8B, Asked((LONG,), Promise(3 * SECOND, 5 * MS))))
    assert answer.limit is Limit.TPOT
    assert "0.8 ms more than the 5.0 ms promised" in answer.text


def test_a_first_token_that_comes_too_late_is_told_with_the_difference() -> None:
    answer = refused(recommend(QWEN3_8B, Asked((LONG,), Promise(800 * MS, 30 * MS))))
    assert answer.limit is Limit.TTFT
    assert "82.4 ms more than the 800.0 ms promised" in answer.text


def test_a_sequence_that_does_not_fit_is_told_with_the_tokens_that_lack() -> None:
    roles = replace(QWEN3_8B, decode_capacity_tokens=20_000)
    answer = refused(recommend(roles, Asked((LONG,), PROMISE)))
    assert answer.limit is Limit.DECODE_MEMORY
    assert "needs 12900 more" in answer.text


def test_too_few_cards_for_one_instance_of_each_are_told() -> None:
    answer = refused(recommend(QWEN3_32B, Asked((Shape(100, 100),), PROMISE, cards=2)))
    assert answer.limit is Limit.CARDS
    assert "takes 3 cards, 1 more than the 2" in answer.text


def test_a_load_that_nothing_carries_is_told_with_what_is_missing() -> None:
    asked = Asked((LONG,), PROMISE, Objective.END_TO_END, cards=5, requests_per_1000_seconds=7_000)
    answer = refused(recommend(QWEN3_8B, asked))
    assert answer.limit is Limit.CARDS
    assert "0.892 more" in answer.text


def test_bounds_keep_a_ratio_and_are_named_when_they_cost_something() -> None:
    bounds = Bounds(Fraction(1, 2), Fraction(1, 1))
    best = found(recommend(QWEN3_8B, Asked((LONG,), PROMISE, cards=10, bounds=bounds)))
    assert best.split == Split(5, 5)
    assert best.limited_by is Limit.RATIO_BOUNDS
    assert "1/2 to 1/1" in best.text
    wide = Bounds(Fraction(1, 2), Fraction(3, 1))
    assert found(recommend(QWEN3_8B, Asked((LONG,), PROMISE, cards=10, bounds=wide))).limited_by is (
        Limit.PREFILL_RATE
    )


def test_bounds_that_no_split_keeps_are_told() -> None:
    bounds = Bounds(Fraction(7, 1), None)
    answer = refused(recommend(QWEN3_8B, Asked((LONG,), PROMISE, cards=5, bounds=bounds)))
    assert answer.limit is Limit.RATIO_BOUNDS
    assert "7/1 to any" in answer.text


def test_a_ratio_in_place_stays_unless_another_is_five_percent_better() -> None:
    asked = Asked((LONG,), PROMISE, cards=40)
    best = found(recommend(QWEN3_8B, asked)).split
    near = Split(best.prefill - 1, best.decode)
    assert found(recommend_beside(near, QWEN3_8B, asked)).split == near
    assert found(recommend_beside(Split(36, 4), QWEN3_8B, asked)).split == best


def test_means_over_kinds_count_long_answers_by_the_steps_they_run() -> None:
    shapes = (Shape(100, 10, weight=3), Shape(1_000, 90))
    assert mean_output_tokens(shapes) == 30
    assert running_context_tokens(shapes) == round((30 * 105 + 90 * 1_045) / 120)
    assert held_tokens(shapes) == -(-(30 * 110 + 90 * 1_090) // 120)


@pytest.mark.parametrize("shape", [(0, 1, 0, 1), (1, 0, 0, 1), (5, 5, 6, 1), (5, 5, 0, 0)])
def test_requests_that_cannot_be_are_refused(shape: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"prompt|hit"):
        Shape(*shape)


@given(st.floats(0.1, 50), st.floats(0.1, 50), st.integers(1, 4), st.integers(1, 4), st.integers(8, 24))
def test_no_split_of_the_same_cards_carries_over_one_percent_more(
    prefill: float, decode: float, prefill_cards: int, decode_cards: int, cards: int
) -> None:
    best = best_split(prefill, decode, prefill_cards, decode_cards, cards)
    assert best is not None
    assert best.cards(prefill_cards, decode_cards) <= cards
    carried = best.rate(prefill, decode)
    for n in range(1, cards):
        for m in range(1, cards):
            if n * prefill_cards + m * decode_cards <= cards:
                assert 0.99 * min(n * prefill, m * decode) <= carried * (1 + 1e-12)


@given(st.integers(1, 60_000), st.integers(1, 4_000), st.integers(6, 200), st.integers(20_000, 2_000_000))
def test_the_largest_batch_keeps_the_promise_and_one_more_would_not(
    prompt: int, output: int, tpot_ms: int, capacity: int
) -> None:
    roles = replace(QWEN3_8B, decode_capacity_tokens=capacity)
    shape = Shape(prompt, output)
    answer = rates(roles, (shape,), Promise(1_000 * SECOND, tpot_ms * MS))
    if isinstance(answer, Impossible):
        return
    context = running_context_tokens((shape,))
    held = prompt + output
    assert answer.step_ns <= tpot_ms * MS
    assert (answer.batch + 1) * held <= capacity
    more = answer.batch + 1
    assert roles.decode.step_ns(more, more * context) > tpot_ms * MS or (more + 1) * held > capacity
