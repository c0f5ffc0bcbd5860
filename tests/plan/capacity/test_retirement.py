"""An uninstall gives everything back, whatever modes say, and takes nothing that is only not heard of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.api.common import Mode
from kvpool.api.conditions import ConditionType
from kvpool.api.kvnode import Claim, Quarantined, UnitPhase
from kvpool.model.decisions import CreateKeeper, CreateKVNode, DeleteKVNode, SetUnits, TellRetired
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Uninstall
from kvpool.plan.node_plan import node_plans
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool, an_agent, dram

WORD = Uninstall("kvpool-system", "1")


def a_fleet() -> Cluster:
    cluster = a_cluster().with_nodes(nodes(2))
    cluster.with_budget(a_budget().giving("DRAM", "32Gi").build())
    return cluster.with_pool(a_pool().asking(DRAM="2Gi").build()).settle()


def uninstalled(cluster: Cluster) -> Cluster:
    cluster.uninstall = WORD
    return cluster


def retiring(cluster: Cluster) -> set[str]:
    """Nodes whose agent is told to remove what it keeps."""
    return {name for name, plan in node_plans(cluster.snapshot()).items() if plan.retire}


def test_every_unit_is_drained_and_then_taken_off_with_its_keeper() -> None:
    cluster = a_fleet()
    assert len(cluster.keepers()) == len(cluster.units()) == 2
    uninstalled(cluster).step()
    assert {unit.release for unit in cluster.units().values()} == {"Drain"}
    cluster.settle()
    assert cluster.units() == {}
    assert cluster.keepers() == {}
    assert sorted(cluster.kvnodes) == nodes(2), "agents have not said that nothing is left"


@pytest.mark.parametrize("mode", list(Mode))
def test_modes_and_their_cap_hold_nothing_of_it(mode: Mode) -> None:
    cluster = a_fleet()
    cluster.mode_cap = mode
    cluster.with_pool(a_pool().in_mode("Observe").asking(DRAM="2Gi").build())
    cluster.with_budget(a_budget().in_mode("Observe").giving("DRAM", "32Gi").build())
    uninstalled(cluster).settle()
    assert cluster.units() == {}
    assert cluster.keepers() == {}


def test_a_pause_holds_all_of_it() -> None:
    cluster = uninstalled(a_fleet())
    cluster.paused = True
    cluster.settle()
    assert {unit.release for unit in cluster.units().values()} == {"None"}
    assert len(cluster.keepers()) == 2
    assert retiring(cluster) == set()


def test_nothing_new_is_bound_and_the_pool_says_why() -> None:
    cluster = uninstalled(a_fleet()).settle()
    cluster.with_pool(a_pool("late").asking(DRAM="1Gi").build())
    made = [a for a in cluster.step().actions if isinstance(a, SetUnits | CreateKeeper | CreateKVNode)]
    assert made == []
    said = cluster.settle().pool_condition(ConditionType.ACTION_WITHHELD, "late")
    assert said is not None
    assert (said.status, said.reason) == ("True", "Uninstalling")
    assert "kvpool-uninstall" in said.message


def test_a_unit_whose_agent_is_silent_stays_and_a_lost_one_goes() -> None:
    cluster = a_fleet()
    (silent, one), (lost, other) = cluster.units()
    cluster.change_agent(silent, connected=False)
    cluster.change_view(lost, other, phase=UnitPhase.LOST)
    uninstalled(cluster)
    for _ in range(4):
        cluster.wait(300.0).step()
    assert list(cluster.units()) == [(silent, one)]
    assert silent not in retiring(cluster)


def test_an_agent_is_told_to_retire_only_once_its_node_holds_nothing() -> None:
    cluster = uninstalled(a_fleet())
    assert retiring(cluster) == set()
    cluster.settle()
    assert retiring(cluster) == set(nodes(2))
    plan = node_plans(cluster.snapshot())["node-1"]
    assert (plan.units, plan.seats) == ((), ())
    claim = Claim(device="dev0", slot="inference/chat-decode-0", epoch=1)
    kvnode = cluster.kvnodes["node-1"]
    spec = kvnode.spec.model_copy(update={"claims": (claim,)})
    cluster.kvnodes["node-1"] = kvnode.model_copy(update={"spec": spec})
    assert retiring(cluster) == {"node-2"}


def test_an_agent_is_not_told_while_a_keeper_of_its_node_is_only_about_to_go() -> None:
    cluster = a_fleet()
    ending = {key: replace(pod, deleting=True) for key, pod in cluster.pods.items() if pod.node == "node-1"}
    uninstalled(cluster).settle()
    cluster.pods |= ending
    assert retiring(cluster) == {"node-2"}
    for key in ending:
        del cluster.pods[key]
    assert retiring(cluster) == set(nodes(2))


def test_agents_of_nodes_that_nothing_matched_retire_too_and_those_of_unreadable_ones_do_not() -> None:
    cluster = uninstalled(a_fleet()).settle()
    for name in ("node-8", "node-9"):
        cluster.agents[name] = an_agent(name, dram(0, "1Gi"), at=cluster.now_seconds)
    cluster.unreadable = frozenset({("KVNode", ObjectKey("", "node-9"))})
    assert retiring(cluster) == {"node-1", "node-2", "node-8"}
    cluster.uninstall = None
    assert retiring(cluster) == set()
    assert "node-8" not in node_plans(cluster.snapshot())


def test_a_kvnode_goes_when_its_agent_has_retired_quarantine_or_not() -> None:
    cluster = uninstalled(a_fleet()).settle()
    entry = Quarantined(device="dev0", reason="Fatal", since="2026-01-02T03:00:00Z")
    kvnode = cluster.kvnodes["node-1"]
    spec = kvnode.spec.model_copy(update={"quarantine": (entry,)})
    cluster.kvnodes["node-1"] = kvnode.model_copy(update={"spec": spec})
    cluster.change_agent("node-1", retired=True)
    gone = [action.node for action in cluster.step().actions if isinstance(action, DeleteKVNode)]
    assert gone == ["node-1"]
    assert retiring(cluster.settle()) == set(nodes(2)), "level-triggered: it stays told"


def test_a_kvnode_whose_agent_was_heard_of_waits_for_it_and_one_of_no_agent_goes() -> None:
    cluster = a_fleet().with_nodes(["node-3"])
    del cluster.agents["node-3"]
    assert sorted(cluster.settle().kvnodes) == nodes(3)
    uninstalled(cluster).settle()
    del cluster.agents["node-1"]
    cluster.wait(3600.0).settle()
    assert sorted(cluster.kvnodes) == nodes(2)
    del cluster.nodes["node-1"]
    cluster.settle()
    assert sorted(cluster.kvnodes) == ["node-2"], "a Node that was deleted keeps nothing"


def test_who_has_retired_is_put_on_record_once_and_taken_back() -> None:
    cluster = uninstalled(a_fleet()).settle()
    cluster.change_agent("node-2", retired=True)

    def told() -> list[tuple[str, ...]]:
        return [action.nodes for action in cluster.step().actions if isinstance(action, TellRetired)]

    assert told() == [("node-2",)]
    assert told() == []
    cluster.change_agent("node-2", retired=False)
    assert told() == [()]


def test_a_keeper_of_a_node_without_kvnode_goes_too() -> None:
    cluster = a_fleet()
    del cluster.kvnodes["node-1"]
    uninstalled(cluster).settle()
    assert cluster.keepers() == {}


def test_units_of_a_deleted_node_are_forgotten_whatever_the_cap() -> None:
    cluster = uninstalled(a_fleet())
    cluster.mode_cap = Mode.OBSERVE
    del cluster.nodes["node-1"]
    agent = cluster.agents.pop("node-1")
    cluster.agents["node-1"] = replace(agent, connected=False)
    cluster.settle().wait(120.0).settle()
    assert cluster.units() == {}
    assert sorted(cluster.kvnodes) == ["node-2"]
