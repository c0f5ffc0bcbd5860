"""The completion-time increment, part by part, and the choice that follows from it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.routing.completion_time import CompletionTime, CompletionTimeSettings, increment
from kvpool.plan.timing.model import TimingModel
from tests.plan.routing.fleet import BATCH, CARD, INTERACTIVE, Seen, Sequence, ask

MS = 1_000_000
DEFAULTS = CompletionTimeSettings()


def test_each_part_of_the_increment_is_what_the_formula_says() -> None:
    here = Seen([Sequence(50, 900, 700), Sequence(500, 1900, 1200, BATCH)], backlog_ns=7 * MS)
    request = ask(prompt=1000, expected=200, overlaps=(400,), bytes_per_token=500_000)
    got = increment(request, 0, here, DEFAULTS)
    before = CARD.step_ns(2, 1900)
    after = CARD.step_ns(3, 1900 + 1000 + 100)
    assert got.arrive_ns == 7 * MS + here.link.transfer_ns(600 * 500_000)
    assert got.wait_ns == 0
    assert (got.step_before_ns, got.step_after_ns) == (before, after)
    assert got.own_ns == got.arrive_ns + 200 * after
    assert got.others_percent_ns == (after - before) * (100 * 50 + 50 * 200)
    assert got.penalty_percent_ns == 0
    assert got.score_percent_ns == 100 * got.own_ns + got.others_percent_ns


def test_a_request_without_room_waits_for_the_nearest_ends_that_free_enough() -> None:
    here = Seen(
        [Sequence(30, 600, 500), Sequence(80, 600, 500), Sequence(900, 600, 500)], capacity_tokens=2000
    )
    got = increment(ask(prompt=800, expected=100), 0, here, DEFAULTS)
    assert got.wait_ns == 80 * CARD.step_ns(3, 1500)


def test_reserving_uses_the_bound_and_time_uses_the_mean() -> None:
    here = Seen([Sequence(30, 600, 500)], capacity_tokens=2000)
    tight = increment(ask(prompt=800, expected=100, bound=700), 0, here, DEFAULTS)
    loose = increment(ask(prompt=800, expected=100, bound=600), 0, here, DEFAULTS)
    assert (tight.wait_ns > 0, loose.wait_ns) == (True, 0)
    assert tight.step_after_ns == loose.step_after_ns


def test_breaking_a_promise_costs_its_weight() -> None:
    slow = Seen(timing=replace(CARD, step_base_ns=70e6))
    kept = increment(ask(objective=BATCH), 0, slow, DEFAULTS)
    broken = increment(ask(objective=INTERACTIVE), 0, slow, DEFAULTS)
    assert kept.penalty_percent_ns == 0
    assert broken.penalty_percent_ns == 100 * DEFAULTS.own_break_ns


def test_the_promise_of_those_that_run_is_worth_something() -> None:
    edge = replace(CARD, step_base_ns=59.9e6, step_sequence_ns=200_000)
    here = Seen(
        [Sequence(30, 600, 0), Sequence(30, 600, 0, BATCH)], timing=replace(edge, step_base_ns=59.5e6)
    )
    got = increment(ask(prompt=1, expected=1, objective=BATCH), 0, here, DEFAULTS)
    assert got.step_before_ns <= INTERACTIVE.tpot_ns < got.step_after_ns
    assert got.penalty_percent_ns == DEFAULTS.others_break_ns * 100


def test_equal_scores_go_to_the_one_with_fewest_outstanding_then_to_the_first() -> None:
    alike = [Seen(waiting=2), Seen(waiting=1), Seen(waiting=1)]
    assert CompletionTime().choose(ask(), alike, 0) == 1


def test_a_faster_card_is_preferred_until_it_is_that_much_fuller() -> None:
    slow = replace(CARD, step_base_ns=40e6)
    crowd = [Sequence(400, 1000, 800)] * 40
    assert CompletionTime().choose(ask(), [Seen(timing=slow), Seen()], 0) == 1
    assert CompletionTime().choose(ask(), [Seen(timing=slow), Seen(crowd)], 0) == 0


def test_with_constants_that_see_no_load_it_cannot_tell_full_from_empty() -> None:
    blind = TimingModel(0, 0, 0, 20e6, 0, 0)
    full = Seen([Sequence(400, 100, 80)] * 40, timing=blind)
    empty = Seen(timing=blind)
    scores = [increment(ask(), 0, one, DEFAULTS).score_percent_ns for one in (full, empty)]
    assert scores[0] == scores[1]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(1, 900), st.integers(1, 4000))
def test_among_equal_cards_with_equal_sequences_the_emptiest_gets_the_request(
    counts: list[int], output: int, prompt: int
) -> None:
    pool = [Seen([Sequence(300, 10, 500)] * count) for count in counts]
    chosen = CompletionTime().choose(ask(prompt=prompt, expected=output), pool, 0)
    assert counts[chosen] == min(counts)
