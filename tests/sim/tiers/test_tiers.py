"""Objects over tiers: where they are found, what moves, and what no rule can beat."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.placement.eviction import NEVER
from kvpool.plan.placement.orders import Belady, Frequency, Recency
from kvpool.plan.placement.policies import NAMES, rule_named
from kvpool.sim.tiers.accesses import Access, accesses_of, distinct_objects
from kvpool.sim.tiers.exclusive import ExclusiveTiers
from kvpool.sim.tiers.inclusive import InclusiveTiers
from kvpool.sim.tiers.replay import replay, replay_with_lookahead
from kvpool.sim.workloads.request import Request, Workload

SECOND = 10**9
SINGLES = st.lists(st.integers(0, 7), min_size=1, max_size=80)
CAPACITIES = st.lists(st.integers(1, 4), min_size=2, max_size=3)


def one_by_one(items: Sequence[int], *, oracle: bool = False) -> list[Access]:
    """One object a second."""
    after: dict[int, int] = {}
    found: list[Access] = []
    for second in range(len(items) - 1, -1, -1):
        item = items[second]
        next_ns = (after.get(item, NEVER),) if oracle else ()
        found.append(Access(second * SECOND, (item,), next_ns=next_ns))
        after[item] = second * SECOND
    return found[::-1]


def test_an_object_goes_down_when_it_is_pushed_out_and_up_when_it_is_used() -> None:
    tiers = ExclusiveTiers([1, 2, 2], Recency())
    flows = replay(tiers, one_by_one([1, 2, 3, 4, 1]))
    # 1 went down twice before it was used again, and crossed both boundaries on its way up.
    assert [tiers.tier_of(item) for item in (1, 4, 3, 2)] == [0, 1, 1, 2]
    assert [flow.promoted for flow in flows.boundaries] == [1, 1]
    assert flows.boundaries[0].demoted_once_used == 4
    assert flows.found == [0, 0, 1]
    assert (flows.first, flows.dropped) == (4, 0)


def test_the_last_tier_drops_and_a_dropped_object_is_a_first_use_again() -> None:
    flows = replay(ExclusiveTiers([1, 1], Recency()), one_by_one([1, 2, 3, 1]))
    assert (flows.first, flows.dropped) == (4, 2)


def test_bytes_of_objects_used_once_are_told_apart() -> None:
    flows = replay(ExclusiveTiers([1, 9], Recency()), one_by_one([1, 1, 2, 3]))
    assert (flows.boundaries[0].demoted_reused, flows.boundaries[0].demoted_once_used) == (1, 1)
    assert (flows.boundaries[0].total, flows.boundaries[0].reused) == (2, 1)


def test_the_objects_of_one_request_do_not_push_each_other_out() -> None:
    tiers = ExclusiveTiers([3, 9], Frequency())
    for item in (1, 1, 2, 2, 3, 3):
        tiers.access(Access(0, (item,)))
    tiers.access(Access(SECOND, (7, 8)))
    # New as they are, 7 and 8 are at the top while their request is served.
    assert [tiers.tier_of(item) for item in (7, 8, 1, 2)] == [0, 0, 1, 1]


def test_of_a_request_that_is_too_large_the_head_stays() -> None:
    tiers = ExclusiveTiers([2, 9], Recency())
    tiers.access(Access(0, (1, 2, 3, 4)))
    assert [tiers.tier_of(item) for item in (1, 2, 3, 4)] == [0, 0, 1, 1]


@given(SINGLES, CAPACITIES, st.sampled_from(NAMES))
def test_objects_and_moves_are_conserved(items: list[int], capacities: list[int], name: str) -> None:
    tiers = ExclusiveTiers(capacities, rule_named(name))
    flows = replay(tiers, one_by_one(items, oracle=True))
    held = [tiers.used(tier) for tier in range(len(capacities))]
    assert all(used <= capacity for used, capacity in zip(held, capacities, strict=True))
    assert sum(flows.found) + flows.first == len(items)
    assert flows.first - flows.dropped == sum(held) == flows.resident
    assert flows.unique_share == 1.0
    for boundary, flow in enumerate(flows.boundaries):
        # What went down either came up again, is below, or was dropped there.
        below = sum(held[boundary + 1 :])
        assert flow.total - 2 * flow.promoted == below + flows.dropped
        assert flow.promoted == sum(flows.found[boundary + 1 :])


@given(SINGLES, CAPACITIES, st.sampled_from(NAMES))
def test_no_rule_finds_more_at_the_top_than_belady(
    items: list[int], capacities: list[int], name: str
) -> None:
    accesses = one_by_one(items, oracle=True)
    best = replay(ExclusiveTiers(capacities, Belady()), accesses)
    other = replay(ExclusiveTiers(capacities, rule_named(name)), accesses)
    assert other.found[0] <= best.found[0]


@given(SINGLES, CAPACITIES)
def test_predicted_moves_the_same_bytes_as_recency(items: list[int], capacities: list[int]) -> None:
    accesses = one_by_one(items)
    recency = replay(ExclusiveTiers(capacities, rule_named("Recency")), accesses)
    assert replay(ExclusiveTiers(capacities, rule_named("Predicted")), accesses) == recency


@given(SINGLES, st.integers(1, 4), st.integers(1, 4))
def test_two_exclusive_tiers_under_recency_find_what_one_of_both_sizes_finds(
    items: list[int], top: int, below: int
) -> None:
    accesses = one_by_one(items)
    both = replay(ExclusiveTiers([top, below], Recency()), accesses)
    one = replay(ExclusiveTiers([top + below, 1], Recency()), accesses)
    assert sum(both.found) == one.found[0]


@given(SINGLES, st.integers(1, 4), st.integers(1, 4))
def test_two_inclusive_tiers_under_recency_find_what_the_larger_one_finds(
    items: list[int], top: int, below: int
) -> None:
    accesses = one_by_one(items)
    tiers = InclusiveTiers([top, below], Recency())
    both = replay(tiers, accesses)
    one = replay(ExclusiveTiers([max(top, below), 1], Recency()), accesses)
    assert sum(both.found) == one.found[0]
    assert both.resident == tiers.used(0) + tiers.used(1)
    assert both.unique == max(tiers.used(0), tiers.used(1))


def test_copies_lower_the_unique_share() -> None:
    flows = replay(InclusiveTiers([2, 4], Recency()), one_by_one([1, 2, 3, 4]))
    assert flows.unique_share == pytest.approx(4 / 6)


def test_looking_ahead_finds_at_the_top_what_demand_finds_below() -> None:
    accesses = one_by_one([1, 2, 3, 4, 1])
    demand = replay(ExclusiveTiers([2, 9], Recency()), accesses)
    ahead = replay_with_lookahead(ExclusiveTiers([2, 9], Recency()), accesses, SECOND)
    assert (demand.found, ahead.found) == ([0, 1], [1, 0])
    assert (demand.boundaries[0].promoted, ahead.boundaries[0].prefetched) == (1, 1)
    assert ahead.boundaries[0].total == demand.boundaries[0].total


def test_prefetching_does_not_refresh_what_is_at_the_top() -> None:
    tiers = ExclusiveTiers([2, 9], Recency())
    replay(tiers, one_by_one([1, 2]))
    tiers.prefetch((1,), 2 * SECOND)
    tiers.access(Access(3 * SECOND, (3,)))
    assert tiers.tier_of(1) == 1


@given(SINGLES, st.integers(1, 3), st.integers(0, 6))
def test_looking_ahead_never_moves_less_than_belady_on_demand(
    items: list[int], top: int, seconds: int
) -> None:
    accesses = one_by_one(items, oracle=True)
    best = replay(ExclusiveTiers([top, 99], Belady()), accesses)
    ahead = replay_with_lookahead(ExclusiveTiers([top, 99], Belady()), accesses, seconds * SECOND)
    assert ahead.boundaries[0].total >= best.boundaries[0].total


def test_accesses_know_their_next_use_when_an_oracle_is_asked() -> None:
    requests = (Request(0, 1024, 1, (5, 6)), Request(SECOND, 1024, 1, (5, 7)))
    first, second = accesses_of(Workload(requests, 512, "made", ""), oracle=True)
    assert (first.next_ns, second.next_ns) == ([SECOND, NEVER], [NEVER, NEVER])
    assert distinct_objects([first, second]) == 3
    assert accesses_of(Workload(requests, 512, "made", ""))[0].next_ns == ()
