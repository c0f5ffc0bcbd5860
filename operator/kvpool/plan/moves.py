"""The Remaps of each slot: which one is open, how often a move was tried, and what was already given up."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kvpool.api.engineslot import EngineSlot, Seat
from kvpool.api.remap import Remap, RemapPhase, StageName
from kvpool.model.ids import DeviceRef, ObjectKey
from kvpool.model.snapshot import Snapshot


def key_of(thing: EngineSlot | Remap) -> ObjectKey:
    """Return the object's key."""
    return ObjectKey(thing.metadata.namespace, thing.metadata.name)


def slot_of(remap: Remap) -> ObjectKey:
    """Return the key of the slot that a Remap moves."""
    return ObjectKey(remap.metadata.namespace, remap.spec.slot)


def attempt_of(remap: Remap) -> int:
    """Return the attempt that a Remap's name ends in: `<slot>-<epoch being left>-<attempt>`."""
    last = remap.metadata.name.rpartition("-")[2]
    return int(last) if last.isdecimal() else 0


def is_open(remap: Remap) -> bool:
    """Whether the move is not over."""
    return not remap.status.phase.is_final


class Moves:
    """All Remaps of a snapshot, by slot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        by_slot: defaultdict[ObjectKey, list[Remap]] = defaultdict(list)
        for _, remap in sorted(snapshot.remaps.items()):
            by_slot[slot_of(remap)].append(remap)
        self._by_slot: Mapping[ObjectKey, list[Remap]] = by_slot

    def of(self, slot: ObjectKey) -> Iterable[Remap]:
        """Every Remap of a slot."""
        return self._by_slot.get(slot, ())

    def open_of(self, slot: ObjectKey) -> Remap | None:
        """The slot's move that is not over; the newest epoch's when there are several."""
        running = [remap for remap in self.of(slot) if is_open(remap)]
        return max(running, key=lambda remap: (remap.spec.epoch, remap.metadata.name), default=None)

    def bound_by(self, slot: EngineSlot) -> Remap | None:
        """The Remap that gave the slot the epoch it has."""
        if not slot.spec.epoch:
            return None
        same = (remap for remap in self.of(key_of(slot)) if remap.spec.epoch == slot.spec.epoch)
        return next(same, None)

    def attempts_from(self, slot: EngineSlot) -> tuple[Remap, ...]:
        """Every Remap that left, or tried to leave, the slot's present epoch, oldest attempt first."""
        tried = [remap for remap in self.of(key_of(slot)) if remap.spec.from_epoch == slot.spec.epoch]
        return tuple(sorted(tried, key=attempt_of))

    def last_off(self, slot: ObjectKey, device: DeviceRef) -> Remap | None:
        """The newest Remap that took the slot off a device; None when none did."""
        left = [remap for remap in self.of(slot) if device in devices_of(remap.spec.from_)]
        return max(left, key=lambda remap: (remap.spec.epoch, attempt_of(remap)), default=None)

    def is_withdrawn(self, slot: EngineSlot) -> bool:
        """Whether the holder of the slot's epoch was told to stop: that epoch never serves again.

        From the claim of its successor on, the seat is out of the old node's plan. An attempt that failed
        later leaves the epoch withdrawn, so that a stop once confirmed stays true.
        """
        return slot.spec.epoch > 0 and any(self.was_claimed(remap) for remap in self.attempts_from(slot))

    def boot_left(self, slot: EngineSlot, node: str) -> str:
        """Return the boot of a node under which the slot's epoch was withdrawn there; empty when unknown.

        The first move that was claimed tells: from then on the node was never told of the seat again, so in
        another boot nothing of that epoch runs.
        """
        claimed = (remap for remap in self.attempts_from(slot) if self.was_claimed(remap))
        return next((boot for remap in claimed if (boot := _boot_of(remap, node))), "")

    def is_of_earlier_boot(self, slot: EngineSlot, node: str) -> bool:
        """Whether a node booted anew since a move that is to leave it was opened, and said so."""
        remap, agent = self.open_of(key_of(slot)), self._snapshot.agents.get(node)
        if remap is None or agent is None or remap.spec.from_epoch != slot.spec.epoch:
            return False
        boot = _boot_of(remap, node)
        return bool(boot and agent.boot_id and boot != agent.boot_id)

    def was_claimed(self, remap: Remap) -> bool:
        """Whether any device of the new seats was claimed for this move."""
        if any(stage.name is StageName.CLAIM for stage in remap.status.stages):
            return True
        return is_open(remap) and any(holds_claim(self._snapshot, remap, seat) for seat in remap.spec.to)

    def reserved(self) -> frozenset[DeviceRef]:
        """Devices that open moves are about to take."""
        return frozenset(
            device
            for remaps in self._by_slot.values()
            for remap in remaps
            if is_open(remap)
            for device in devices_of(remap.spec.to)
        )


def _boot_of(remap: Remap, node: str) -> str:
    return next((left.boot_id for left in remap.spec.from_boots if left.node == node), "")


def devices_of(seats: Iterable[Seat]) -> tuple[DeviceRef, ...]:
    """Return every device of some seats."""
    return tuple(DeviceRef(seat.node, device) for seat in seats for device in seat.devices)


def is_claimed(snapshot: Snapshot, remap: Remap) -> bool:
    """Whether the new seats' devices are all claimed for this move's epoch."""
    return all(holds_claim(snapshot, remap, seat) for seat in remap.spec.to)


def holds_claim(snapshot: Snapshot, remap: Remap, seat: Seat) -> bool:
    """Whether one new seat's devices are claimed for this move's epoch."""
    kvnode = snapshot.kvnodes.get(seat.node)
    slot = str(slot_of(remap))
    claimed = {
        claim.device
        for claim in (kvnode.spec.claims if kvnode is not None else ())
        if claim.slot == slot and claim.epoch == remap.spec.epoch
    }
    return claimed.issuperset(seat.devices)


def was_cancelled_by_person(remap: Remap) -> bool:
    """Whether somebody stopped the move."""
    return remap.spec.cancel and remap.status.phase is RemapPhase.CANCELLED
