"""Money and watts of a session, and the price up to which a tier pays."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.tiers.cost import break_even_price_per_gb, cost_of
from kvpool.plan.tiers.planner import plan_tiers
from kvpool.plan.tiers.stack import Demand, Stack, Tier
from tests.plan.tiers.stacks import GB, RATIO, demand, demands

TWO_GB = Demand(2 * GB, 1e12)


def test_sessions_at_1_to_8_to_64_are_62_times_cheaper_with_the_default_prices() -> None:
    plan = plan_tiers(RATIO, TWO_GB)
    cost = cost_of(RATIO, plan)
    assert plan.gain == 73
    assert cost.saving == pytest.approx(73 / 1.1766, abs=0.01)


@given(st.floats(1, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_saving_is_the_gain_over_the_share_that_the_lower_tiers_cost(
    first: float, second: float, third: float
) -> None:
    prices = (first, second, third)
    tiers = tuple(replace(tier, price=price) for tier, price in zip(RATIO.tiers, prices, strict=True))
    stack = replace(RATIO, tiers=tiers)
    assert cost_of(stack, plan_tiers(stack, TWO_GB)).saving == pytest.approx(
        73 / (1 + (second + third) / first)
    )


def test_watts_are_those_of_all_tiers_over_all_sessions() -> None:
    stack = Stack((Tier("HBM", 100 * GB, watts=700), Tier("DRAM", 900 * GB, watts=384)))
    cost = cost_of(stack, plan_tiers(stack, Demand(GB, 1e12)))
    assert (cost.watts, cost.watts_per_session) == (1_084, 1.084)


def test_where_nobody_is_served_nothing_has_a_cost_per_session() -> None:
    stack = Stack((Tier("HBM", 1, price=10),))
    cost = cost_of(stack, plan_tiers(stack, TWO_GB))
    assert (cost.price, cost.price_per_session, cost.watts_per_session, cost.saving) == (10, None, None, None)


@given(demands())
def test_at_its_break_even_price_a_tier_changes_nothing(asked: Demand) -> None:
    plan = plan_tiers(RATIO, asked)
    price = break_even_price_per_gb(RATIO, asked, plan, "SSD")
    without = replace(RATIO, tiers=RATIO.tiers[:2])
    alone = plan_tiers(without, asked)
    if price is None:
        assert alone.sessions == 0
        return
    ssd = replace(RATIO.tiers[2], price=price * 6_400)
    priced = replace(RATIO, tiers=(*RATIO.tiers[:2], ssd))
    with_it, without_it = cost_of(priced, plan), cost_of(without, alone)
    assert with_it.price_per_session == pytest.approx(without_it.price_per_session)


def test_a_tier_that_brings_no_sessions_is_worth_nothing() -> None:
    narrow = demand(returns=0.5)
    plan = plan_tiers(RATIO, narrow)
    assert plan.binding.where == "pcie"
    assert break_even_price_per_gb(RATIO, narrow, plan, "SSD") == 0


def test_without_a_price_of_the_accelerators_no_saving_is_told() -> None:
    stack = Stack((Tier("HBM", 4_000_000_000), Tier("DRAM", 32_000_000_000, price=10)))
    cost = cost_of(stack, plan_tiers(stack, TWO_GB))
    assert cost.price == 10
    assert cost.saving is None
