"""What the operator knows of objects that it cannot read."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

from kvpool.cluster.resources import ENGINE_SLOTS, KV_NODES, KV_POOLS, NODES, Obj, Resource
from kvpool.cluster.store import EventType
from kvpool.control.facts import Facts
from kvpool.control.metrics import OperatorMetrics
from kvpool.model.ids import ObjectKey

POOL: dict[str, Any] = {"store": {"none": {}}}


def tell(facts: Facts, resource: Resource, name: str, version: int, **parts: object) -> None:
    metadata: Obj = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    if resource not in (NODES, KV_NODES):
        metadata["namespace"] = "inference"
    facts.store.observe(resource, EventType.MODIFIED, {"metadata": metadata, **parts})


def test_an_object_of_a_newer_version_is_unreadable_and_not_gone() -> None:
    facts = Facts(OperatorMetrics(CollectorRegistry()))
    key = ObjectKey("inference", "chat")
    tell(facts, KV_POOLS, "chat", 1, spec=POOL)
    assert (set(facts.pools()), facts.unreadable()) == ({key}, frozenset())
    tell(facts, KV_POOLS, "chat", 2, spec=POOL | {"mode": "FromALaterVersion"})
    assert not facts.pools()
    assert facts.unreadable() == {("KVPool", key)}
    tell(facts, KV_POOLS, "chat", 3, spec=POOL)
    assert (set(facts.pools()), facts.unreadable()) == ({key}, frozenset())


def test_slots_and_nodes_that_cannot_be_read_are_named_by_their_kind() -> None:
    facts = Facts(OperatorMetrics(CollectorRegistry()))
    tell(facts, ENGINE_SLOTS, "chat-decode-0", 1, spec={"role": "Nonsense"})
    tell(facts, NODES, "node-1", 1, status={"conditions": "none"})
    assert facts.unreadable() == {
        ("EngineSlot", ObjectKey("inference", "chat-decode-0")),
        ("Node", ObjectKey("", "node-1")),
    }


def test_a_new_leader_rises_above_what_leaders_can_have_reached_and_no_higher() -> None:
    facts = Facts(OperatorMetrics(CollectorRegistry()))
    tell(facts, KV_NODES, "node-1", 1, spec={"operatorEpoch": 9})
    tell(facts, KV_NODES, "node-2", 2, spec={"operatorEpoch": 2**42 - 1})
    assert facts.highest_epoch(1) == 9
