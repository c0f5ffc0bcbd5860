"""Each limit with what one session needs and what there is, in figures that can be worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from kvpool.plan.tiers.limits import Limit, LimitedBy
from kvpool.plan.tiers.planner import TierPlan, plan_tiers
from kvpool.plan.tiers.stack import Demand, Link, Stack, Tier
from kvpool.plan.timing.model import TimingModel
from tests.plan.tiers.stacks import RATIO, demand

SMALL = Stack(
    (Tier("HBM", 100), Tier("SSD", 1_000, ("link",), write_bytes_per_day=500_000)), (Link("link", 7),)
)


def of_kind(plan: TierPlan, kind: LimitedBy) -> list[Limit]:
    return [limit for limit in plan.limits if limit.kind is kind]


def test_limits_say_what_one_session_needs_and_what_there_is() -> None:
    plan = plan_tiers(SMALL, Demand(10, 7.0, utilisation=0.5))
    assert plan.limits == (
        # 10 bytes every 7 s; half of 7 bytes a second carry 2 such sessions beside the 10 in HBM.
        Limit(LimitedBy.BANDWIDTH, "link", 10 + 2, 2, 3),
        # 10 bytes every 7 s are 123,428.57 a day: a day's writes are those of 4 sessions.
        Limit(LimitedBy.ENDURANCE, "SSD", 10 + 4, 123_429, 500_000),
        Limit(LimitedBy.CAPACITY, "SSD", 10 + 100, 10, 1_100),
    )
    assert (plan.binding, plan.next_limit) == plan.limits[:2]


def test_a_plan_with_one_limit_has_no_next_one() -> None:
    plan = plan_tiers(Stack((Tier("HBM", 100),)), Demand(10, 7.0))
    assert plan.limits == (Limit(LimitedBy.CAPACITY, "HBM", 10, 10, 100),)
    assert plan.next_limit is None


def test_a_tier_of_which_nothing_is_written_is_not_worn() -> None:
    plan = plan_tiers(replace(SMALL, exclusive=False), Demand(10, 7.0, new_bytes=0))
    assert of_kind(plan, LimitedBy.ENDURANCE) == []


def test_tiers_that_fill_a_link_exactly_leave_room_behind_other_links() -> None:
    tiers = (Tier("HBM", 100), Tier("DRAM", 40, ("near",)), Tier("SSD", 1_000, ("far",)))
    stack = Stack(tiers, (Link("near", 400), Link("far", 7)))
    # 4 sessions of 10 bytes a second are all that `near` carries, and all that DRAM holds.
    plan = plan_tiers(stack, Demand(10, 1.0, utilisation=0.1))
    assert [limit.where for limit in of_kind(plan, LimitedBy.BANDWIDTH)] == ["far"]
    narrower = replace(stack, links=(Link("near", 390), stack.links[1]))
    near = of_kind(plan_tiers(narrower, Demand(10, 1.0, utilisation=0.1)), LimitedBy.BANDWIDTH)
    assert {limit.where: limit.sessions for limit in near}["near"] == 10 + 3


def test_a_tier_that_no_share_names_sees_no_returns() -> None:
    plan = plan_tiers(RATIO, demand(returns=600.0, return_shares={"HBM": 0.5, "DRAM": 0.5}))
    assert [limit.where for limit in of_kind(plan, LimitedBy.BANDWIDTH)] == ["pcie"]


def test_a_tier_that_just_meets_the_target_may_be_used() -> None:
    alone = plan_tiers(RATIO, demand()).tiers[2].ttft_alone_ns
    just, too_late = demand(ttft_target_ns=alone), demand(ttft_target_ns=alone - 1)
    assert plan_tiers(RATIO, just).tiers[2].sessions == plan_tiers(RATIO, demand()).tiers[2].room
    assert plan_tiers(RATIO, too_late).tiers[2].sessions == 0


def test_a_tier_that_is_slower_than_computing_is_left_also_when_the_target_is_far() -> None:
    stack = replace(RATIO, links=(Link("pcie", 50 * 10**9), Link("ssd", 10**9)))
    plan = plan_tiers(stack, demand(ttft_target_ns=10**12))
    assert (plan.binding.kind, plan.binding.where) == (LimitedBy.LATENCY, "SSD")
    assert plan.binding.there_is == plan.recompute_ns
    assert plan.tiers[2].sessions == 0


def test_a_late_tier_limits_nobody_when_no_returns_go_there_and_everybody_when_some_do() -> None:
    target = plan_tiers(RATIO, demand()).tiers[1].ttft_alone_ns
    never = demand(ttft_target_ns=target, return_shares={"HBM": 0.9, "DRAM": 0.1})
    some = demand(ttft_target_ns=target, return_shares={"HBM": 0.9, "DRAM": 0.09, "SSD": 0.01})
    assert plan_tiers(RATIO, never).sessions == 42 + 339 + 2_712
    assert plan_tiers(RATIO, some).sessions == 0


def test_a_first_tier_that_is_late_by_itself_serves_nobody() -> None:
    plan = plan_tiers(Stack((Tier("HBM", 10**15),)), demand(ttft_target_ns=1_000_000))
    assert (plan.binding.kind, plan.sessions) == (LimitedBy.LATENCY, 0)


def test_in_front_of_a_late_tier_no_more_return_than_the_links_carry() -> None:
    linear = TimingModel(0, 10**6, 0, 0, 0, 0)
    tiers = (Tier("HBM", 100), Tier("DRAM", 1_000, ("near",)), Tier("SSD", 1_000, ("far",)))
    stack = Stack(tiers, (Link("near", 1_000), Link("far", 1)))
    # Computing takes 1 s, loading from DRAM 10 ms and from SSD 10 s; `near` is full with 50 sessions.
    plan = plan_tiers(stack, Demand(10, 0.5, context_tokens=1_000, timing=linear))
    assert [limit.sessions for limit in of_kind(plan, LimitedBy.LATENCY)] == [10 + 50]


def test_without_a_target_waiting_is_no_limit() -> None:
    assert of_kind(plan_tiers(RATIO, demand(returns=600.0)), LimitedBy.LATENCY) == []


@pytest.mark.parametrize("target_ns", [15_000_000, 20_000_000, 25_000_000, 40_000_000])
def test_one_more_session_would_wait_longer_than_the_target(target_ns: int) -> None:
    stack = Stack((Tier("HBM", 0), Tier("DRAM", 10**6, ("link",))), (Link("link", 1_000),))
    plan = plan_tiers(stack, Demand(10, 10.0, ttft_target_ns=target_ns, utilisation=1.0))

    def waited(sessions: int) -> float:
        # Each return keeps the link busy for 10 ms.
        load = sessions * 10 / 10.0 / 1_000
        waits = math.log(load / 0.01) / (2 * (1 - load)) if load > 0.01 else 0.0
        return (1 + waits) * 10_000_000

    assert plan.binding == Limit(LimitedBy.LATENCY, "DRAM", plan.sessions, 10_000_000, target_ns)
    assert waited(plan.sessions) <= target_ns < waited(plan.sessions + 1)


def test_where_one_session_alone_waits_too_long_for_itself_nobody_is_served() -> None:
    stack = Stack((Tier("HBM", 0), Tier("DRAM", 10**6, ("link",))), (Link("link", 1_000),))
    # One session keeps the link half busy, and the target leaves no time to wait.
    plan = plan_tiers(stack, Demand(10, 0.02, ttft_target_ns=10_000_000, utilisation=1.0))
    assert (plan.binding.kind, plan.sessions) == (LimitedBy.LATENCY, 0)


def test_a_share_too_small_to_be_reckoned_with_limits_nothing() -> None:
    plan = plan_tiers(RATIO, demand(returns=600.0, return_shares={"HBM": 1.0, "DRAM": 5e-324}))
    assert [limit.kind for limit in plan.limits if limit.kind is LimitedBy.BANDWIDTH] == []
