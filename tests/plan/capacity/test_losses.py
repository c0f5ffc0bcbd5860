"""Memory that was lost: when it is made anew, and what people are told."""

from __future__ import annotations

from kvpool.api.kvnode import UnitPhase
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool

UNIT = "inference.chat.dram.n0"


def bound_pool(size: str = "64Gi", count: int = 4, **spec: object) -> Cluster:
    cluster = a_cluster().with_nodes(nodes(count)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    return cluster.with_pool(a_pool().asking(DRAM=size).with_spec(**spec).build()).settle()


def generations(cluster: Cluster) -> list[int]:
    return [unit.generation for unit in cluster.units().values()]


def test_people_are_told_of_a_lost_unit_once_on_its_pool() -> None:
    cluster = bound_pool().change_view("node-2", UNIT, phase=UnitPhase.LOST, resident_bytes=0)
    plan = cluster.step()
    (told,) = [event for event in plan.events if event.reason.code == "UnitLost"]
    assert (told.kind, str(told.key), told.event_type) == ("KVPool", "inference/chat", "Warning")
    assert told.reason.message.startswith(f"node-2: unit {UNIT} was lost")
    assert told.reason.message.endswith("; it is bound anew as generation 2")
    assert [event for event in cluster.step().events if event.reason.code == "UnitLost"] == []


def test_memory_whose_keeper_was_deleted_is_lost_and_made_anew_under_the_next_generation() -> None:
    cluster = bound_pool()
    key = next(key for key in cluster.pods if "node-2" in key.name)
    del cluster.pods[key]
    plan = cluster.step()
    assert [event.reason.code for event in plan.events if event.event_type == "Warning"] == ["KeeperGone"]
    cluster.agents_apply()
    cluster.settle()
    assert generations(cluster) == [1, 2, 1, 1]


def test_a_unit_that_no_keeper_ever_filled_keeps_its_generation() -> None:
    cluster = bound_pool()
    key = next(key for key in cluster.pods if "node-2" in key.name)
    del cluster.pods[key]
    cluster.change_view("node-2", UNIT, phase=UnitPhase.ALLOCATING, resident_bytes=0)
    cluster.settle()
    assert generations(cluster) == [1, 1, 1, 1]
    assert len(cluster.keepers()) == 4
