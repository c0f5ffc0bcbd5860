"""An object that is there and cannot be read, like one of a newer version, was not deleted."""

from __future__ import annotations

import pytest

from kvpool.api.conditions import ConditionType
from kvpool.model.ids import ObjectKey
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool, a_supernode

POOL = ObjectKey("inference", "chat")


def bound_pool(policy: str) -> Cluster:
    cluster = a_cluster().with_nodes(nodes(2)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    pool = a_pool().asking(DRAM="32Gi").with_spec(reclaimPolicy=policy).build()
    return cluster.with_pool(pool).settle()


@pytest.mark.parametrize("policy", ["Drain", "Release"])
def test_a_pool_that_cannot_be_read_keeps_its_memory(policy: str) -> None:
    cluster = bound_pool(policy)
    before = cluster.units()
    cluster.pools.clear()
    cluster.unreadable = frozenset({("KVPool", POOL)})
    cluster.settle()
    assert cluster.units() == before
    cluster.unreadable = frozenset()
    cluster.settle()
    assert cluster.units() == {}, "once it is known to be gone, its memory is given back"


def test_a_node_that_cannot_be_read_keeps_its_units_however_long_it_is_silent() -> None:
    cluster = bound_pool("Retain")
    before = cluster.units()
    del cluster.nodes["node-1"]
    cluster.unreadable = frozenset({("Node", ObjectKey("", "node-1"))})
    cluster.change_agent("node-1", connected=False).wait(3600).settle()
    assert cluster.units() == before
    cluster.unreadable = frozenset()
    cluster.settle()
    assert {node for node, _ in cluster.units()} == {"node-2"}


def test_nodes_stay_while_a_budget_cannot_be_read() -> None:
    cluster = a_cluster().with_nodes(nodes(1)).with_budget(a_budget().giving("DRAM", "32Gi").build()).settle()
    cluster.budgets.clear()
    cluster.unreadable = frozenset({("TierBudget", ObjectKey("", "gpu"))})
    cluster.settle()
    assert list(cluster.kvnodes) == ["node-1"]
    cluster.unreadable = frozenset()
    cluster.settle()
    assert cluster.kvnodes == {}


def test_no_unit_is_added_on_a_node_that_a_supernode_which_cannot_be_read_may_empty() -> None:
    cluster = bound_pool("Retain").with_nodes(["node-3"], zone="own")
    cluster.with_supernode(a_supernode("own", {"zone": "own"}))
    before = cluster.units()
    cluster.unreadable = frozenset({("Supernode", ObjectKey("", "sn-a"))})
    cluster.with_pool(a_pool().asking(DRAM="40Gi").build()).settle()
    assert {at: unit for at, unit in cluster.units().items() if at[0] != "node-3"} == before
    assert cluster.bytes_on("node-3") == 8 << 30, "its own Supernode can be read"
    cluster.with_pool(a_pool().asking(DRAM="80Gi").build()).settle()
    admitted = cluster.pool_condition(ConditionType.ADMITTED)
    assert admitted is not None
    assert admitted.status == "False"
    assert "Supernode sn-a cannot be read" in admitted.message
