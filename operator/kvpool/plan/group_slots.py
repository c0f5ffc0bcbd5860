"""The slots of a group."""

from kvpool.api.engineslot import EngineSlot
from kvpool.api.pdgroup import PDGroup
from kvpool.model.snapshot import Snapshot


def slots_of(snapshot: Snapshot, group: PDGroup) -> tuple[EngineSlot, ...]:
    """Return the group's slots by name."""
    return tuple(
        slot
        for key, slot in sorted(snapshot.slots.items())
        if key.namespace == group.metadata.namespace and slot.spec.pd_group == group.metadata.name
    )
