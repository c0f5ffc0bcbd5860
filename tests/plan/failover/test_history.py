"""How long the record of a slot's moves grows."""

from __future__ import annotations

from kvpool.api.remap import Remap, RemapPhase
from kvpool.model.decisions import DeleteRemap
from kvpool.model.ids import ObjectKey
from kvpool.plan.failover import failover_plan
from kvpool.plan.history import KEPT
from tests.builders.failover import NAMESPACE, World, two_racks

SLOT = "chat-decode-0"


def with_history(
    world: World, count: int, *, cancelled: bool = False, from_epoch: int = 1
) -> list[ObjectKey]:
    """Add records of earlier moves, oldest first."""
    (last,) = world.api.remaps.values()
    keys = []
    for number in range(1, count + 1):
        name = f"{SLOT}-{from_epoch}-{number}"
        phase = RemapPhase.CANCELLED if cancelled else RemapPhase.SUCCEEDED
        update = {"epoch": number + 1, "from_epoch": from_epoch, "cancel": cancelled}
        remap: Remap = last.model_copy(
            update={
                "metadata": last.metadata.model_copy(update={"name": name, "uid": f"uid-{name}"}),
                "spec": last.spec.model_copy(update=update),
                "status": last.status.model_copy(update={"phase": phase}),
            }
        )
        keys.append(ObjectKey(NAMESPACE, name))
        world.api.remaps[keys[-1]] = remap
    return keys


def serving_world() -> World:
    return two_racks().start().run(80)


def test_a_slot_keeps_its_newest_moves_and_the_one_that_gave_its_epoch() -> None:
    world = serving_world()
    (present,) = world.api.remaps
    keys = with_history(world, 60)
    world.run(5)
    assert set(world.api.remaps) == {present, *keys[-KEPT + 1 :]}


def test_moves_that_left_the_present_epoch_are_kept() -> None:
    world = serving_world()
    with_history(world, 30, from_epoch=world.slot().spec.epoch)
    world.operator.refresh()
    plan = failover_plan(world.operator.snapshot(), world.now)
    assert not [action for action in plan.actions if isinstance(action, DeleteRemap)]


def test_moves_that_a_person_cancelled_are_kept() -> None:
    world = serving_world()
    (present,) = world.api.remaps
    vetoes = with_history(world, 30, cancelled=True)
    world.run(5)
    assert set(world.api.remaps) == {present, *vetoes}


def test_a_paused_cluster_forgets_nothing() -> None:
    world = serving_world()
    keys = with_history(world, 30)
    world.paused = True
    world.run(3)
    assert set(keys) <= set(world.api.remaps)
