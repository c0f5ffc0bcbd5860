"""Properties of capacity plans over random worlds."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvpool.api.kvnode import UnitPhase
from kvpool.plan.filling import fill
from tests.builders.cluster import a_cluster, nodes
from tests.builders.objects import a_budget, a_pool
from tests.plan.capacity import properties
from tests.plan.capacity.worlds import POOL_NAMES, WorldPlan, mib, world_plans

small = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@small
@given(world_plans)
def test_no_node_is_ever_given_more_than_it_has(plan: WorldPlan) -> None:
    cluster = plan.build().settle()
    properties.never_over_admits_a_node(cluster, plan)


@small
@given(world_plans)
def test_every_pool_gets_all_or_nothing(plan: WorldPlan) -> None:
    properties.gives_all_or_nothing(plan.build().settle(), plan)


@small
@given(world_plans)
def test_a_pool_alone_on_equal_nodes_is_spread_evenly(plan: WorldPlan) -> None:
    alone = WorldPlan(plan.nodes[:1] * 3, plan.budgets[:1], plan.pools[:1])
    properties.spreads_evenly(alone.build().settle(), alone)


@small
@given(world_plans)
def test_figures_are_in_order_and_a_settled_world_is_left_alone(plan: WorldPlan) -> None:
    cluster = plan.build().settle()
    properties.says_figures_in_order(cluster)
    properties.has_nothing_more_to_do(cluster)


@small
@given(world_plans)
def test_a_bad_edit_changes_nothing(plan: WorldPlan) -> None:
    properties.survives_a_bad_edit(plan.build().settle(), plan)


@small
@given(world_plans)
def test_more_supply_never_takes_from_the_oldest_pool(plan: WorldPlan) -> None:
    properties.admits_no_less_with_more_supply(plan)


@small
@given(world_plans)
def test_plans_do_not_depend_on_the_order_of_what_they_are_told(plan: WorldPlan) -> None:
    properties.does_not_depend_on_order(plan)


@small
@given(world_plans, st.lists(st.integers(1, 4000), min_size=1, max_size=4))
def test_edits_of_any_kind_never_over_admit_and_come_to_rest(plan: WorldPlan, sizes: list[int]) -> None:
    cluster = plan.build().settle()
    for size in sizes:
        cluster.with_pool(a_pool(POOL_NAMES[0]).asking(DRAM=mib(size)).build())
        cluster.settle(rounds=120)
        properties.never_over_admits_a_node(cluster, plan)
        properties.has_nothing_more_to_do(cluster)


@small
@given(st.lists(st.sampled_from(list(UnitPhase)), min_size=4, max_size=4), st.integers(0, 30))
def test_whatever_agents_say_units_are_only_ever_made_anew_never_moved(
    phases: list[UnitPhase], silent_seconds: int
) -> None:
    cluster = a_cluster().with_nodes(nodes(4)).with_budget(a_budget().giving("DRAM", "1Gi").build())
    cluster.with_pool(a_pool().asking(DRAM="2Gi").build()).settle()
    before = {key: unit.size_bytes for key, unit in cluster.units().items()}
    for node, phase in zip(nodes(4), phases, strict=True):
        cluster.change_view(node, "inference.chat.dram.n0", phase=phase)
    cluster.change_agent("node-4", connected=False).wait(float(silent_seconds))
    for _ in range(3):
        cluster.step()
    assert {key: unit.size_bytes for key, unit in cluster.units().items()} == before


bounds = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=6)


@given(bounds, st.integers(0, 300))
def test_fill_meets_the_total_within_its_bounds_as_evenly_as_they_allow(
    limits: list[tuple[int, int]], total: int
) -> None:
    floors = [floor for floor, _ in limits]
    caps = [floor + more for floor, more in limits]
    shares = fill(total, floors, caps)
    if shares is None:
        assert not sum(floors) <= total <= sum(caps)
        return
    assert sum(shares) == total
    assert all(floor <= share <= cap for floor, share, cap in zip(floors, shares, caps, strict=True))
    low = min((share for share, cap in zip(shares, caps, strict=True) if share < cap), default=None)
    high = max((share for share, floor in zip(shares, floors, strict=True) if share > floor), default=None)
    assert low is None or high is None or high - low <= 1, "a share could be taken from a larger one"
