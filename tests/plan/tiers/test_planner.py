"""How many sessions tiers serve, which limit binds, and by how much."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kvpool.plan.tiers.limits import LimitedBy
from kvpool.plan.tiers.planner import plan_tiers
from kvpool.plan.tiers.stack import Demand, Link, Stack, Tier
from tests.plan.tiers.stacks import GB, KAPPA, QWEN, RATIO, demand, demands, stacks

SECOND = 10**9


def only_capacity(session_bytes: int) -> Demand:
    return Demand(session_bytes, 1e12)


@given(st.integers(41, 66), st.integers(64_000_000, 1_000_000_000), st.floats(0, 0.999))
def test_a_ratio_of_1_to_8_to_64_holds_73_times_the_sessions(base: int, session: int, part: float) -> None:
    first = math.floor((base + part) * session)
    stack = Stack((Tier("HBM", first), Tier("DRAM", 8 * first), Tier("SSD", 64 * first)))
    plan = plan_tiers(stack, only_capacity(session))
    assert plan.gain is not None
    assert plan.base_sessions == base
    assert 73 - 2 / base <= plan.gain < 73 * (1 + 1 / base)


def test_inclusive_tiers_hold_no_more_than_the_largest() -> None:
    plan = plan_tiers(replace(RATIO, exclusive=False), only_capacity(10 * GB))
    assert [tier.room for tier in plan.tiers] == [10, 70, 560]
    assert (plan.sessions, plan.gain) == (640, 64)


def test_an_inclusive_tier_that_is_smaller_than_the_one_before_adds_nothing() -> None:
    stack = Stack((Tier("HBM", 80), Tier("DRAM", 30), Tier("SSD", 100)), exclusive=False)
    assert [tier.room for tier in plan_tiers(stack, Demand(10, 1e9)).tiers] == [8, 0, 2]


def test_figures_at_their_bounds_are_taken() -> None:
    stack = Stack((Tier("HBM", 10), Tier("DRAM", 10, ("link",))), (Link("link", 1),))
    asked = Demand(1, 10.0, utilisation=1.0, return_shares={"HBM": 0.0, "DRAM": 1.0})
    assert plan_tiers(stack, asked).sessions == 10


def test_the_bandwidth_of_the_narrow_link_binds_when_sessions_return_often() -> None:
    session, tau = 16_000 * KAPPA, 600.0
    plan = plan_tiers(RATIO, demand(returns=tau))
    behind_ssd = math.floor(0.8 * 12 * GB * tau / session)
    assert plan.binding.kind is LimitedBy.BANDWIDTH
    assert plan.binding.where == "ssd"
    assert plan.sessions == 100 * GB // session + 800 * GB // session + behind_ssd
    assert plan.link_loads["ssd"] == pytest.approx(0.8, abs=0.001)
    assert plan.next_limit is not None
    assert plan.next_limit.sessions is not None
    assert plan.next_limit.sessions > plan.sessions


def test_what_comes_from_behind_a_link_loads_every_link_on_its_way() -> None:
    stack = replace(RATIO, links=(Link("pcie", 8 * GB), Link("ssd", 12 * GB)))
    plan = plan_tiers(stack, demand(returns=600.0))
    assert (plan.binding.kind, plan.binding.where) == (LimitedBy.BANDWIDTH, "pcie")
    assert plan.link_loads["ssd"] < plan.link_loads["pcie"]


def test_given_shares_of_returns_decide_the_load_of_a_link() -> None:
    session, tau = 16_000 * KAPPA, 600.0
    asked = demand(returns=tau, return_shares={"HBM": 0.9, "DRAM": 0.09, "SSD": 0.01})
    plan = plan_tiers(RATIO, asked)
    by_where = {limit.where: limit.sessions for limit in plan.limits if limit.kind is LimitedBy.BANDWIDTH}
    assert by_where["ssd"] == math.floor(0.8 * 12 * GB * tau / session / 0.01)
    assert by_where["pcie"] == pytest.approx(0.8 * 50 * GB * tau / session / 0.1, abs=1)


def test_a_day_of_writes_binds_when_the_drive_would_not_last() -> None:
    drive = replace(RATIO.tiers[2], write_bytes_per_day=6_400 * GB)
    stack = replace(RATIO, tiers=(*RATIO.tiers[:2], drive))
    session, tau = 16_000 * KAPPA, 3_600.0
    plan = plan_tiers(stack, demand(returns=tau))
    assert (plan.binding.kind, plan.binding.where) == (LimitedBy.ENDURANCE, "SSD")
    held = {tier.name: tier.sessions for tier in plan.tiers}
    assert held["SSD"] == math.floor(6_400 * GB * tau / (session * 86_400))


def test_what_returns_from_behind_a_tier_wears_it_as_well() -> None:
    worn = replace(RATIO.tiers[1], write_bytes_per_day=50_000 * GB)
    stack = replace(RATIO, tiers=(RATIO.tiers[0], worn, RATIO.tiers[2]))
    session, tau = 16_000 * KAPPA, 3_600.0
    plan = plan_tiers(stack, demand(returns=tau))
    assert (plan.binding.kind, plan.binding.where) == (LimitedBy.ENDURANCE, "DRAM")
    held = {tier.name: tier.sessions for tier in plan.tiers}
    assert held["SSD"] > 0
    assert held["DRAM"] + held["SSD"] == math.floor(50_000 * GB * tau / (session * 86_400))


def test_inclusive_tiers_write_what_a_turn_adds_and_not_whole_sessions() -> None:
    drive = replace(RATIO.tiers[2], write_bytes_per_day=6_400 * GB)
    stack = Stack((*RATIO.tiers[:2], drive), RATIO.links, exclusive=False)
    plan = plan_tiers(stack, demand(returns=3_600.0))
    endurance = next(limit for limit in plan.limits if limit.kind is LimitedBy.ENDURANCE)
    assert endurance.sessions == math.floor(6_400 * GB * 3_600 / (500 * KAPPA * 86_400))


def test_a_tier_that_is_too_slow_for_the_target_holds_nobody() -> None:
    alone = {tier.name: tier.ttft_alone_ns for tier in plan_tiers(RATIO, demand()).tiers}
    target = (alone["DRAM"] + alone["SSD"]) // 2
    plan = plan_tiers(RATIO, demand(ttft_target_ns=target))
    assert (plan.binding.kind, plan.binding.where) == (LimitedBy.LATENCY, "SSD")
    assert (plan.binding.one_needs, plan.binding.there_is) == (alone["SSD"], target)
    assert [tier.sessions for tier in plan.tiers] == [plan.tiers[0].room, plan.tiers[1].room, 0]


def test_a_target_below_what_is_physically_possible_serves_nobody_and_says_by_how_much() -> None:
    plan = plan_tiers(RATIO, demand(ttft_target_ns=1_000_000))
    at_best = QWEN.prefill_ns(16_500, 16_000)
    assert plan.sessions == 0
    assert (plan.binding.kind, plan.binding.where) == (LimitedBy.LATENCY, "HBM")
    assert (plan.binding.one_needs, plan.binding.there_is) == (at_best, 1_000_000)


def test_without_room_for_one_session_the_answer_says_what_one_needs_and_what_there_is() -> None:
    plan = plan_tiers(Stack((Tier("HBM", GB),)), demand())
    assert (plan.sessions, plan.gain) == (0, None)
    assert plan.binding.kind is LimitedBy.CAPACITY
    assert (plan.binding.one_needs, plan.binding.there_is) == (16_000 * KAPPA, GB)


def test_waiting_for_links_is_part_of_the_target() -> None:
    alone = plan_tiers(RATIO, demand(returns=900.0)).tiers[2].ttft_alone_ns
    plan = plan_tiers(RATIO, demand(returns=900.0, ttft_target_ns=alone + alone // 2))
    assert plan.binding.kind is LimitedBy.LATENCY
    assert 0 < plan.tiers[2].sessions < plan.tiers[2].room
    assert plan.tiers[2].ttft_quantile_ns <= alone + alone // 2
    more = plan_tiers(RATIO, demand(returns=900.0, ttft_target_ns=2 * alone))
    assert more.sessions > plan.sessions


def test_loading_that_is_slower_than_computing_is_not_worth_its_tier() -> None:
    stack = replace(RATIO, links=(Link("pcie", 50 * GB), Link("ssd", GB)))
    plan = plan_tiers(stack, demand())
    assert [tier.worth_having for tier in plan.tiers] == [True, True, False]
    assert (plan.binding.kind, plan.binding.where) == (LimitedBy.LATENCY, "SSD")
    assert plan.binding.there_is == plan.recompute_ns


def test_tiers_are_filled_from_the_fastest_whatever_their_order() -> None:
    swapped = replace(RATIO, tiers=(RATIO.tiers[0], RATIO.tiers[2], RATIO.tiers[1]))
    assert plan_tiers(swapped, demand(returns=600.0)) == plan_tiers(RATIO, demand(returns=600.0))


def test_sessions_in_borrowed_memory_are_not_firm() -> None:
    stack = replace(RATIO, tiers=(*RATIO.tiers[:2], replace(RATIO.tiers[2], borrowed=True)))
    plan = plan_tiers(stack, demand())
    assert plan.firm_sessions == plan.tiers[0].sessions + plan.tiers[1].sessions
    assert plan.sessions > plan.firm_sessions


def test_prompts_of_all_returns_may_need_more_than_one_instance() -> None:
    plan = plan_tiers(Stack((Tier("HBM", 10**15),)), demand(returns=60.0))
    assert plan.prefill_load == pytest.approx(
        plan.sessions / 60 * QWEN.prefill_ns(16_500, 16_000) / SECOND, rel=1e-9
    )


def test_plain_figures_without_links_and_timing_are_enough() -> None:
    plan = plan_tiers(Stack((Tier("HBM", 80), Tier("DRAM", 800))), Demand(10, 60.0))
    assert (plan.sessions, plan.binding.kind, plan.recompute_ns) == (88, LimitedBy.CAPACITY, None)


@given(stacks(), demands())
def test_the_binding_limit_is_the_tightest_and_nobody_is_lost(stack: Stack, asked: Demand) -> None:
    plan = plan_tiers(stack, asked)
    assert plan.sessions == min(limit.sessions for limit in plan.limits if limit.sessions is not None)
    assert sum(tier.sessions for tier in plan.tiers) == plan.sessions
    assert all(0 <= tier.sessions <= tier.room for tier in plan.tiers)
    assert 0 <= plan.firm_sessions <= plan.sessions


@example(
    Stack((Tier("first", 0), Tier("lower", 175_576_000_000, ("link",))), (Link("link", 2_675_443_816),)),
    Demand(1_000_000, 525.0, utilisation=0.125),
)
@given(stacks(), demands())
def test_a_plan_keeps_every_limit_that_it_names(stack: Stack, asked: Demand) -> None:
    plan = plan_tiers(stack, asked)
    assert all(load <= asked.utilisation + 1e-9 for load in plan.link_loads.values())
    if asked.ttft_target_ns is not None:
        late = [tier for tier in plan.tiers if tier.sessions and tier.ttft_quantile_ns > asked.ttft_target_ns]
        assert late == []


@given(stacks(), demands())
def test_one_more_session_would_break_the_limit_that_binds(stack: Stack, asked: Demand) -> None:
    plan = plan_tiers(stack, asked)
    if plan.binding.kind is LimitedBy.BANDWIDTH:
        link = next(link for link in stack.links if link.name == plan.binding.where)
        used = plan.link_loads.get(link.name, 0.0) * link.bytes_per_second
        allowed = asked.utilisation * link.bytes_per_second
        assert used + asked.session_bytes / asked.return_seconds > allowed * 0.999


@given(stacks(), demands())
def test_rarer_returns_never_serve_fewer_sessions(stack: Stack, asked: Demand) -> None:
    rarer = replace(asked, return_seconds=asked.return_seconds * 2)
    assert plan_tiers(stack, rarer).sessions >= plan_tiers(stack, asked).sessions


@given(demands())
def test_a_looser_target_never_serves_fewer_sessions(asked: Demand) -> None:
    if asked.ttft_target_ns is not None:
        looser = replace(asked, ttft_target_ns=asked.ttft_target_ns * 2)
        assert plan_tiers(RATIO, looser).sessions >= plan_tiers(RATIO, asked).sessions


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Stack(()), "needs at least one tier"),
        (lambda: Stack((Tier("a", 1), Tier("a", 1))), "tier 'a' is given twice"),
        (
            lambda: Stack((Tier("a", 1), Tier("b", 1, ("x",)))),
            "tier 'b': its path names link 'x', known are none",
        ),
        (lambda: Stack((Tier("a", 1, ("x",)),), (Link("x", 1),)), "tier 'a' is the first"),
        (lambda: Stack((Tier("a", 1),), (Link("x", 0),)), "link 'x' carries 0 bytes a second"),
        (lambda: Demand(0, 1.0), "session_bytes is 0"),
        (lambda: Demand(1, 0.0), r"return_seconds is 0\.0"),
        (lambda: Demand(1, 1.0, utilisation=1.5), r"utilisation is 1\.5"),
        (lambda: Demand(1, 1.0, utilisation=0.0), r"utilisation is 0\.0"),
        (lambda: Demand(1, 1.0, quantile=1.0), r"quantile is 1\.0"),
        (lambda: Demand(1, 1.0, quantile=0.0), r"quantile is 0\.0"),
        (lambda: Demand(1, 1.0, return_shares={"a": 2.0}), r"return_shares \{'a': 2\.0\}"),
        (lambda: Demand(1, 1.0, return_shares={"a": 0.6, "b": 0.5}), "add up to at most 1"),
        (lambda: Demand(1, 1.0, return_shares={"a": 0.6, "b": -0.5}), "must be 0 or more each"),
        (lambda: Demand(1, 1.0, return_shares={"a": 0.0}), "return_shares"),
    ],
)
def test_figures_that_cannot_be_are_refused_by_name(build: object, message: str) -> None:
    assert callable(build)
    with pytest.raises(ValueError, match=message):
        build()
