"""An object that is there and cannot be read, like one of a newer version, was not deleted."""

from __future__ import annotations

import pytest

from kvpool.model.ids import ObjectKey
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool

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
