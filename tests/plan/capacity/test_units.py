"""What becomes of units: made, resized one node at a time, made anew, given back; and of their keepers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.api.conditions import ConditionType
from kvpool.api.kvnode import UnitPhase
from kvpool.model.decisions import CreateKeeper, DeleteKeeper, Plan, SetUnits
from kvpool.model.ids import ObjectKey
from kvpool.plan.keeper_names import KEEPER_OVERHEAD_BYTES
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool, a_store, disk, dram

GIB = 1 << 30
UNIT = "inference.chat.dram.n0"


def bound_pool(size: str = "64Gi", count: int = 4, **spec: object) -> Cluster:
    cluster = a_cluster().with_nodes(nodes(count)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    return cluster.with_pool(a_pool().asking(DRAM=size).with_spec(**spec).build()).settle()


def set_units(plan: Plan) -> list[SetUnits]:
    return [action for action in plan.actions if isinstance(action, SetUnits)]


def created(plan: Plan) -> list[CreateKeeper]:
    return [action for action in plan.actions if isinstance(action, CreateKeeper)]


def deleted(plan: Plan) -> list[DeleteKeeper]:
    return [action for action in plan.actions if isinstance(action, DeleteKeeper)]


def generations(cluster: Cluster) -> list[int]:
    return [unit.generation for unit in cluster.units().values()]


def test_a_unit_says_all_its_agent_has_to_know() -> None:
    unit = bound_pool().units()["node-1", UNIT]
    assert unit.model_dump() == {
        "name": UNIT,
        "pool": "inference/chat",
        "pool_uid": "uid-chat",
        "tier": "DRAM",
        "size_bytes": 16 * GIB,
        "numa_node": 0,
        "backend": "tmpfs",
        "path": "",
        "generation": 1,
        "on_restart": "Adopt",
        "reclaim_policy": "Retain",
        "release": "None",
        "reserve_bytes": 0,
        "store": None,
    }


def test_a_unit_knows_its_store_and_the_reserve_of_its_own_numa_node() -> None:
    cluster = a_cluster().with_nodes(nodes(1), dram(0, "48Gi"), dram(1, "16Gi"))
    cluster.with_budget(a_budget().giving("DRAM", "32Gi", reserve="4Gi").build())
    store = a_store("inference/chat", at=cluster.now_seconds)
    cluster.with_store(replace(store, rpc_address="10.0.0.9:50051", admin_address="10.0.0.9:9003"))
    cluster.with_pool(a_pool().with_mooncake().asking(DRAM="2Gi").build()).settle()
    units = list(cluster.units().values())
    assert [unit.reserve_bytes for unit in units] == [3 * GIB, 1 * GIB]
    assert {unit.store.master for unit in units if unit.store} == {"10.0.0.9:50051"}


def test_units_keep_the_store_they_know_while_its_address_is_unknown() -> None:
    cluster = a_cluster().with_nodes(nodes(1)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    store = a_store("inference/chat", at=cluster.now_seconds)
    cluster.with_store(replace(store, rpc_address="10.0.0.9:50051"))
    cluster.with_pool(a_pool().with_mooncake().asking(DRAM="2Gi").build()).settle()
    before = cluster.units()
    cluster.stores.clear()
    cluster.settle()
    assert cluster.units() == before


def test_units_join_a_store_that_moved_under_a_new_generation_one_node_at_a_time() -> None:
    cluster = a_cluster().with_nodes(nodes(2)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    store = a_store("inference/chat", at=cluster.now_seconds)
    cluster.with_store(replace(store, rpc_address="10.0.0.8:50051"))
    cluster.with_pool(a_pool().with_mooncake().asking(DRAM="2Gi").build()).settle()
    cluster.with_store(replace(store, rpc_address="10.0.0.9:50051")).step()
    assert generations(cluster) == [2, 1]
    cluster.settle()
    assert generations(cluster) == [2, 2]
    assert {unit.store.master for unit in cluster.units().values() if unit.store} == {"10.0.0.9:50051"}


def test_units_do_not_follow_a_store_that_does_not_answer() -> None:
    cluster = a_cluster().with_nodes(nodes(2)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    store = a_store("inference/chat", at=cluster.now_seconds)
    cluster.with_store(replace(store, rpc_address="10.0.0.8:50051"))
    cluster.with_pool(a_pool().with_mooncake().asking(DRAM="2Gi").build()).settle()
    cluster.with_store(replace(store, rpc_address="10.0.0.9:50051", reachable=False)).settle()
    assert generations(cluster) == [1, 1]


def test_what_needs_new_memory_waits_for_the_next_generation() -> None:
    cluster = a_cluster().with_nodes(nodes(1), disk("/mnt/kv", "100Gi"))
    cluster.with_budget(a_budget().giving("SSD", "50Gi", path="/mnt/kv").build())
    cluster.with_pool(a_pool().asking(SSD="10Gi").build()).settle()
    for size, expected in (("10Gi", "Adopt"), ("20Gi", "Release")):
        tier = {"name": "SSD", "size": size, "onRestart": "Release"}
        cluster.with_pool(a_pool().with_spec(tiers=[tier]).build()).settle()
        assert [unit.on_restart for unit in cluster.units().values()] == [expected]


def test_an_older_generation_that_lingers_hides_nothing_of_the_newer() -> None:
    cluster = bound_pool("16Gi", 1).with_pool(a_pool().asking(DRAM="20Gi").build()).settle()
    newer = cluster.agents["node-1"].units[0]
    older = replace(newer, generation=1, phase=UnitPhase.RELEASED, resident_bytes=0)
    cluster.change_agent("node-1", units=(older, newer)).wait(31.0).step()
    assert cluster.figures()["bound"] == "20Gi"
    assert [(unit.name, unit.generation) for unit in cluster.kvnodes["node-1"].status.units] == [(UNIT, 2)]


def test_units_are_decided_on_the_version_of_the_kvnode_they_were_seen_at() -> None:
    cluster = a_cluster().with_nodes(nodes(1)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    cluster.with_pool(a_pool().asking(DRAM="1Gi").build())
    cluster.step()
    version = cluster.kvnodes["node-1"].metadata.resource_version
    assert [action.resource_version for action in set_units(cluster.decide())] == [version]


def test_a_keeper_is_made_once_its_unit_is_decided_and_costs_the_unit_and_itself() -> None:
    cluster = a_cluster().with_nodes(nodes(1)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    cluster.with_pool(a_pool().asking(DRAM="1Gi").build())
    cluster.step()
    assert created(cluster.step()) == []
    keeper = created(cluster.step())[0].keeper
    assert keeper.memory_bytes == GIB + KEEPER_OVERHEAD_BYTES
    assert keeper.unit == cluster.units()["node-1", UNIT]
    assert (keeper.node, keeper.pool, keeper.pool_uid) == (
        "node-1",
        ObjectKey("inference", "chat"),
        "uid-chat",
    )
    assert created(cluster.step()) == []


def test_a_file_units_keeper_costs_only_itself() -> None:
    cluster = a_cluster().with_nodes(nodes(1), disk("/mnt/kv", "100Gi"))
    cluster.with_budget(a_budget().giving("SSD", "50Gi", path="/mnt/kv").build())
    cluster.with_pool(a_pool().asking(SSD="50Gi").build()).settle()
    assert [pod.memory_request_bytes for pod in cluster.keepers().values()] == [KEEPER_OVERHEAD_BYTES]


def test_names_of_keepers_are_short_and_differ_by_node_unit_and_generation() -> None:
    cluster = a_cluster()
    cluster.with_nodes(
        [f"gpu-worker.{'x' * 60}.example-{n}" for n in range(3)], dram(0, "64Gi"), dram(1, "64Gi")
    )
    cluster.with_budget(a_budget().giving("DRAM", "32Gi").build())
    cluster.with_pool(a_pool("a" * 63).asking(DRAM="6Gi").build()).settle()
    names = list(cluster.keepers())
    assert len(names) == 6
    assert all(len(name) <= 63 and "." not in name and not name.startswith("-") for name in names)


def test_growing_uses_nodes_without_a_unit_before_it_resizes_any() -> None:
    cluster = bound_pool("64Gi", 4)
    cluster.with_nodes(["node-5"]).settle()
    cluster.with_pool(a_pool().asking(DRAM="80Gi").build()).settle()
    assert [cluster.bytes_on(node) for node in nodes(5)] == [16 * GIB] * 5
    assert generations(cluster) == [1] * 5


def test_resizing_goes_one_node_at_a_time_and_waits_until_it_is_bound_again() -> None:
    cluster = bound_pool("64Gi", 4).with_pool(a_pool().asking(DRAM="80Gi").build())
    first = cluster.step()
    assert [action.node for action in set_units(first)] == ["node-1"]
    cluster.agents_apply()
    for _ in range(3):
        assert set_units(cluster.step()) == []
    cluster.agents_apply()
    assert [action.node for action in set_units(cluster.step())] == ["node-2"]
    cluster.settle()
    assert [cluster.bytes_on(node) for node in nodes(4)] == [20 * GIB] * 4
    assert generations(cluster) == [2] * 4


def test_a_resized_unit_gets_its_new_keeper_only_when_the_old_one_is_gone() -> None:
    cluster = bound_pool("16Gi", 1).with_pool(a_pool().asking(DRAM="20Gi").build())
    cluster.step()
    key = next(iter(cluster.keepers().values())).key
    plan = cluster.decide()
    assert [action.pod for action in deleted(plan)] == [key]
    assert created(plan) == []
    cluster.pods[key] = replace(cluster.pods[key], deleting=True)
    plan = cluster.decide()
    assert (deleted(plan), created(plan)) == ([], [])
    del cluster.pods[key]
    assert [action.keeper.unit.generation for action in created(cluster.decide())] == [2]


def test_shrinking_takes_bytes_off_evenly_and_drops_no_unit_that_is_wanted() -> None:
    cluster = bound_pool("64Gi", 4).with_pool(a_pool().asking(DRAM="32Gi").build()).settle()
    assert [cluster.bytes_on(node) for node in nodes(4)] == [8 * GIB] * 4
    assert generations(cluster) == [2] * 4


def test_a_tier_that_is_no_longer_asked_for_is_drained_node_by_node() -> None:
    cluster = bound_pool("32Gi", 2).with_pool(a_pool().build())
    plan = cluster.step()
    assert [[unit.release for unit in action.units] for action in set_units(plan)] == [["Drain"]]
    cluster.settle()
    assert cluster.units() == {}
    assert cluster.keepers() == {}


def test_a_lost_unit_is_made_anew_under_the_next_generation() -> None:
    cluster = bound_pool().change_view("node-2", UNIT, phase=UnitPhase.LOST, resident_bytes=0)
    cluster.settle()
    assert generations(cluster) == [1, 2, 1, 1]
    assert sorted(name[-2:] for name in cluster.keepers()) == ["g1", "g1", "g1", "g2"]


def test_a_keeper_that_ended_is_replaced_under_the_next_generation() -> None:
    cluster = bound_pool()
    key = next(key for key in cluster.pods if "node-3" in key.name)
    cluster.pods[key] = replace(cluster.pods[key], phase="Failed")
    assert set_units(cluster.decide()) == [], "the agent still sees the unit bound"
    cluster.agents_apply()
    cluster.settle()
    assert generations(cluster) == [1, 1, 2, 1]
    assert key not in cluster.pods


def test_keepers_that_end_again_and_again_are_replaced_no_faster_than_every_thirty_seconds() -> None:
    cluster = bound_pool("16Gi", 1)
    for _ in range(90):
        for key, pod in cluster.pods.items():
            cluster.pods[key] = replace(pod, phase="Failed", created_at=pod.created_at or cluster.now.text())
        cluster.agents_apply().wait(1.0).step()
    assert generations(cluster) == [3]


def test_a_keeper_that_somebody_deleted_is_made_again_once_the_unit_is_not_bound() -> None:
    cluster = bound_pool()
    key = next(key for key in cluster.pods if "node-3" in key.name)
    del cluster.pods[key]
    assert created(cluster.decide()) == [], "the agent still sees the unit bound"
    cluster.agents_apply()
    assert [action.keeper.name for action in created(cluster.decide())] == [key.name]


@pytest.mark.parametrize("silent_seconds", [11.0, 3600.0])
def test_silence_alone_changes_no_unit_and_deletes_no_keeper(silent_seconds: float) -> None:
    cluster = bound_pool()
    before, keepers = cluster.units(), cluster.keepers()
    cluster.change_agent("node-2", connected=False).wait(silent_seconds)
    cluster.change_view("node-2", UNIT, phase=UnitPhase.LOST)
    cluster.settle()
    assert (cluster.units(), cluster.keepers()) == (before, keepers)
    assert cluster.figures()["unknown"] == "16Gi"
    assert cluster.figures()["bound"] == "48Gi"


def test_a_restarted_operator_changes_nothing_on_the_nodes() -> None:
    cluster = bound_pool()
    agents = dict(cluster.agents)
    cluster.agents.clear()
    cluster.leading_since = cluster.now_seconds
    for _ in range(2):
        plan = cluster.step()
        assert set_units(plan) == []
        assert (created(plan), deleted(plan)) == ([], [])
    cluster.agents |= agents
    plan = cluster.step()
    assert set_units(plan) == []
    assert (created(plan), deleted(plan)) == ([], [])


@pytest.mark.parametrize(("policy", "release"), [("Drain", "Drain"), ("Release", "Now")])
def test_a_deleted_pools_memory_is_given_back_as_its_policy_says(policy: str, release: str) -> None:
    cluster = bound_pool("32Gi", 2, reclaimPolicy=policy)
    cluster.pools.clear()
    cluster.step()
    assert {unit.release for unit in cluster.units().values()} == {release}
    assert len(cluster.keepers()) == 2, (
        "keepers drain and unmount, so they live until the agent says Released"
    )
    cluster.settle()
    assert (cluster.units(), cluster.keepers()) == ({}, {})


def test_a_deleted_pools_memory_is_retained_by_default() -> None:
    cluster = bound_pool()
    before, keepers = cluster.units(), cluster.keepers()
    cluster.pools.clear()
    cluster.settle()
    assert (cluster.units(), cluster.keepers()) == (before, keepers)


def test_a_pool_made_anew_takes_over_retained_units_as_they_are() -> None:
    cluster = bound_pool()
    cluster.pools.clear()
    cluster.settle()
    anew = a_pool().asking(DRAM="64Gi").build()
    anew = anew.model_copy(update={"metadata": anew.metadata.model_copy(update={"uid": "uid-second"})})
    cluster.with_pool(anew).settle()
    assert {unit.pool_uid for unit in cluster.units().values()} == {"uid-second"}
    assert generations(cluster) == [1] * 4


def test_a_lost_unit_of_a_deleted_pool_is_forgotten() -> None:
    cluster = bound_pool("16Gi", 1)
    cluster.pools.clear()
    cluster.change_view("node-1", UNIT, phase=UnitPhase.LOST).settle()
    assert (cluster.units(), cluster.keepers()) == ({}, {})


def test_a_unit_made_again_never_reuses_a_generation_that_is_still_known() -> None:
    cluster = bound_pool("16Gi", 1).with_pool(a_pool().build()).settle()
    view = cluster.agents["node-1"].units
    assert view == ()
    cluster.with_pool(a_pool().asking(DRAM="16Gi").build())
    lingering = replace(
        bound_pool("16Gi", 1).agents["node-1"].units[0], phase=UnitPhase.RELEASED, generation=4
    )
    cluster.change_agent("node-1", units=(lingering,))
    cluster.step()
    assert generations(cluster) == [5]


def test_changed_policies_reach_the_units_without_making_them_anew() -> None:
    cluster = bound_pool()
    cluster.with_pool(a_pool().asking(DRAM="64Gi").with_spec(reclaimPolicy="Drain").build()).settle()
    assert {unit.reclaim_policy for unit in cluster.units().values()} == {"Drain"}
    assert generations(cluster) == [1] * 4


def test_a_deleted_nodes_units_are_forgotten_only_after_long_silence_and_never_while_its_agent_speaks() -> (
    None
):
    cluster = bound_pool()
    del cluster.nodes["node-4"]
    cluster.wait(120.0).step()
    assert cluster.bytes_on("node-4") == 16 * GIB
    cluster.change_agent("node-4", connected=False).wait(59.0).step()
    assert cluster.bytes_on("node-4") == 16 * GIB
    cluster.wait(2.0).step()
    assert cluster.bytes_on("node-4") == 0
    cluster.settle()
    assert "node-4" not in cluster.kvnodes
    assert cluster.figures()["admitted"] == "64Gi", "the pool has its bytes again on the nodes that are left"


def test_a_pool_that_may_not_act_any_more_keeps_its_lost_units_as_they_are() -> None:
    cluster = bound_pool()
    cluster.with_pool(a_pool().in_mode("Observe").asking(DRAM="64Gi").build())
    cluster.change_view("node-2", UNIT, phase=UnitPhase.LOST)
    for _ in range(3):
        cluster.step()
    assert generations(cluster) == [1] * 4
    condition = cluster.pool_condition(ConditionType.BOUND)
    assert condition is not None
    assert condition.status == "False"


def test_a_unit_that_is_not_reported_is_given_back_only_under_the_plan_that_asks_for_it() -> None:
    cluster = bound_pool("16Gi", 1, reclaimPolicy="Drain")
    cluster.pools.clear()
    cluster.step()
    (unit,) = cluster.units().values()
    assert unit.release == "Drain"
    asked = frozenset({(unit.name, unit.generation)})
    for plan, applied, releases in ((9, 9, frozenset()), (9, 8, asked), (0, 9, asked)):
        cluster.change_agent(
            "node-1", units=(), plan_revision=plan, applied_revision=applied, plan_releases=releases
        )
        cluster.step()
        assert list(cluster.units().values()) == [unit], (plan, applied, releases)
    cluster.change_agent("node-1", plan_revision=1, applied_revision=1, plan_releases=asked).step()
    assert cluster.units() == {}, "however large the revision of its KVNode is"


@pytest.mark.parametrize("evicted", [True, False])
def test_a_retained_unit_of_a_deleted_pool_gets_a_keeper_again_when_it_lost_its_own(evicted: bool) -> None:
    cluster = bound_pool("16Gi", 1)
    cluster.pools.clear()
    cluster.settle()
    ((key, pod),) = cluster.pods.items()
    if evicted:
        cluster.pods[key] = replace(pod, phase="Failed")
    else:
        del cluster.pods[key]
    cluster.change_view("node-1", UNIT, phase=UnitPhase.PENDING).settle()
    (keeper,) = cluster.keepers().values()
    assert keeper.phase == "Running"
    assert generations(cluster) == [2]
    (unit,) = cluster.units().values()
    assert unit.release == "None"
