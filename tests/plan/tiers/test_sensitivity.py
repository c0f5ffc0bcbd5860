"""What half and twice of each constant do to a plan."""

from __future__ import annotations

import pytest

from kvpool.plan.tiers.planner import plan_tiers
from kvpool.plan.tiers.sensitivity import sensitivity
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
