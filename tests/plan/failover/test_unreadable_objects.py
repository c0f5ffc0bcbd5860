"""Slots and nodes that are there and cannot be read keep what they hold."""

from __future__ import annotations

from dataclasses import replace

from kvpool.model.decisions import CreateSlot, ForgetSlot, ReleaseClaims
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Snapshot
from kvpool.plan.failover import failover_plan
from tests.builders.failover import NAMESPACE, World, two_racks

SLOT = ObjectKey(NAMESPACE, "chat-decode-0")


def serving_world() -> World:
    return two_racks().start().run(80)


def decided(world: World, snapshot: Snapshot) -> list[type]:
    return [type(action) for action in failover_plan(snapshot, world.now).actions]


def test_the_claims_of_a_slot_that_cannot_be_read_are_never_released() -> None:
    world = serving_world()
    gone = replace(world.operator.snapshot(), slots={})
    assert ReleaseClaims in decided(world, gone), "a slot that is known to be gone holds nothing"
    unreadable = replace(gone, unreadable=frozenset({("EngineSlot", SLOT)}))
    assert ReleaseClaims not in decided(world, unreadable)
    assert CreateSlot not in decided(world, unreadable)


def test_a_deleted_slot_waits_for_a_node_that_cannot_be_read() -> None:
    world = serving_world().set_instances(0)
    for _ in range(2):
        world.tick(1.0)
        world.round()
    assert world.slot().metadata.deletion_timestamp is not None
    gone = replace(world.operator.snapshot(), kvnodes={})
    assert ForgetSlot in decided(world, gone)
    unreadable = replace(gone, unreadable=frozenset({("KVNode", ObjectKey("", "node-1"))}))
    assert ForgetSlot not in decided(world, unreadable)
