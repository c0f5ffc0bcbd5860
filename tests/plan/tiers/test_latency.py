"""How long a session takes to come back from its tier, in figures that can be worked out by hand."""

from __future__ import annotations

import math

import pytest

from kvpool.plan.tiers.latency import loads_of, recompute_ns, returns_of, turn_ns, waiting_ns, ways
from kvpool.plan.tiers.planner import plan_tiers
from kvpool.plan.tiers.stack import Demand, Link, Stack, Tier
from kvpool.plan.timing.model import TimingModel

FAST, SLOW = Link("fast", 10**9, 40), Link("slow", 3, 2)
STACK = Stack((Tier("HBM", 10), Tier("SSD", 10, ("slow", "fast")), Tier("DRAM", 10, ("fast",))), (FAST, SLOW))
TIMING = TimingModel(7, 5, 3, 0, 0, 0)


def test_a_session_crosses_at_the_rate_of_the_slowest_link_and_pays_every_set_up() -> None:
    found = ways(STACK, Demand(1, 1.0))
    assert [(way.tier.name, way.load_ns) for way in found] == [
        ("HBM", 0),
        ("DRAM", 40 + 1),
        ("SSD", 40 + 2 + 333_333_334),
    ]


def test_a_turn_computes_what_is_new_and_without_the_session_everything() -> None:
    asked = Demand(1, 1.0, context_tokens=10, new_tokens=2, timing=TIMING)
    assert turn_ns(asked) == 7 + 5 * 2 + 3 * (144 - 100)
    assert recompute_ns(asked) == 7 + 5 * 12 + 3 * 144
    assert (turn_ns(Demand(1, 1.0)), recompute_ns(Demand(1, 1.0))) == (0, None)


def test_sessions_return_equally_often_to_every_tier_unless_shares_say_otherwise() -> None:
    equal, shared = Demand(1, 4.0), Demand(1, 4.0, return_shares={"DRAM": 0.25, "HBM": 0.5})
    tiers = ways(STACK, equal)
    assert returns_of(equal, tiers, (2, 4, 6), 12) == (0.5, 1.0, 1.5)
    assert returns_of(shared, tiers, (2, 4, 6), 12) == (1.5, 0.75, 0.0)


def test_a_link_is_busy_with_all_that_crosses_it() -> None:
    loads = loads_of(ways(STACK, Demand(6, 1.0)), (9.0, 1_000_000.0, 0.25))
    assert loads == {"fast": pytest.approx(1_000_000.25 * 6 / 10**9), "slow": pytest.approx(0.25 * 2)}


def test_a_way_waits_for_each_of_its_links() -> None:
    slowest = ways(STACK, Demand(6, 1.0))[-1]
    both = waiting_ns(slowest, {"fast": 0.5, "slow": 0.5}, 0.99)
    assert both == pytest.approx(math.log(50) * (2_000_000_000 + 6))


def test_a_plan_adds_the_wait_at_the_quantile_to_the_time_alone() -> None:
    stack = Stack((Tier("HBM", 0), Tier("DRAM", 50, ("link",))), (Link("link", 10, 5),))
    slow = TimingModel(0, 10**9, 0, 0, 0, 0)
    asked = Demand(5, 10.0, context_tokens=10, new_tokens=2, timing=slow, utilisation=0.5, quantile=0.9)
    plan = plan_tiers(stack, asked)
    # 10 sessions of 5 bytes in 10 s keep a link of 10 bytes a second half busy.
    assert plan.link_loads == {"link": 0.5}
    assert plan.returns_per_second == 1.0
    alone = 5 + 500_000_000 + 2 * 10**9
    assert plan.tiers[1].ttft_alone_ns == alone
    assert plan.tiers[1].ttft_quantile_ns == pytest.approx(math.log(5) * 500_000_000 + alone)
