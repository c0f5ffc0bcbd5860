"""What a request adds, and what follows for the choice, in figures that can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.plan.routing.completion_time import CompletionTimeSettings, increment
from kvpool.plan.routing.network_aware import NetworkAware
from kvpool.plan.routing.preble import ExploitExplore
from kvpool.plan.routing.views import Objective
from kvpool.plan.timing.model import LinkModel, TimingModel
from tests.plan.routing.fleet import Seen, Sequence, ask

TEN = TimingModel(0, 1, 0, 10, 0, 0)
"""A step takes 10 ns whatever runs, and a prompt token 1 ns."""
WIRE = LinkModel(0, 10**9)
"""A byte a nanosecond."""
LATE = Objective(10**12, 10**12, 100)


def full(backlog_ns: int = 0) -> Seen:
    """An instance that has room again after 3 steps, which is 30 ns."""
    return Seen([Sequence(3, 1_000, 0)], 1_000, TEN, WIRE, backlog_ns)


def free(timing: TimingModel = TEN, *, backlog_ns: int = 0, waiting: int = 0) -> Seen:
    return Seen(timing=timing, link=WIRE, backlog_ns=backlog_ns, waiting=waiting)


def test_a_request_arrives_waits_and_then_takes_a_step_for_each_token() -> None:
    got = increment(ask(10, 11, objective=LATE), 0, full(backlog_ns=70), CompletionTimeSettings())
    assert (got.arrive_ns, got.wait_ns, got.own_ns) == (70, 30, 70 + 30 + 11 * 10)
    assert got.score_percent_ns == 100 * got.own_ns


@pytest.mark.parametrize(("tpot_ns", "broken"), [(20, 0), (19, 1)])
def test_the_way_and_the_wait_are_spread_over_all_tokens_but_the_first(tpot_ns: int, broken: int) -> None:
    # (70 + 30) over 10 tokens, and 10 for each step.
    request = ask(10, 11, objective=Objective(10**12, tpot_ns, 100))
    got = increment(request, 0, full(backlog_ns=70), CompletionTimeSettings(own_break_ns=7))
    assert got.penalty_percent_ns == 700 * broken
    assert got.score_percent_ns == 100 * got.own_ns + 700 * broken


@pytest.mark.parametrize(("tpot_ns", "broken"), [(110, 0), (109, 1)])
def test_an_answer_of_one_token_bears_them_alone(tpot_ns: int, broken: int) -> None:
    for expected in (0, 1, 2):
        request = ask(10, expected, 1, objective=Objective(10**12, tpot_ns, 100))
        got = increment(request, 0, full(backlog_ns=70), CompletionTimeSettings(own_break_ns=7))
        assert got.penalty_percent_ns == 700 * broken, expected


@pytest.mark.parametrize(("ttft_ns", "broken"), [(115, 0), (114, 1)])
def test_the_first_token_counts_from_the_arrival_of_the_request(ttft_ns: int, broken: int) -> None:
    request = replace(ask(10, 11, objective=Objective(ttft_ns, 10**12, 100)), waited_ns=5)
    got = increment(request, 0, full(backlog_ns=70), CompletionTimeSettings(own_break_ns=7))
    assert got.penalty_percent_ns == 700 * broken


def test_an_answer_that_is_expected_to_be_empty_has_one_token() -> None:
    got = increment(ask(10, 0, 1, objective=LATE), 0, free(), CompletionTimeSettings())
    assert got.own_ns == 10


def test_nothing_is_moved_for_a_prompt_that_lies_there_whole() -> None:
    request = ask(10, 1, objective=LATE, overlaps=(12,), bytes_per_token=5)
    assert increment(request, 0, free(), CompletionTimeSettings()).arrive_ns == 0
    shorter = replace(request, overlaps=ask(overlaps=(8,)).overlaps)
    assert increment(shorter, 0, free(), CompletionTimeSettings()).arrive_ns == 2 * 5


@pytest.mark.parametrize(("fill_percent", "waits"), [(100, False), (99, True)])
def test_an_instance_may_be_planned_up_to_its_share_and_not_beyond(fill_percent: int, *, waits: bool) -> None:
    here = Seen([Sequence(3, 60, 0)], capacity_tokens=100, timing=TEN)
    got = increment(ask(30, 10, objective=LATE), 0, here, CompletionTimeSettings(fill_percent=fill_percent))
    assert (got.wait_ns > 0) is waits


@pytest.mark.parametrize(
    ("pool", "earliest"),
    [
        ([free(backlog_ns=100), free(replace(TEN, step_base_ns=120))], 0),
        ([free(backlog_ns=115), free(replace(TEN, step_base_ns=120))], 1),
        ([full(), free(backlog_ns=25)], 1),
        ([full(), free(backlog_ns=35)], 0),
    ],
)
def test_the_way_the_wait_and_the_first_step_decide_when_the_network_counts(
    pool: list[Seen], earliest: int
) -> None:
    assert NetworkAware().choose(ask(10, 1), pool, 0) == earliest


def test_where_first_tokens_come_alike_fewest_outstanding_decide_and_not_memory() -> None:
    pool = [free(waiting=2), Seen([Sequence(9, 500, 0)], timing=TEN, link=WIRE)]
    assert NetworkAware().choose(ask(10, 1), pool, 0) == 1


@pytest.mark.parametrize(
    ("seen", "backlog_ns", "cheapest"),
    [
        # 40 tokens in a batch of 2 are 20 steps of 10 ns.
        (Seen([Sequence(30, 0, 0), Sequence(10, 0, 0)], timing=TEN), 199, 1),
        (Seen([Sequence(30, 0, 0), Sequence(10, 0, 0)], timing=TEN), 201, 0),
        # 50 tokens that do not fit are computed again.
        (Seen(timing=TEN, capacity_tokens=50), 49, 1),
        (Seen(timing=TEN, capacity_tokens=50), 51, 0),
        # 30 tokens that do not fit beside the 30 promised ones, and one step.
        (Seen([Sequence(1, 30, 0)], timing=TEN, capacity_tokens=100), 39, 1),
        (Seen([Sequence(1, 30, 0)], timing=TEN, capacity_tokens=100), 41, 0),
        # What just fits pushes nothing out.
        (Seen(timing=TEN, capacity_tokens=100), 0, 0),
    ],
)
def test_exploring_weighs_the_load_what_it_pushes_out_and_the_prompt(
    seen: Seen, backlog_ns: int, cheapest: int
) -> None:
    assert ExploitExplore().choose(ask(100), [seen, Seen(timing=TEN, backlog_ns=backlog_ns)], 0) == cheapest


def test_exploring_counts_what_need_not_be_computed() -> None:
    request = ask(100, overlaps=(0, 50))
    pool = [Seen(timing=TEN), Seen(timing=TEN, backlog_ns=49)]
    # Half of the prompt is not more than half: the cost decides.
    assert ExploitExplore().choose(request, pool, 0) == 1
    assert ExploitExplore().choose(request, [pool[0], Seen(timing=TEN, backlog_ns=51)], 0) == 0
    more = ask(100, overlaps=(0, 51))
    assert ExploitExplore().choose(more, [pool[0], Seen(timing=TEN, backlog_ns=500)], 0) == 1
