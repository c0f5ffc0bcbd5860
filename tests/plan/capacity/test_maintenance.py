"""Units and keepers of a node that people list for maintenance."""

from __future__ import annotations

from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool, a_supernode

UNIT = "inference.chat.dram.n0"


def bound_pool() -> Cluster:
    cluster = a_cluster().with_nodes(nodes(2)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    cluster.with_supernode(a_supernode("rack", {}))
    return cluster.with_pool(a_pool().asking(DRAM="32Gi").build()).settle()


def keepers_on(cluster: Cluster, node: str) -> int:
    return sum(node in name for name in cluster.keepers())


def test_a_listed_node_keeps_the_units_and_keepers_that_are_there() -> None:
    cluster = bound_pool()
    before = cluster.units(), cluster.keepers()
    cluster.with_supernode(a_supernode("rack", {}, maintenance=("node-2",))).settle()
    assert (cluster.units(), cluster.keepers()) == before


def test_a_keeper_that_is_evicted_from_a_listed_node_comes_back_when_the_entry_is_gone() -> None:
    cluster = bound_pool()
    cluster.with_supernode(a_supernode("rack", {}, maintenance=("node-2",))).settle()
    del cluster.pods[next(key for key in cluster.pods if "node-2" in key.name)]
    cluster.settle()
    assert (keepers_on(cluster, "node-1"), keepers_on(cluster, "node-2")) == (1, 0)
    assert ("node-2", UNIT) in cluster.units(), "the place is remembered"
    cluster.with_supernode(a_supernode("rack", {})).settle()
    assert keepers_on(cluster, "node-2") == 1
    assert cluster.figures()["bound"] == "32Gi"
