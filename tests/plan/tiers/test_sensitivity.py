"""What half and twice of each constant do to a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.plan.tiers.limits import LimitedBy
from kvpool.plan.tiers.planner import plan_tiers
from kvpool.plan.tiers.sensitivity import sensitivity
from kvpool.plan.tiers.stack import Demand, Link, Stack, Tier
from kvpool.plan.timing.model import TimingModel
from tests.plan.tiers.stacks import RATIO, demand


def test_every_constant_is_halved_and_doubled() -> None:
    names = [sway.constant for sway in sensitivity(RATIO, demand(returns=600.0))]
    assert names == [
        "bytes of a session",
        "time between returns",
        "prefill time",
        "rate of pcie",
        "rate of ssd",
        "price of HBM",
        "price of DRAM",
        "price of SSD",
    ]


def test_only_the_constants_of_the_binding_limit_move_the_sessions() -> None:
    asked = demand(returns=600.0)
    plan = plan_tiers(RATIO, asked)
    by_name = {sway.constant: [found.sessions for found in sway.plans] for sway in sensitivity(RATIO, asked)}
    assert plan.binding.where == "ssd"
    assert by_name["rate of pcie"] == [plan.sessions, plan.sessions]
    assert by_name["price of SSD"] == [plan.sessions, plan.sessions]
    slower, faster = by_name["rate of ssd"]
    assert slower < plan.sessions < faster
    assert by_name["bytes of a session"][1] < plan.sessions < by_name["bytes of a session"][0]


def test_prices_move_the_cost_of_a_session_only() -> None:
    sway = next(sway for sway in sensitivity(RATIO, demand()) if sway.constant == "price of HBM")
    low, high = (cost.price for cost in sway.costs)
    assert (low, high) == pytest.approx((18_750 / 2 + 3_312, 18_750 * 2 + 3_312))


def test_constants_are_halved_and_doubled_in_every_figure_that_they_stand_for() -> None:
    ssd = replace(RATIO.tiers[2], write_bytes_per_day=10**13)
    stack = replace(RATIO, tiers=(*RATIO.tiers[:2], ssd))
    asked = demand(returns=3_600.0)
    timing = asked.timing
    assert timing is not None

    def slower(factor: float) -> TimingModel:
        return replace(
            timing,
            prefill_base_ns=timing.prefill_base_ns * factor,
            prefill_token_ns=timing.prefill_token_ns * factor,
            prefill_square_ns=timing.prefill_square_ns * factor,
        )

    def worn(factor: float) -> Stack:
        return replace(
            stack, tiers=(*stack.tiers[:2], replace(ssd, write_bytes_per_day=int(10**13 * factor)))
        )

    def larger(factor: float) -> Demand:
        session, new = int(asked.session_bytes * factor), int(asked.new_bytes * factor)
        return replace(asked, session_bytes=session, new_bytes=new)

    plans = {sway.constant: sway.plans for sway in sensitivity(stack, asked)}
    changed = {
        "endurance of SSD": [(worn(factor), asked) for factor in (0.5, 2)],
        "prefill time": [(stack, replace(asked, timing=slower(factor))) for factor in (0.5, 2)],
        "time between returns": [
            (stack, replace(asked, return_seconds=seconds)) for seconds in (1_800, 7_200)
        ],
        "bytes of a session": [(stack, larger(factor)) for factor in (0.5, 2)],
    }
    for name, pairs in changed.items():
        assert list(plans[name]) == [plan_tiers(*pair) for pair in pairs], name


def test_inclusive_tiers_also_write_half_and_twice_as_much_a_turn() -> None:
    ssd = replace(RATIO.tiers[2], write_bytes_per_day=10**12)
    stack = replace(RATIO, tiers=(*RATIO.tiers[:2], ssd), exclusive=False)
    asked = demand(returns=3_600.0)
    plan = plan_tiers(stack, asked)
    assert plan.binding.kind is LimitedBy.ENDURANCE
    sessions = next(sway.plans for sway in sensitivity(stack, asked) if sway.constant == "bytes of a session")
    assert [found.sessions / plan.sessions for found in sessions] == pytest.approx([2, 0.5], rel=0.01)


def test_what_is_halved_stays_whole() -> None:
    stack = Stack((Tier("HBM", 4), Tier("DRAM", 4, ("link",))), (Link("link", 1),))
    by_name = {sway.constant: sway.plans for sway in sensitivity(stack, Demand(1, 1.0))}
    assert by_name["bytes of a session"][0] == plan_tiers(stack, Demand(1, 1.0))
    assert by_name["rate of link"][0] == plan_tiers(stack, Demand(1, 1.0))
