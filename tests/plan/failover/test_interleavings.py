"""Every order of small events of one move, with an operator that dies before or after any write."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator

import pytest

from kvpool.api.supernode import EvidenceClass
from kvpool.model import decisions as d
from kvpool.plan.moves import devices_of
from tests.builders.failover import World, two_racks
from tests.builders.failover_operator import Operator
from tests.plan.failover.invariants import Invariants, settled

DEPTH = 9
MOST_DEATHS = 2
WRITES = ("OpenRemap", "ClaimDevices", "BindSlot", "WriteSlotStatus", "WriteRemapStatus", "ReleaseClaims")


class Branch:
    """One history: the world, operators that died with writes on their way, and what was done."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.dead: list[Operator] = []
        self.deaths = 0
        self.watch = Invariants(world)
        self.path: tuple[str, ...] = ()

    def fork(self) -> Branch:
        """A copy that shares everything that never changes."""
        api, operators = self.world.api, [self.world.operator, *self.dead]
        frozen: list[object] = [*api.kvnodes.values(), *api.slots.values(), *api.remaps.values()]
        frozen += [*api.groups.values(), *api.supernodes.values(), *api.pools.values()]
        frozen += [view for operator in operators for view in operator.views.values()]
        frozen += [obj for operator in operators for kind in operator.cache.values() for obj in kind.values()]
        frozen += [action for operator in operators for action in operator.todo]
        frozen += [operator.last for operator in operators]
        frozen += [plan for operator in operators for _, plan in operator.revisions.values()]
        frozen += [host.plan for host in self.world.hosts.values()]
        frozen += [engine.pod for host in self.world.hosts.values() for engine in host.engines]
        frozen.append(self.world.planner)
        return copy.deepcopy(self, {id(obj): obj for obj in frozen})

    def key(self) -> tuple[object, ...]:
        """What tells one state from another, but for times and versions."""
        api = self.world.api
        operators = [self.world.operator, *self.dead]
        return (
            tuple((slot.spec.epoch, devices_of(slot.spec.seats)) for slot in api.slots.values()),
            tuple((key.name, remap.spec.to, remap.status.phase) for key, remap in api.remaps.items()),
            tuple((claim.slot, claim.epoch) for node in api.kvnodes.values() for claim in node.spec.claims),
            tuple(tuple(sorted(host.seats.items())) for host in self.world.hosts.values()),
            tuple(host.plan.seats if host.plan else None for host in self.world.hosts.values()),
            tuple(bool(found) for host in self.world.hosts.values() for found in host.devices.values()),
            tuple(tuple(map(repr, operator.todo)) for operator in operators),
            tuple(
                (view.seats, bool(view.devices[0].evidence), view.applied_revision == view.plan_revision)
                for view in self.world.operator.views.values()
            ),
            tuple(self.world.router.items()),
            self.deaths,
        )


def operator_writes(branch: Branch) -> None:
    operator = branch.world.operator
    if not operator.todo:
        operator.refresh()
        operator.think()
    operator.act_once()


def operator_hears_and_publishes(branch: Branch) -> None:
    operator = branch.world.operator
    operator.refresh()
    operator.hear()
    operator.publish()


def operator_dies_before_its_write(branch: Branch) -> None:
    operator = branch.world.operator
    operator.refresh()
    operator.think()
    branch.deaths += 1
    branch.dead.append(operator)
    branch.world.lead()


def late_write_arrives(branch: Branch) -> None:
    for operator in branch.dead:
        operator.act_once()


def old_host_works(branch: Branch) -> None:
    branch.world.hosts["node-1"].work()


def new_host_works(branch: Branch) -> None:
    branch.world.hosts["node-2"].work()


def spare_fails(branch: Branch) -> None:
    if not branch.world.hosts["node-2"].devices["acc-0"]:
        branch.world.report("node-2", "acc-0", EvidenceClass.FATAL)


EVENTS: tuple[Callable[[Branch], None], ...] = (
    operator_writes,
    operator_hears_and_publishes,
    operator_dies_before_its_write,
    late_write_arrives,
    old_host_works,
    new_host_works,
    spare_fails,
)


def successors(branch: Branch) -> Iterator[Branch]:
    for event in EVENTS:
        if event is operator_dies_before_its_write and branch.deaths >= MOST_DEATHS:
            continue
        if event is late_write_arrives and not any(operator.todo for operator in branch.dead):
            continue
        after = branch.fork()
        after.path = (*branch.path, event.__name__)
        after.world.now_seconds += 0.01
        event(after)
        yield after


def broken_world() -> World:
    world = two_racks().start().run(10, step=1.0)
    return world.report("node-1", "acc-0", EvidenceClass.FATAL)


def explore(world: World, depth: int) -> int:
    """Visit every state within `depth` events; returns how many there are."""
    start = Branch(world)
    seen = {start.key()}
    queue = deque([start])
    while queue:
        branch = queue.popleft()
        if len(branch.path) >= depth:
            continue
        for after in successors(branch):
            try:
                after.watch.check()
            except AssertionError as broken:
                raise AssertionError(f"after {' > '.join(after.path)}: {broken}") from broken
            key = after.key()
            if key not in seen:
                seen.add(key)
                queue.append(after)
    return len(seen)


def test_no_order_of_events_within_one_move_is_unsafe() -> None:
    assert explore(broken_world(), DEPTH) > 1000


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("write", WRITES)
def test_a_leader_that_dies_around_a_write_leaves_a_move_that_ends_once(write: str, moment: str) -> None:
    world = broken_world()
    left = world.slot().spec.epoch
    watch = Invariants(world)
    until_write(world, write)
    if moment == "after":
        world.operator.act_once()
    died = world.now_seconds
    old = world.operator
    world.lead()
    while world.place() == "node-1/acc-0" or world.open_remaps():
        assert world.now_seconds < died + 20, "bound and over within 20 s of the new leadership"
        world.tick(0.5)
        world.round()
        watch.check()
    while old.todo:
        old.act_once()
        watch.check()
    world.run(80)
    assert world.place() == "node-2/acc-0"
    moves = [remap for remap in world.api.remaps.values() if remap.spec.from_epoch == left]
    assert [remap.spec.epoch for remap in moves] == [world.slot().spec.epoch]
    settled(world)


def until_write(world: World, write: str) -> None:
    """Let everything go on until the leader is about to make this write of the move."""
    for _ in range(60):
        world.tick(0.25)
        for host in world.hosts.values():
            host.work()
        operator = world.operator
        operator.refresh()
        operator.hear()
        operator.think()
        operator.publish()
        while operator.todo:
            if type(operator.todo[0]).__name__ == write:
                return
            operator.act_once()
    raise AssertionError(f"{write} was never decided; {[type(a) for a in d.Plan().actions]}")
