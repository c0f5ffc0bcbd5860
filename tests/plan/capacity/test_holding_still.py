"""When admission holds still: stopPolicy Hold, new leaders, silent agents, lowered budgets."""

from __future__ import annotations

from kvpool.api.conditions import ConditionType
from kvpool.model.decisions import CreateKeeper, SetUnits
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool
from tests.plan.capacity.test_admission import GIB, admitted, four_nodes


def test_hold_admits_nothing_new() -> None:
    cluster = four_nodes().with_pool(a_pool().asking(DRAM="8Gi").build()).settle()
    before = cluster.units()
    cluster.with_pool(a_pool().asking(DRAM="16Gi").with_spec(stopPolicy="Hold").build()).settle()
    assert cluster.units() == before
    assert admitted(cluster) == (
        "False",
        "StopPolicyHold",
        "16Gi of DRAM asked, 8Gi admitted: stopPolicy Hold admits nothing new",
    )


def used_by(cluster: Cluster, size: int) -> Cluster:
    for node in nodes(4):
        cluster.change_view(node, "inference.chat.dram.n0", used_bytes=size)
    return cluster


def test_hold_refuses_a_shrink_below_use_with_both_figures() -> None:
    cluster = used_by(four_nodes().with_pool(a_pool().asking(DRAM="64Gi").build()).settle(), 10 * GIB)
    before = cluster.units()
    cluster.with_pool(a_pool().asking(DRAM="32Gi").with_spec(stopPolicy="Hold").build()).settle()
    assert cluster.units() == before
    assert admitted(cluster)[:2] == ("False", "ShrinkBelowUse")
    assert "32Gi of DRAM asked, 40Gi in use" in admitted(cluster)[2]


def test_hold_allows_a_shrink_above_use() -> None:
    cluster = used_by(four_nodes().with_pool(a_pool().asking(DRAM="64Gi").build()).settle(), 1 * GIB)
    cluster.with_pool(a_pool().asking(DRAM="32Gi").with_spec(stopPolicy="Hold").build()).settle()
    assert sum(cluster.bytes_on(node) for node in nodes(4)) == 32 * GIB


def test_hold_does_not_shrink_what_may_be_in_use_unseen() -> None:
    cluster = used_by(four_nodes().with_pool(a_pool().asking(DRAM="64Gi").build()).settle(), 1 * GIB)
    cluster.change_agent("node-3", reported_at=cluster.now_seconds - 11.0, connected=False)
    before = cluster.units()
    cluster.with_pool(a_pool().asking(DRAM="32Gi").with_spec(stopPolicy="Hold").build()).step()
    assert cluster.units() == before
    assert admitted(cluster)[:2] == ("False", "UseUnknown")


def test_a_new_leader_waits_for_its_agents_before_it_lays_out_a_pool() -> None:
    cluster = four_nodes()
    cluster.leading_since = cluster.now_seconds - 1.0
    agent = cluster.agents.pop("node-4")
    cluster.with_pool(a_pool().asking(DRAM="64Gi").build())
    cluster.step()
    plan = cluster.step()
    assert not [action for action in plan.actions if isinstance(action, SetUnits)]
    assert admitted(cluster)[:2] == ("Unknown", "WaitingForAgents")
    assert "node-4" in admitted(cluster)[2]
    cluster.agents["node-4"] = agent
    cluster.settle()
    assert [cluster.bytes_on(node) for node in nodes(4)] == [16 * GIB] * 4


def test_a_new_leader_waits_no_longer_than_a_lease() -> None:
    cluster = four_nodes()
    cluster.leading_since = cluster.now_seconds
    del cluster.agents["node-4"]
    cluster.with_pool(a_pool().asking(DRAM="60Gi").build())
    cluster.step()
    plan = cluster.step()
    assert plan.requeue_at is not None
    cluster.wait(11.0).settle()
    assert [cluster.bytes_on(node) for node in nodes(4)] == [20 * GIB, 20 * GIB, 20 * GIB, 0]


def test_nothing_new_is_laid_out_while_most_agents_fell_silent_together() -> None:
    cluster = a_cluster().with_nodes(nodes(10)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    cluster.settle()
    cluster.wait(20.0)
    for node in nodes(9):
        cluster.change_agent(node, reported_at=cluster.now_seconds - 12.0, connected=False)
    cluster.with_pool(a_pool().asking(DRAM="8Gi").build())
    plan = cluster.step()
    assert not [action for action in plan.actions if isinstance(action, SetUnits | CreateKeeper)]
    assert admitted(cluster)[:2] == ("Unknown", "ObserverSuspect")
    suspect = cluster.pool_condition(ConditionType.OBSERVER_SUSPECT)
    assert suspect is not None
    assert "9 of 10 agents fell silent" in suspect.message


def test_one_silent_agent_is_no_reason_to_suspect_the_observer() -> None:
    cluster = a_cluster().with_nodes(nodes(10)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    cluster.wait(20.0).change_agent("node-1", reported_at=cluster.now_seconds - 12.0, connected=False)
    cluster.with_pool(a_pool().asking(DRAM="9Gi").build()).settle()
    assert admitted(cluster)[0] == "True"
    assert cluster.pool_condition(ConditionType.OBSERVER_SUSPECT) is None


def test_a_lowered_budget_takes_nothing_that_is_bound_and_says_so() -> None:
    cluster = four_nodes().with_pool(a_pool().asking(DRAM="64Gi").build()).settle()
    before = cluster.units()
    cluster.with_budget(a_budget().giving("DRAM", "8Gi").build()).settle()
    assert cluster.units() == before
    ready = cluster.budget_condition(ConditionType.READY)
    assert ready is not None
    assert (ready.reason, ready.message) == ("FiguresDisagree", "DRAM: admitted 64Gi is above declared 32Gi")


def test_a_node_never_lists_more_units_than_its_kvnode_can_hold() -> None:
    cluster = a_cluster().with_nodes(nodes(1), allocatable="1Ti")
    cluster.with_budget(a_budget().giving("DRAM", "60Gi").build())
    for number in range(66):
        cluster.with_pool(a_pool(f"pool-{number:02}").asking(DRAM="16Mi").build())
    cluster.settle()
    assert len(cluster.kvnodes["node-1"].spec.units) == 64
    assert admitted(cluster, "pool-65")[:2] == ("False", "NotEnoughRoom")
