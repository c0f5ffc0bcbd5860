"""A node that is lost for good: what becomes of its bytes, as docs/how-to/dead-node.md says."""

from __future__ import annotations

from kvpool.api.conditions import ConditionType
from kvpool.plan.units import NODE_GONE_SECONDS
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool

GIB = 1 << 30


def bound_pool(per_node: str = "32Gi") -> Cluster:
    """64 GiB on four nodes."""
    cluster = a_cluster().with_nodes(nodes(4)).with_budget(a_budget().giving("DRAM", per_node).build())
    return cluster.with_pool(a_pool().asking(DRAM="64Gi").build()).settle()


def lose(cluster: Cluster, node: str = "node-4") -> None:
    """Delete a silent node's Node object, and let a minute pass."""
    cluster.change_agent(node, connected=False)
    del cluster.nodes[node]
    cluster.wait(NODE_GONE_SECONDS + 1.0).step()
    cluster.settle()


def units(cluster: Cluster) -> dict[str, tuple[int, int]]:
    """Generation and GiB of the pool's unit on each node."""
    return {node: (unit.generation, unit.size_bytes // GIB) for (node, _), unit in cluster.units().items()}


def test_on_nodes_that_have_a_unit_already_it_is_made_anew_in_a_larger_size() -> None:
    cluster = bound_pool()
    lose(cluster)
    assert units(cluster) == {"node-1": (2, 21), "node-2": (2, 21), "node-3": (2, 21)}


def test_a_pool_on_hold_becomes_smaller_and_loses_nothing_more() -> None:
    cluster = bound_pool()
    cluster.with_pool(a_pool().asking(DRAM="64Gi").with_spec(stopPolicy="Hold").build()).settle()
    lose(cluster)
    assert units(cluster) == {"node-1": (1, 16), "node-2": (1, 16), "node-3": (1, 16)}
    admitted = cluster.pool_condition(ConditionType.ADMITTED)
    assert admitted is not None
    assert admitted.reason == "StopPolicyHold"


def test_a_node_that_joined_before_takes_all_bytes_and_no_other_unit_is_touched() -> None:
    cluster = bound_pool()
    cluster.with_nodes(["node-5"]).settle()
    lose(cluster)
    assert units(cluster) == dict.fromkeys(("node-1", "node-2", "node-3", "node-5"), (1, 16))


def test_without_room_the_pool_says_so_and_its_other_units_stay() -> None:
    cluster = bound_pool(per_node="16Gi")
    lose(cluster)
    assert units(cluster) == {"node-1": (1, 16), "node-2": (1, 16), "node-3": (1, 16)}
    admitted = cluster.pool_condition(ConditionType.ADMITTED)
    assert admitted is not None
    assert (admitted.status, admitted.reason) == ("False", "NotEnoughRoom")
    assert "48Gi stay as they are" in admitted.message


def test_a_paused_cluster_keeps_the_units_until_it_is_resumed() -> None:
    cluster = bound_pool()
    cluster.paused = True
    lose(cluster)
    assert units(cluster)["node-4"] == (1, 16)
    cluster.paused = False
    cluster.settle()
    assert "node-4" not in units(cluster)
