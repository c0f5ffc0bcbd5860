"""Slots are owned by their group exactly while it says `onDelete: Remove`."""

from __future__ import annotations

import pytest

from kvpool.api.supernode import EvidenceClass
from kvpool.model.decisions import OwnSlot
from kvpool.plan.failover import failover_plan
from tests.builders.failover import GROUP, World, two_racks

FREEZE, REMOVE = {"onDelete": "FreezeLast"}, {"onDelete": "Remove"}


def owners(world: World) -> list[str]:
    return [owner.uid for owner in world.slot().metadata.owner_references]


def changes(world: World) -> list[OwnSlot]:
    """What the next plan would change about owners."""
    plan = failover_plan(world.operator.snapshot(), world.now)
    return [action for action in plan.actions if isinstance(action, OwnSlot)]


@pytest.mark.parametrize(("routing", "owned"), [(FREEZE, []), (REMOVE, ["uid-chat"])])
def test_a_new_slot_is_owned_as_its_group_says(routing: dict[str, str], owned: list[str]) -> None:
    world = two_racks().with_group(routing=routing).start().run(20, step=1.0)
    assert owners(world) == owned
    assert ("OwnSlot", "inference/chat-decode-0") not in world.api.writes


def test_a_slot_follows_an_edit_there_and_back_with_one_write_each() -> None:
    world = two_racks().start().run(20, step=1.0)
    for routing, owned in ((REMOVE, ["uid-chat"]), (FREEZE, [])):
        world.api.writes.clear()
        world.with_group(routing=routing).run(10, step=1.0)
        assert owners(world) == owned
        assert world.api.writes.count(("OwnSlot", "inference/chat-decode-0")) == 1


def test_the_owner_of_another_group_of_that_name_is_replaced() -> None:
    world = two_racks().with_group(routing=REMOVE).start().run(20, step=1.0)
    metadata = world.api.groups[GROUP].metadata.model_copy(update={"uid": "uid-another"})
    world.api.groups[GROUP] = world.api.groups[GROUP].model_copy(update={"metadata": metadata})
    world.run(10, step=1.0)
    assert owners(world) == ["uid-another"]


def test_nothing_is_changed_about_owners_while_the_slot_moves() -> None:
    world = two_racks().start().run(20, step=1.0)
    world.report("node-1", "acc-0", EvidenceClass.FATAL)
    world.round()
    assert world.open_remaps()
    world.with_group(routing=REMOVE).operator.refresh()
    assert not changes(world)
    assert owners(world.run(20, step=1.0)) == ["uid-chat"]


def test_nothing_is_changed_about_owners_in_a_pause() -> None:
    world = two_racks().start().run(20, step=1.0)
    world.paused = True
    world.with_group(routing=REMOVE).operator.refresh()
    assert not changes(world)
    world.paused = False
    assert len(changes(world)) == 1
