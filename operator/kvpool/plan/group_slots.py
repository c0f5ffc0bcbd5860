"""The slots of a group."""

from kvpool.api.engineslot import EngineSlot
from kvpool.api.pdgroup import PDGroup
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Snapshot


def slots_of(snapshot: Snapshot, group: PDGroup) -> tuple[EngineSlot, ...]:
    """Return the group's slots by name."""
    return snapshot.slots_by_group.get(ObjectKey(group.metadata.namespace, group.metadata.name), ())
