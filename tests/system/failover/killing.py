"""A move during which the operator is killed at deciding writes, and all that must hold after it."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from devcluster.process import ManagedProcess
from devcluster.rest import JsonObject
from tests.harness.waiting import wait_until
from tests.system.failover.figures import record
from tests.system.failover.manifests import GROUP
from tests.system.failover.people import ask_for_instances, maintain
from tests.system.failover.world import FAULT_POINT, NODES, FailoverWorld, node_of, serves

WRITES = ("OpenRemap", "ClaimDevices", "BindSlot", "WriteSlotStatus", "WriteRemapStatus", "ReleaseClaims")
NEW_LEADER_SECONDS = 20.0
LEASE = "kvpool-operator"
DEATH_SECONDS = 30.0
"""For an operator to start, to lead and to come to its point."""


def break_through_kills(world: FailoverWorld, *points: str) -> None:
    """Break a device while the operator is to die at `points`, one after the other; look at the end."""
    name, left = world.a_slot()
    _move_through_kills(world, "Restorative", name, points, lambda: _ignore(world.break_device(left)))


def maintain_through_kills(world: FailoverWorld, *points: str) -> None:
    """Put a slot's node under maintenance while the operator is to die at `points`; look at the end."""
    name, left = world.a_slot()
    try:
        _move_through_kills(world, "Voluntary", name, points, lambda: maintain(world, left))
    finally:
        maintain(world)


def grow_through_kills(world: FailoverWorld, *points: str) -> None:
    """Ask for one slot more while the operator is to die at `points`; look at the end."""
    instances = len(world.slots())
    name = f"{GROUP}-decode-{instances}"
    try:
        _move_through_kills(world, "Initial", name, points, lambda: ask_for_instances(world, instances + 1))
    finally:
        ask_for_instances(world, instances)


def around(*writes: str) -> tuple[str, ...]:
    """The points before and after each of these writes, in turn."""
    return tuple(f"{moment}:{write}" for write in writes for moment in ("before", "after"))


def _ignore(_: object) -> None:
    return None


def _move_through_kills(
    world: FailoverWorld, kind: str, name: str, points: Sequence[str], begin: Callable[[], None]
) -> None:
    awaited = AwaitedMove.of(world, kind, name)
    led_at = _die_at(world, points, begin)
    world.wait_until(awaited.is_over, NEW_LEADER_SECONDS, "the move's end")
    record("operator killed", kind=kind, points=points, seconds=round(time.monotonic() - led_at, 2))
    awaited.assert_made_once()


@dataclass(frozen=True)
class AwaitedMove:
    """A move that is about to begin, and how everything was before it."""

    world: FailoverWorld
    kind: str
    slot: str
    left: str
    """The node that the slot leaves; empty for a first place."""
    before: Mapping[str, int]
    """The slots' epochs."""
    began_at: dt.datetime

    @classmethod
    def of(cls, world: FailoverWorld, kind: str, slot: str) -> AwaitedMove:
        """Note how everything is now."""
        left = world.seats().get(slot, "")
        return cls(world, kind, slot, left, world.epochs(), dt.datetime.now(dt.UTC))

    @property
    def epoch_before(self) -> int:
        """0 for a slot that is not there yet."""
        return self.before.get(self.slot, 0)

    def remaps(self) -> list[JsonObject]:
        """What leaves the slot's place of before."""
        return self.world.remaps(self.slot, self.epoch_before)

    def is_over(self) -> bool:
        """Whether the slot serves in a new place, its Remap is final and the old place was given back."""
        slot = self.world.slots().get(self.slot)
        if slot is None:
            return False
        return (
            slot["spec"].get("epoch", 0) > self.epoch_before
            and serves(slot)
            and all(remap["status"].get("phase") == "Succeeded" for remap in self.remaps())
            and not (self.left and self.world.kvnode(self.left)["spec"].get("claims"))
        )

    def assert_made_once(self) -> None:
        """One Remap, one bind, one new epoch, one claim and one engine under it; nothing else has moved."""
        world, name = self.world, self.slot
        slot = world.slot(name)
        epoch, taken = slot["spec"]["epoch"], node_of(slot)
        assert epoch > self.epoch_before
        assert taken != self.left
        others = {key: value for key, value in world.epochs().items() if key != name}
        assert others == {key: value for key, value in self.before.items() if key != name}
        (remap,) = self.remaps()
        assert (remap["spec"]["epoch"], remap["spec"]["kind"]) == (epoch, self.kind)
        binds = [
            one
            for one in world.installed.plane.audit.writes(since=self.began_at)
            if (one.resource, one.subresource, one.name) == ("engineslots", "", name) and one.verb != "create"
        ]
        assert len(binds) == 1, [str(one) for one in binds]
        claimed = [
            (node, claim["epoch"])
            for node in NODES
            for claim in world.kvnode(node)["spec"].get("claims", [])
            if claim["slot"].endswith(f"/{name}")
        ]
        assert claimed == [(taken, epoch)]
        serving = {node: world.engine_health(node) for node in NODES}
        assert [node for node, (_, held) in serving.items() if held == epoch] == [taken]
        if self.left:
            assert not any(held == self.epoch_before for _, held in serving.values())


def _die_at(world: FailoverWorld, points: Sequence[str], begin: Callable[[], None]) -> float:
    """Begin the move and see the operator die at each point in turn; return when the last one leads."""
    operator = world.replace_operator(points[0])
    doomed = operator.pid
    assert operator.running
    # What is started in the place of a dead one is to die at the next point, and the last one at none.
    following = [*points[1:], ""]
    operator.env[FAULT_POINT] = following[0]
    begin()
    for place, point in enumerate(points):
        doomed = _wait_for_death(operator, doomed, point)
        operator.env[FAULT_POINT] = "".join(following[place + 1 : place + 2])
        _give_up_lease(world)
    return world.wait_for_leader()


def _wait_for_death(operator: ManagedProcess, doomed: int, point: str) -> int:
    """Wait until another process runs in the place of the doomed one; return its id."""
    what = f"the operator to die {point}"
    wait_until(lambda: operator.running and operator.pid != doomed, DEATH_SECONDS, what)
    return operator.pid


def _give_up_lease(world: FailoverWorld) -> None:
    """Spare the next operator the end of a Lease whose holder is known to be dead."""
    change = {"spec": {"holderIdentity": ""}}
    world.api.patch("coordination.k8s.io/v1", "Lease", LEASE, change, world.installed.namespace)
