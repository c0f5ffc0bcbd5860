"""Rates, splits and latencies of groups, in figures that can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf

import pytest

from kvpool.plan.ratio.demand import Promise, Shape, mean_prompt_tokens
from kvpool.plan.ratio.latency import Latencies, Latency, mean_wait
from kvpool.plan.ratio.rates import Impossible, Limit, Rates, Roles, mean_prefill_ns, rates
from kvpool.plan.ratio.recommendation import (
    Asked,
    Objective,
    Recommended,
    _spent,
    recommend,
    recommend_beside,
)
from kvpool.plan.ratio.split import Bounds, Split, best_split, splits
from kvpool.plan.timing.model import LinkModel, TimingModel
from tests.plan.ratio.groups import LONG, PROMISE, QWEN3_8B, QWEN3_32B

MS = 1_000_000
PLAIN = Roles(
    prefill=TimingModel(0, 1, 0, 0, 0, 0),
    decode=TimingModel(0, 0, 0, 10, 5, 0),
    link=LinkModel(0, 10**9),
    kv_bytes_per_token=1,
    decode_capacity_tokens=10**12,
)
"""A prompt token takes 1 ns, its way 1 ns, and a step 10 ns and 5 for each sequence."""
ONE = Shape(100, 1)
KINDS = (Shape(100, 1, weight=3), Shape(300, 1))


def rated(roles: Roles, promise: Promise, *shapes: Shape) -> Rates:
    found = rates(roles, shapes or (ONE,), promise)
    assert isinstance(found, Rates), found
    return found


def split_of(answer: Recommended | Impossible) -> Split:
    assert isinstance(answer, Recommended), answer
    return answer.split


def test_a_prompt_that_was_found_whole_is_a_request() -> None:
    assert Shape(5, 1, hit_tokens=5).hit_tokens == 5


def test_means_count_each_kind_as_often_as_it_comes() -> None:
    assert mean_prompt_tokens(KINDS) == 150
    assert mean_prefill_ns(PLAIN.prefill, KINDS) == 150


@pytest.mark.parametrize(("tpot_ns", "batch"), [(15, 1), (19, 1), (20, 2), (24, 2), (25, 3), (110, 20)])
def test_the_batch_is_the_largest_that_keeps_the_promise(tpot_ns: int, batch: int) -> None:
    found = rated(PLAIN, Promise(10**9, tpot_ns))
    assert (found.batch, found.step_ns, found.decode_limit) == (batch, 10 + 5 * batch, Limit.TRANSFER)


def test_one_sequence_has_to_keep_the_promise() -> None:
    answer = rates(PLAIN, (ONE,), Promise(10**9, 14))
    assert isinstance(answer, Impossible)
    assert answer.limit is Limit.TPOT


def test_a_step_that_does_not_grow_ends_the_search_somewhere() -> None:
    flat = replace(PLAIN, decode=TimingModel(0, 0, 0, 10, 0, 0))
    assert rated(flat, Promise(10**9, 10)).batch == 1 << 24


@pytest.mark.parametrize(("capacity", "fits"), [(202, True), (201, False)])
def test_one_sequence_has_to_fit_beside_the_one_on_its_way(capacity: int, *, fits: bool) -> None:
    answer = rates(replace(PLAIN, decode_capacity_tokens=capacity), (ONE,), Promise(10**9, 30))
    assert isinstance(answer, Rates) is fits


def test_a_batch_is_held_by_time_or_by_memory() -> None:
    narrow = replace(PLAIN, link=LinkModel(0, 10**15))
    by_time = rated(narrow, Promise(10**9, 30))
    assert (by_time.batch, by_time.decode_limit) == (4, Limit.TPOT)
    assert by_time.decode == pytest.approx(0.92 * 4 * 1e9 / 30)
    by_memory = rated(replace(narrow, decode_capacity_tokens=4 * 101), Promise(10**9, 30))
    assert (by_memory.batch, by_memory.decode_limit) == (3, Limit.DECODE_MEMORY)


@pytest.mark.parametrize(("ttft_ns", "kept"), [(360, True), (359, False)])
def test_a_first_token_takes_prefill_and_transfer_and_its_share_of_the_queue(
    ttft_ns: int, *, kept: bool
) -> None:
    answer = rates(PLAIN, (ONE,), Promise(ttft_ns, 30))
    assert isinstance(answer, Rates) is kept
    if isinstance(answer, Rates):
        assert answer.ttft_ns == 360
        assert answer.prefill == pytest.approx(0.9 * 1e9 / 100)


@pytest.mark.parametrize(("staged", "sent_ns"), [(0, 50 + 100), (1, 50 + 100), (4, (50 + 400) / 4)])
def test_hand_offs_that_are_sent_together_share_a_set_up(staged: int, sent_ns: float) -> None:
    roles = replace(PLAIN, link=LinkModel(50, 10**9), staged_sequences=staged)
    found = rated(roles, Promise(10**9, 1_000))
    assert found.decode_limit is Limit.TRANSFER
    assert found.decode == pytest.approx(1e9 / sent_ns)


def test_bounds_allow_what_lies_on_them() -> None:
    bounds = Bounds(Fraction(1, 2), Fraction(3, 1))
    asked = (Split(1, 2), Split(1, 3), Split(3, 1), Split(4, 1))
    assert [bounds.allow(split) for split in asked] == [True, False, True, False]


def test_splits_are_all_that_the_cards_give() -> None:
    assert Split(3, 2).cards(4, 5) == 22
    found = [(split.prefill, split.decode) for split in splits(2, 3, 9)]
    assert found == [(1, 1), (1, 2), (2, 1), (3, 1)]
    assert list(splits(2, 3, 4)) == []


def test_one_percent_is_not_worth_two_more_cards() -> None:
    assert best_split(1.0, 1.0, cards=200) == Split(99, 99)
    assert best_split(1.0, 1.0, cards=198) == Split(99, 99)


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_servers_wait_as_erlang_says(servers: int) -> None:
    offered = 0.8 * servers
    terms = [1.0]
    for number in range(1, servers + 1):
        terms.append(terms[-1] * offered / number)
    last = terms[-1] * servers / (servers - offered)
    all_busy = last / (sum(terms[:-1]) + last)
    assert mean_wait(offered, servers, 1.0) == pytest.approx(all_busy / (servers - offered))


def test_a_first_token_waits_by_how_much_prompts_differ() -> None:
    roles = replace(
        PLAIN,
        prefill=TimingModel(0, MS, 0, 0, 0, 0),
        decode=TimingModel(0, 0, 0, 10 * MS, 0, 0),
        link=LinkModel(5, 10**9),
        kv_bytes_per_token=2,
    )
    found = Latencies(roles, KINDS, 2_000).of(Split(1, 1))
    # 2 a second of 150 ms keep 0.3 busy; (3 * 100^2 + 300^2) / 4 over 150^2 is one and a third.
    wait_ns = 0.3 / 0.7 * (1 + 1 / 3) / 2 * 150 * MS
    assert found.ttft_ns == pytest.approx(wait_ns + 150 * MS + 300 + 5)
    assert found.tpot_ns == 10 * MS
    assert found.end_to_end_ns == found.ttft_ns + 10 * MS
    alike = Latencies(roles, (Shape(150, 1),), 2_000).of(Split(1, 1))
    assert alike.ttft_ns == pytest.approx(0.3 / 0.7 / 2 * 150 * MS + 150 * MS + 305)


@pytest.mark.parametrize(("capacity", "tpot_ns"), [(125, 1_250_000), (124, inf)])
def test_a_decode_batch_is_as_large_as_its_own_steps_make_it(capacity: int, tpot_ns: float) -> None:
    decode = TimingModel(0, 0, 0, 1_000_000, 100_000, 1_000)
    roles = replace(PLAIN, decode=decode, decode_capacity_tokens=capacity)
    # 100 a second of 10 tokens: B = 1,000 steps a second * (1 ms + 0.2 ms * B), so 1.25.
    found = Latencies(roles, (Shape(95, 10),), 100_000).of(Split(1, 1))
    assert found.tpot_ns == pytest.approx(tpot_ns)


def test_each_objective_weighs_its_own_time() -> None:
    found = Latency(ttft_ns=1, tpot_ns=2, end_to_end_ns=3)
    spent = {objective: _spent(found, objective) for objective in Objective}
    assert (spent[Objective.TTFT], spent[Objective.TPOT], spent[Objective.END_TO_END]) == (1, 2, 3)


def test_without_a_load_every_objective_is_throughput() -> None:
    for objective in Objective:
        assert split_of(recommend(QWEN3_8B, Asked((LONG,), PROMISE, objective))) == Split(3, 2)


def test_what_is_told_is_what_the_split_carries() -> None:
    best = recommend(QWEN3_8B, Asked((LONG,), PROMISE))
    assert isinstance(best, Recommended)
    assert best.carried == pytest.approx(min(3 * best.rates.prefill, 2 * best.rates.decode))
    assert f"3/2: prefill carries {3 * best.rates.prefill:.2f} requests a second" in best.text
    assert f"decode {2 * best.rates.decode:.2f}" in best.text
    many = recommend(QWEN3_8B, Asked((LONG,), PROMISE, bounds=Bounds(Fraction(4), Fraction(4))))
    assert isinstance(many, Recommended)
    assert many.carried == pytest.approx(many.rates.decode * many.split.decode)


def test_cards_that_are_free_are_weighed_for_each_card() -> None:
    asked = Asked((LONG,), PROMISE)
    # 6/2 carries a little more than 3/2, on 8 cards instead of 5.
    assert split_of(recommend_beside(Split(6, 2), QWEN3_8B, asked)) == Split(3, 2)
    assert split_of(recommend_beside(Split(14, 9), QWEN3_8B, asked)) == Split(14, 9)


def test_a_split_in_place_that_takes_more_cards_than_there_are_does_not_stay() -> None:
    asked = Asked((Shape(12_000, 343),), Promise(5_000 * MS, 40 * MS), cards=8)
    best = split_of(recommend(QWEN3_32B, asked))
    assert best == Split(6, 1)
    assert split_of(recommend_beside(Split(7, 1), QWEN3_32B, asked)) == Split(6, 1)
    assert split_of(recommend_beside(Split(6, 2), QWEN3_32B, replace(asked, cards=10))) != Split(5, 3)
    exact = recommend_beside(Split(12, 2), QWEN3_32B, replace(asked, cards=16))
    assert split_of(exact) == Split(12, 2)


def test_a_split_in_place_that_takes_all_cards_may_stay() -> None:
    # A decode instance takes two cards. 50/7 is the best; 48 instead of 50 prefill instances are 4 % less.
    asked = Asked((Shape(12_000, 343),), Promise(5_000 * MS, 40 * MS), cards=64)
    assert split_of(recommend(QWEN3_32B, asked)) == Split(50, 7)
    for current in (Split(48, 7), Split(48, 8)):
        assert split_of(recommend_beside(current, QWEN3_32B, asked)) == current
    assert split_of(recommend_beside(Split(48, 8), QWEN3_32B, replace(asked, cards=63))) != Split(48, 8)


def test_a_split_in_place_outside_the_bounds_does_not_stay() -> None:
    asked = Asked((LONG,), PROMISE, bounds=Bounds(Fraction(0), Fraction(3, 2)))
    assert split_of(recommend_beside(Split(14, 9), QWEN3_8B, asked)) == Split(3, 2)


def test_bounds_cost_something_when_a_card_outside_them_would_carry_more() -> None:
    def limited(ratio: Fraction) -> Limit:
        found = recommend(QWEN3_8B, Asked((LONG,), PROMISE, bounds=Bounds(ratio, ratio)))
        assert isinstance(found, Recommended)
        return found.limited_by

    assert limited(Fraction(1)) is Limit.RATIO_BOUNDS
    assert limited(Fraction(16, 7)) is Limit.RATIO_BOUNDS
    assert limited(Fraction(14, 9)) is not Limit.RATIO_BOUNDS
