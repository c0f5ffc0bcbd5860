"""Slots whose claims went with a KVNode that somebody deleted or edited serve again, under a new epoch."""

from __future__ import annotations

import pytest

from kvpool.api import KVNode
from kvpool.api.remap import RemapKind
from kvpool.plan.settling import ORPHAN_SECONDS
from tests.builders.failover import World
from tests.plan.failover.invariants import settled
from tests.plan.failover.serving import SLOT, broken, serving_world


def delete_kvnode(world: World, node: str) -> World:
    """The operator makes the object anew; its claims are gone."""
    metadata = {"name": node, "uid": f"uid-again-{node}", "resourceVersion": world.api.version()}
    status = {"bootID": f"{node}-boot-1"}
    world.api.kvnodes[node] = KVNode.parse({"metadata": metadata, "status": status})
    return world


def test_a_slot_whose_claim_was_deleted_serves_again_under_a_new_epoch() -> None:
    world = serving_world()
    before = world.slot().spec.epoch
    delete_kvnode(world, "node-1").run(5)
    remap = world.succeeded()[-1]
    assert (remap.spec.kind, remap.spec.from_epoch) == (RemapKind.RESTORATIVE, before)
    assert "node-1/acc-0: the claim is gone" in remap.spec.cause
    assert [slot.name for _, slot, _ in world.serving()] == [SLOT]
    settled(world.run(90, step=1.0))


def test_nothing_moves_for_a_kvnode_that_nobody_has_a_seat_on() -> None:
    world = delete_kvnode(serving_world(), "node-3").run(5)
    assert world.place() == "node-1/acc-0"
    assert not world.open_remaps()


def test_a_new_leader_waits_until_its_lists_agree_before_it_misses_a_claim() -> None:
    world = serving_world()
    world.lead()
    delete_kvnode(world, "node-1").run(ORPHAN_SECONDS - 2)
    assert not world.open_remaps()
    assert world.place() == "node-1/acc-0"
    world.run(10)
    assert world.succeeded()[-1].spec.kind is RemapKind.RESTORATIVE
    assert [slot.name for _, slot, _ in world.serving()] == [SLOT]


@pytest.mark.parametrize("node", ["node-1", "node-2"])
@pytest.mark.parametrize("rounds", range(1, 6))
def test_a_move_whose_claims_are_deleted_at_any_moment_ends_with_a_slot_that_serves(
    node: str, rounds: int
) -> None:
    world = broken(serving_world())
    for _ in range(rounds):
        world.tick(0.25)
        world.round()
    delete_kvnode(world, node).run(150, step=1.0)
    assert [slot.name for _, slot, _ in world.serving()] == [SLOT]
    assert not world.open_remaps()
    settled(world)
