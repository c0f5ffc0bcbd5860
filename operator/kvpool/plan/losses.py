"""Telling people that memory was lost: what was in it is gone, and the unit is bound anew."""

from collections.abc import Iterable, Iterator

from kvpool.model.decisions import Action, Announce, Reason, SetUnits
from kvpool.model.ids import ObjectKey
from kvpool.plan.keepers import must_be_made_anew
from kvpool.plan.scene import Scene


def announce_losses(scene: Scene, actions: Iterable[Action]) -> Iterator[Announce]:
    """Return an event about the pool of every unit that these actions decide anew because it was lost."""
    for action in actions:
        if not isinstance(action, SetUnits):
            continue
        ground = scene.grounds[action.node]
        generations = {unit.name: unit.generation for unit in action.units}
        for unit in ground.units:
            why = must_be_made_anew(scene, ground, unit)
            pool, generation = ObjectKey.of(unit.pool), generations.get(unit.name, 0)
            if why is not None and generation > unit.generation and pool in scene.snapshot.pools:
                text = f"{action.node}: {why.message}; it is bound anew as generation {generation}"
                yield Announce("KVPool", pool, "Warning", Reason(why.code, text))
