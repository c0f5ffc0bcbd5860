"""What must hold of every capacity plan; each raises AssertionError where it does not.

They are functions, so that the same ones judge the planner and the seeded mutants of it.
"""

from __future__ import annotations

from kvpool.api.conditions import ConditionType
from kvpool.api.kvnode import UnitSpec
from kvpool.api.quantity import parse_quantity
from kvpool.plan.keeper_names import keeper_bytes
from tests.builders.cluster import Cluster
from tests.builders.objects import a_pool
from tests.plan.capacity.worlds import MIB, NODE_NAMES, POOL_NAMES, WorldPlan, mib

Decided = dict[str, tuple[UnitSpec, ...]]


def decided(cluster: Cluster) -> Decided:
    return {name: kvnode.spec.units for name, kvnode in sorted(cluster.kvnodes.items())}


def never_over_admits_a_node(cluster: Cluster, plan: WorldPlan) -> None:
    """No node is given more than its budget, each of its media and its schedulable memory hold."""
    for name, units in decided(cluster).items():
        node = plan.nodes[NODE_NAMES.index(name)]
        ruling = next((budget for budget in plan.budgets if budget[2] in (None, node.rack)), None)
        total = sum(unit.size_bytes for unit in units)
        assert ruling is not None or total == 0, f"{name}: {total} bytes without a budget"
        if ruling is None:
            continue
        per_node, reserve, _ = ruling
        assert total <= per_node * MIB, f"{name}: {total} above perNode {per_node * MIB}"
        whole = sum(node.media)
        for numa, size in enumerate(node.media):
            on_numa = sum(unit.size_bytes for unit in units if unit.numa_node == numa)
            others = min(node.others, node.media[0]) if numa == 0 else 0
            most = size * MIB - reserve * MIB * size // whole - others * MIB
            assert on_numa == 0 or on_numa <= most, f"{name}: {on_numa} on NUMA node {numa}, which has {most}"
        keepers = sum(keeper_bytes(unit.backend, unit.size_bytes) for unit in units)
        most = (node.allocatable - node.engine) * MIB
        assert keepers == 0 or keepers <= most, f"{name}: keepers take {keepers} of {most}"


def gives_all_or_nothing(cluster: Cluster, plan: WorldPlan) -> None:
    """A pool has exactly what it asked for and is Admitted, or nothing and is not."""
    for name, asked in zip(POOL_NAMES, plan.pools, strict=False):
        has = sum(unit.size_bytes for unit in cluster.units(name).values())
        condition = cluster.pool_condition(ConditionType.ADMITTED, name)
        assert condition is not None
        assert has == (asked * MIB if condition.status == "True" else 0), f"{name}: {has} of {asked}Mi"


def spreads_evenly(cluster: Cluster, plan: WorldPlan) -> None:
    """A pool alone in the world lies on nodes of one kind in sizes that differ by one mebibyte at most."""
    sizes = [sum(unit.size_bytes for unit in units) for units in decided(cluster).values()]
    if len(plan.pools) == 1 and len(set(plan.nodes)) == 1 and len(plan.budgets) == 1:
        assert max(sizes, default=0) - min(sizes, default=0) <= MIB, sizes


def says_figures_in_order(cluster: Cluster) -> None:
    """Declared ≥ admitted ≥ bound ≥ used, of every pool."""
    for pool in cluster.pools.values():
        for tier in pool.status.tiers:
            figures = [parse_quantity(text) for text in (tier.declared, tier.admitted, tier.bound, tier.used)]
            assert figures == sorted(figures, reverse=True), figures


def has_nothing_more_to_do(cluster: Cluster) -> None:
    """A world whose plans were carried out and applied is left alone."""
    assert cluster.decide().actions == ()


def survives_a_bad_edit(cluster: Cluster, plan: WorldPlan) -> None:
    """A pool edited beyond everything keeps its units to the byte, and so do the others."""
    before = decided(cluster)
    cluster.with_pool(a_pool(POOL_NAMES[0]).asking(DRAM="1Ei").build()).settle()
    assert decided(cluster) == before
    cluster.with_pool(a_pool(POOL_NAMES[0]).asking(DRAM=mib(plan.pools[0])).build()).settle()


def admits_no_less_with_more_supply(plan: WorldPlan) -> None:
    """More of anything never takes from the oldest pool."""
    richer = WorldPlan(
        nodes=tuple(
            type(node)(
                media=tuple(size + 100 for size in node.media),
                others=node.others,
                allocatable=node.allocatable + 200,
                engine=node.engine,
                rack=node.rack,
            )
            for node in plan.nodes
        ),
        budgets=tuple((per_node + 150, reserve, rack) for per_node, reserve, rack in plan.budgets),
        pools=plan.pools,
    )
    oldest = POOL_NAMES[0]
    before = sum(unit.size_bytes for unit in plan.build().settle().units(oldest).values())
    after = sum(unit.size_bytes for unit in richer.build().settle().units(oldest).values())
    assert after >= before, f"{oldest}: {before} bytes, with more supply {after}"


def does_not_depend_on_order(plan: WorldPlan) -> None:
    """The same world in another order is planned the same."""
    assert decided(plan.build().settle()) == decided(plan.build(reverse=True).settle())
