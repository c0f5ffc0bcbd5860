"""Which instance computes a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.routing.catalogue import PREFILL_ROUTERS
from kvpool.plan.routing.prefill import Conductor, ConductorSettings, EarliestPrefill, RoundRobinPrefill
from kvpool.plan.timing.model import LinkModel, TimingModel
from tests.plan.routing.fleet import SeenPrefill, ask

SECOND = 1_000_000_000


def test_a_cached_prefix_is_worth_the_queue_that_it_saves() -> None:
    rule = EarliestPrefill()
    pool = [SeenPrefill(backlog_ns=SECOND // 10), SeenPrefill()]
    assert rule.choose(ask(prompt=4000, overlaps=(3000, 0)), pool, 0) == 0
    assert rule.choose(ask(prompt=4000, overlaps=(300, 0)), pool, 0) == 1


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=6))
def test_without_prefixes_the_shortest_queue_computes(backlogs: list[int]) -> None:
    pool = [SeenPrefill(backlog_ns=backlog) for backlog in backlogs]
    for rule in (EarliestPrefill(), Conductor()):
        assert rule.choose(ask(), pool, 0) == backlogs.index(min(backlogs))


def test_a_much_longer_prefix_elsewhere_is_fetched_rather_than_queued_for() -> None:
    request = ask(prompt=8000, overlaps=(7000, 0), bytes_per_token=100_000)
    pool = [SeenPrefill(backlog_ns=2 * SECOND), SeenPrefill()]
    assert Conductor().choose(request, pool, 0) == 1
    nearly = ask(prompt=8000, overlaps=(7000, 6000), bytes_per_token=100_000)
    # Not worth fetching: each computes from what it has, and the queue decides.
    assert Conductor().choose(nearly, [SeenPrefill(), SeenPrefill()], 0) == 0


UNIT = TimingModel(0, 1, 0, 0, 0, 0)
"""A prompt token takes 1 ns, and below a byte does."""


@pytest.mark.parametrize(
    ("backlog_ns", "held", "chosen"),
    [
        # 100 - 60 from the longest prefix; 100 - 30 from one that is not less than half of it.
        (29, 30, 0),
        (31, 30, 1),
        # From 29 on the 31 that miss are fetched, 2 ns each, and 100 - 60 computed.
        (61, 29, 0),
        (63, 29, 1),
    ],
)
def test_a_prefix_is_fetched_when_it_is_more_than_twice_as_long(
    backlog_ns: int, held: int, chosen: int
) -> None:
    link = LinkModel(0, 10**9)
    pool = [SeenPrefill(backlog_ns, timing=UNIT, link=link), SeenPrefill(timing=UNIT, link=link)]
    assert Conductor().choose(ask(100, overlaps=(60, held), bytes_per_token=2), pool, 0) == chosen


def test_who_fetches_waits_in_the_queue_as_well() -> None:
    link = LinkModel(0, 10**9)
    pool = [SeenPrefill(60, timing=UNIT, link=link), SeenPrefill(5, timing=UNIT, link=link)]
    request = ask(100, overlaps=(60, 0), bytes_per_token=1)
    assert Conductor().choose(request, pool, 0) == 0
    assert Conductor().choose(request, [SeenPrefill(66, timing=UNIT, link=link), pool[1]], 0) == 1


def test_a_request_that_would_come_too_late_is_refused_only_when_asked_for() -> None:
    late = [SeenPrefill(backlog_ns=3 * SECOND)]
    assert Conductor().choose(ask(), late, 0) == 0
    assert Conductor(ConductorSettings(refuses=True)).choose(ask(), late, 0) is None
    assert Conductor(ConductorSettings(refuses=True)).choose(ask(), [SeenPrefill()], 0) == 0


def test_round_robin_goes_around() -> None:
    rule = RoundRobinPrefill()
    assert [rule.choose(ask(), [SeenPrefill()] * 3, 0) for _ in range(4)] == [0, 1, 2, 0]


@pytest.mark.parametrize("name", sorted(PREFILL_ROUTERS))
def test_every_named_rule_chooses_an_instance_that_is_there_or_refuses(name: str) -> None:
    rule = PREFILL_ROUTERS[name]()
    for count in (1, 3):
        place = rule.choose(ask(), [SeenPrefill(backlog_ns=5 * SECOND) for _ in range(count)], 0)
        assert (place is None) == (name == "RefusingConductor")
        assert place is None or 0 <= place < count
