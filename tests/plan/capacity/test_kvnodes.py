"""Which KVNodes there are, and when their status is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.api.conditions import Condition, ConditionType, find_condition
from kvpool.api.kvnode import Claim, KVNodeStatus, Quarantined, UnitPhase
from kvpool.api.supernode import EvidenceClass
from kvpool.model.decisions import CreateKVNode, DeleteKVNode, WriteStatus
from kvpool.model.observations import DeviceView, EvidenceView, LeaseView
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool, a_supernode


def a_fleet() -> Cluster:
    cluster = a_cluster().with_nodes(nodes(2), zone="a")
    return cluster.with_budget(a_budget().on_nodes(zone="a").giving("DRAM", "32Gi").build()).settle()


def status(cluster: Cluster, node: str = "node-1") -> KVNodeStatus:
    return cluster.kvnodes[node].status


def written(cluster: Cluster) -> list[str]:
    plan = cluster.step()
    return [
        action.key.name
        for action in plan.actions
        if isinstance(action, WriteStatus) and action.kind == "KVNode"
    ]


def test_every_node_that_a_budget_or_a_supernode_matches_has_one_kvnode() -> None:
    cluster = a_fleet().with_nodes(["node-3"], zone="b").with_nodes(["node-4"], zone="c")
    cluster.with_supernode(a_supernode("b", {"zone": "b"})).settle()
    assert sorted(cluster.kvnodes) == ["node-1", "node-2", "node-3"]


def test_kvnodes_are_made_whatever_the_mode() -> None:
    cluster = a_cluster().with_nodes(nodes(1))
    cluster.with_budget(a_budget().in_mode("Observe").giving("DRAM", "1Gi").build())
    cluster.paused = True
    assert [action.node for action in cluster.decide().actions if isinstance(action, CreateKVNode)] == [
        "node-1"
    ]


def test_a_kvnode_goes_when_nothing_matches_and_nothing_is_held() -> None:
    cluster = a_fleet()
    cluster.nodes["node-2"] = replace(cluster.nodes["node-2"], labels={})
    deletions = [action for action in cluster.step().actions if isinstance(action, DeleteKVNode)]
    assert [(action.node, action.uid) for action in deletions] == [("node-2", "uid-kvnode-node-2")]


def test_a_kvnode_with_claims_units_or_quarantine_stays() -> None:
    cluster = a_fleet().with_nodes(["node-3"], zone="a")
    cluster.with_pool(a_pool().asking(DRAM="3Gi").build()).settle()
    claim = Claim(device="0", slot="inference/decode-0", epoch=1)
    quarantine = Quarantined(device="0", reason="fatal", since="2026-01-02T03:00:00Z")
    changes: dict[str, dict[str, object]] = {
        "node-1": {"claims": (claim,), "units": ()},
        "node-2": {"quarantine": (quarantine,), "units": ()},
    }
    for name, fields in changes.items():
        kvnode = cluster.kvnodes[name]
        spec = kvnode.spec.model_copy(update=dict(fields.items()))
        cluster.kvnodes[name] = kvnode.model_copy(update={"spec": spec})
    cluster.pools.clear()
    cluster.budgets.clear()
    cluster.step()
    assert sorted(cluster.kvnodes) == ["node-1", "node-2", "node-3"]
    del cluster.nodes["node-2"]
    cluster.step()
    assert sorted(cluster.kvnodes) == ["node-1", "node-3"], "a quarantine does not outlive its node"


def test_the_report_is_written_as_it_is() -> None:
    cluster = a_fleet().with_pool(a_pool().asking(DRAM="2Gi").build()).settle()
    found = status(cluster)
    assert (found.boot_id, found.incarnation, found.agent_version) == ("boot-node-1-1", 1, "0.1.0")
    assert [(source.key, source.capacity, source.free) for source in found.sources] == [
        ("dram/n0", "64Gi", "63Gi")
    ]
    assert [(unit.name, unit.phase, unit.resident_bytes) for unit in found.units] == [
        ("inference.chat.dram.n0", UnitPhase.BOUND, 1 << 30)
    ]
    assert found.last_report == "2026-01-02T03:00:00.000Z"


def test_figures_alone_are_written_at_most_every_thirty_seconds() -> None:
    cluster = a_fleet()
    writes = 0
    for second in range(120):
        source = replace(cluster.agents["node-1"].sources[0], free_bytes=(60 << 30) - second)
        cluster.change_agent("node-1", sources=(source,)).wait(1.0)
        writes += written(cluster).count("node-1")
    assert writes == 4


def test_a_report_from_a_clock_that_ran_ahead_is_replaced_with_the_next_change() -> None:
    cluster = a_fleet()
    ahead = status(cluster).model_copy(update={"last_report": "2026-01-02T09:00:00Z"})
    cluster.kvnodes["node-1"] = cluster.kvnodes["node-1"].model_copy(update={"status": ahead})
    assert written(cluster.wait(1.0)) == ["node-1"]
    assert status(cluster).last_report == "2026-01-02T03:00:01.000Z"
    assert written(cluster.wait(1.0)) == []


def test_a_phase_that_changes_is_written_at_once() -> None:
    cluster = a_fleet().with_pool(a_pool().asking(DRAM="2Gi").build()).settle()
    assert written(cluster) == []
    cluster.change_view("node-1", "inference.chat.dram.n0", phase=UnitPhase.DEGRADED)
    assert written(cluster) == ["node-1"]


def test_connection_and_lease_are_conditions_that_are_written_at_once() -> None:
    cluster = a_fleet()
    cluster.change_agent("node-1", connected=False)
    assert written(cluster) == ["node-1"]
    connected = find_condition(status(cluster).conditions, ConditionType.AGENT_CONNECTED)
    assert connected is not None
    assert (connected.status, connected.reason) == ("False", "Disconnected")
    plan = cluster.decide()
    assert plan.requeue_at is not None
    assert plan.requeue_at <= cluster.now_seconds + 11.0
    cluster.wait(11.0)
    assert written(cluster) == ["node-1"]
    lease = find_condition(status(cluster).conditions, ConditionType.LEASE_HELD)
    assert lease is not None
    assert (lease.status, lease.reason) == ("False", "Expired")


def test_a_new_leader_says_nothing_of_agents_it_has_not_heard_until_their_lease_must_have_ended() -> None:
    cluster = a_fleet()
    before = status(cluster)
    cluster.agents.clear()
    cluster.leading_since = cluster.now_seconds
    assert written(cluster.wait(10.0)) == []
    assert written(cluster.wait(1.0)) == ["node-1", "node-2"]
    after = status(cluster)
    assert after.sources == before.sources
    connected = find_condition(after.conditions, ConditionType.AGENT_CONNECTED)
    assert connected is not None
    assert (connected.status, connected.reason) == ("False", "NeverHeard")


def test_devices_are_written_with_the_verdict_of_their_evidence() -> None:
    cluster = a_fleet()
    evidence = EvidenceView("sim", "XID79", EvidenceClass.FATAL, 1, cluster.now_seconds, cluster.now_seconds)
    cluster.change_agent("node-1", devices=(DeviceView("0", "GPU-0", "", (evidence,), observed=True),))
    assert written(cluster) == ["node-1"]
    device = status(cluster).devices[0]
    assert (device.verdict.value, device.evidence[0].code) == ("Faulty", "XID79")


def test_a_report_that_cannot_be_written_holds_up_only_its_own_node_and_is_explained() -> None:
    cluster = a_fleet()
    cluster.change_agent("node-1", boot_id="b" * 65).change_agent("node-2", boot_id="second")
    plan = cluster.step()
    assert [action.key.name for action in plan.actions if isinstance(action, WriteStatus)] == ["node-2"]
    assert [(what, why.code) for what, why in plan.explanations] == [("KVNode node-1", "ReportUnreadable")]


def test_a_lease_that_was_never_granted_is_not_held() -> None:
    cluster = a_fleet().change_agent("node-1", lease=LeaseView(None, 10.0, 1.0))
    written(cluster)
    lease = find_condition(status(cluster).conditions, ConditionType.LEASE_HELD)
    assert lease is not None
    assert (lease.status, lease.reason) == ("False", "NeverGranted")


def agent_health(cluster: Cluster, **fields: object) -> Condition:
    """The condition about the agent of node-1 after one plan."""
    cluster.change_agent("node-1", **fields).step()
    found = find_condition(status(cluster).conditions, ConditionType.AGENT_HEALTHY)
    assert found is not None
    return found


WORKING = {"bind": 0.2, "sources": 4.9, "stream": 2.0}


@pytest.mark.parametrize(
    ("ages", "said"),
    [
        (WORKING, ("True", "LoopsSucceed")),
        (WORKING | {"bind": 30.0}, ("True", "LoopsSucceed")),
        (WORKING | {"bind": 30.5}, ("False", "LoopStale")),
        (WORKING | {"eviction": 600.0}, ("False", "LoopStale")),
        ({}, ("Unknown", "NotReported")),
    ],
    ids=["all succeed", "one at the limit", "one just beyond it", "one dead for long", "none is named"],
)
def test_an_agent_is_healthy_while_every_loop_succeeded_lately(
    ages: dict[str, float], said: tuple[str, str]
) -> None:
    found = agent_health(a_fleet(), loop_age_seconds=ages)
    assert (found.status, found.reason) == said


def test_a_loop_that_died_is_named_with_its_age_though_the_agent_is_connected() -> None:
    cluster = a_fleet()
    found = agent_health(cluster, loop_age_seconds=WORKING | {"eviction": 640.0})
    assert found.message == (
        "no success of loop eviction for over 10 min, the most is 30 s: see the agent's log"
    )
    connected = find_condition(status(cluster).conditions, ConditionType.AGENT_CONNECTED)
    assert connected is not None
    assert connected.status == "True"


def test_a_stuck_loop_that_holds_up_the_figures_too_is_told_all_the_same() -> None:
    """The age of a report's figures grows with the loop that takes them."""
    cluster = a_fleet()
    stuck_at = cluster.now_seconds
    cluster.wait(700.0)
    found = agent_health(cluster, reported_at=stuck_at, loop_age_seconds=WORKING | {"bind": 700.0})
    assert (found.status, found.reason) == ("False", "LoopStale")
    writes = 0
    for second in range(60):
        cluster.now_seconds += 1.0
        lease = replace(cluster.agents["node-1"].lease, granted_at=cluster.now_seconds)
        loops = WORKING | {"bind": 700.0 + second}
        cluster.change_agent("node-1", lease=lease, loop_age_seconds=loops)
        writes += written(cluster).count("node-1")
    assert writes <= 2, "an age that grows is no reason to write each time"


@pytest.mark.parametrize("silent", [{"connected": False}, {"lease": LeaseView(900.0, 10.0, 1.0)}])
def test_nothing_is_known_of_the_loops_of_an_agent_that_is_not_heard(silent: dict[str, object]) -> None:
    found = agent_health(a_fleet(), loop_age_seconds=WORKING | {"bind": 99.0}, **silent)
    assert (found.status, found.reason) == ("Unknown", "AgentSilent")


def test_a_loop_that_dies_or_comes_back_is_written_at_once() -> None:
    cluster = a_fleet().change_agent("node-1", loop_age_seconds=WORKING)
    assert written(cluster) == ["node-1"]
    cluster.change_agent("node-1", loop_age_seconds=WORKING | {"bind": 31.0})
    assert written(cluster) == ["node-1"]
    cluster.change_agent("node-1", loop_age_seconds=WORKING)
    assert written(cluster) == ["node-1"]
