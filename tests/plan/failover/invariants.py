"""What must hold after every single event of the model world."""

from __future__ import annotations

from kvpool.api import EngineSlot
from kvpool.api.remap import RemapKind
from kvpool.model.ids import DeviceRef, ObjectKey
from kvpool.plan.moves import devices_of
from tests.builders.failover import World


class Invariants:
    """Remembers what was seen, so that it can tell when something comes back that may not."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.bound: dict[tuple[ObjectKey, int], tuple[DeviceRef, ...]] = {}
        self.newest: dict[ObjectKey, int] = {}

    def check(self) -> None:
        self.a_device_is_promised_once()
        self.a_device_holds_one_slot()
        self.a_seat_stays_claimed_for_its_slot()
        self.one_engine_serves_a_slot()
        self.epochs_grow_and_are_never_used_twice()
        self.a_soft_move_waits_for_weight_zero()

    def _standing(self) -> list[tuple[ObjectKey, EngineSlot]]:
        """Slots that are not being deleted; the others may have given their devices back already."""
        slots = self.world.api.slots.items()
        return [(key, slot) for key, slot in slots if slot.metadata.deletion_timestamp is None]

    def a_device_is_promised_once(self) -> None:
        """S1: at most one move that is not over takes a device, and nobody else holds it."""
        promised: dict[DeviceRef, str] = {}
        holders = {
            device: str(key) for key, slot in self._standing() for device in devices_of(slot.spec.seats)
        }
        for remap in self.world.open_remaps():
            slot = f"{remap.metadata.namespace}/{remap.spec.slot}"
            for device in devices_of(remap.spec.to):
                assert device not in promised, f"S1: {device} is promised to {promised[device]} and {slot}"
                promised[device] = slot
                assert holders.get(device, slot) == slot, f"S1: {device} holds {holders[device]}, not {slot}"

    def a_device_holds_one_slot(self) -> None:
        """S1: two slots never have a seat on the same device."""
        holders: dict[DeviceRef, ObjectKey] = {}
        for key, slot in self._standing():
            for device in devices_of(slot.spec.seats):
                assert device not in holders, f"S1: {device} holds {holders[device]} and {key}"
                holders[device] = key

    def a_seat_stays_claimed_for_its_slot(self) -> None:
        """S1: what a slot holds, nobody else has claimed, and nobody gave back."""
        for key, slot in self._standing():
            for node, device in devices_of(slot.spec.seats):
                claims = self.world.api.kvnodes[node].spec.claims
                owners = [claim.slot for claim in claims if claim.device == device]
                assert owners == [str(key)], f"S1: {node}/{device} holds {key} and is claimed for {owners}"

    def one_engine_serves_a_slot(self) -> None:
        """S2, S3: engines that really run, not what anybody was told."""
        serving: dict[ObjectKey, tuple[str, int]] = {}
        for host, slot, epoch in self.world.serving():
            assert slot not in serving, f"S2: {slot} is served by {serving[slot]} and {(host, epoch)}"
            serving[slot] = (host, epoch)

    def epochs_grow_and_are_never_used_twice(self) -> None:
        """S2, S18: an epoch means one set of seats, and a slot's epoch never falls."""
        for key, slot in self.world.api.slots.items():
            if slot.spec.epoch:  # a slot that was made anew begins unbound
                assert slot.spec.epoch >= self.newest.get(key, 0), f"S2: {key} fell to {slot.spec.epoch}"
                self.newest[key] = slot.spec.epoch
                seats = devices_of(slot.spec.seats)
                assert self.bound.setdefault((key, slot.spec.epoch), seats) == seats, (
                    f"S2: {key} epoch reused"
                )
        epochs = [epoch for _, epoch in self.bound]
        assert len(epochs) == len(set(epochs)), "S2: two slots got the same epoch"

    def a_soft_move_waits_for_weight_zero(self) -> None:
        """S4: before the engine of a working device is told to stop, routers send it nothing."""
        world = self.world
        for remap in world.open_remaps():
            key = ObjectKey(remap.metadata.namespace, remap.spec.slot)
            slot = world.api.slots.get(key)
            if remap.spec.kind is not RemapKind.VOLUNTARY or slot is None:
                continue
            claimed = any(
                claim.slot == str(key) and claim.epoch == remap.spec.epoch
                for kvnode in world.api.kvnodes.values()
                for claim in kvnode.spec.claims
            )
            if (
                claimed
                and slot.spec.epoch == remap.spec.from_epoch
                and key not in self._hard(remap.spec.from_)
            ):
                assert not world.router.get(key.name), f"S4: {key} is stopped while routers send it requests"

    def _hard(self, seats: object) -> frozenset[ObjectKey]:
        """Slots whose device died during a soft move: nothing is waited for any more."""
        dead = {
            DeviceRef(host.name, device)
            for host in self.world.hosts.values()
            for device, found in host.devices.items()
            if found or not host.alive
        }
        return frozenset(
            key
            for key, slot in self.world.api.slots.items()
            if dead.intersection(devices_of(slot.spec.seats))
        )


def settled(world: World) -> None:
    """The end of every run without standing faults: all slots served at full weight, nothing left over."""
    assert not world.open_remaps(), [
        (remap.metadata.name, remap.status.phase, world.operator.last.explanations)
        for remap in world.open_remaps()
    ]
    served = {slot: (host, epoch) for host, slot, epoch in world.serving()}
    claimed = sorted(
        (DeviceRef(node, claim.device), claim.slot)
        for node, kvnode in world.api.kvnodes.items()
        for claim in kvnode.spec.claims
    )
    seated = sorted(
        (device, str(key)) for key, slot in world.api.slots.items() for device in devices_of(slot.spec.seats)
    )
    assert claimed == seated, f"claims {claimed}, seats {seated}"
    for key, slot in world.api.slots.items():
        assert slot.spec.seats, f"{key} has no place: {world.operator.last.explanations}"
        assert served.get(key) == (slot.spec.seats[0].node, slot.spec.epoch), f"{key} is not served: {served}"
        assert world.router[key.name] == 100, f"{key} has weight {world.router[key.name]}"


def is_settled(world: World) -> bool:
    try:
        settled(world)
    except AssertionError:
        return False
    return True
