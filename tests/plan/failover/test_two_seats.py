"""A slot whose engine spans two hosts: the seat that fails moves, and no seat serves under the old epoch."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.api.engineslot import Seat
from kvpool.api.kvnode import Claim
from kvpool.api.remap import RemapKind
from kvpool.api.supernode import EvidenceClass
from kvpool.model.ids import ObjectKey
from tests.builders.failover import NAMESPACE, World

SLOT = "chat-decode-0"
DEVICE = "acc-0"
AT_ONCE = {"slowStart": {"steps": [100], "stepTime": "1s"}}
FIRST, SECOND, SPARE, LAST = HOSTS = ("node-1", "node-2", "node-3", "node-4")


def two_seats(*spares: str) -> World:
    """One slot on node-1 and node-2, as if its group had asked for an engine of two pods."""
    world = World()
    for number, host in enumerate((FIRST, SECOND, *spares)):
        world.with_host(host, board=f"b{number}", rack="r1")
        world.with_engine(host, DEVICE, standby=host != FIRST)
    world.with_supernode(spares={"floor": 0}).with_group(routing=AT_ONCE).start().run(10, step=1.0)
    assert world.place() == f"{FIRST}/{DEVICE}"
    take_second_seat(world)
    return world.run(10, step=1.0)


def take_second_seat(world: World) -> None:
    slot, key = world.slot(), ObjectKey(NAMESPACE, SLOT)
    epoch = slot.spec.epoch + 1
    seats = (*slot.spec.seats, Seat(index=1, node=SECOND, devices=(DEVICE,)))
    spec = slot.spec.model_copy(update={"seats": seats, "epoch": epoch})
    world.api.slots[key] = world.api.meta(slot, spec=spec)
    kvnode = world.api.kvnodes[SECOND]
    uuid = world.hosts[SECOND].uuids[DEVICE]
    claim = Claim(device=DEVICE, uuid=uuid, slot=str(key), remap="by-hand", epoch=epoch)
    claimed = kvnode.spec.model_copy(update={"claims": (claim,)})
    world.api.kvnodes[SECOND] = world.api.meta(kvnode, spec=claimed)
    world.operator.refresh()


def fatal(world: World, *hosts: str) -> World:
    for host in hosts:
        world.report(host, DEVICE, EvidenceClass.FATAL)
    return world


def sits_well(world: World, *hosts: str) -> bool:
    """Whether engines serve the slot on exactly these hosts, all under its epoch, at full weight."""
    epoch = world.slot().spec.epoch
    serving = sorted((host, under) for host, _, under in world.serving())
    claims = sorted(node for node, kvnode in world.api.kvnodes.items() if kvnode.spec.claims)
    seats = [seat.node for seat in world.slot().spec.seats]
    return (
        serving == sorted((host, epoch) for host in hosts)
        and claims == sorted(hosts)
        and seats == list(hosts)
        and world.router[SLOT] == 100
        and not world.open_remaps()
    )


def test_engines_on_both_seats_serve_under_one_epoch() -> None:
    assert sits_well(two_seats(), FIRST, SECOND)


def test_a_fatal_code_on_one_seat_moves_that_seat_alone() -> None:
    for left, seated in ((FIRST, (SPARE, SECOND)), (SECOND, (FIRST, SPARE))):
        world = two_seats(SPARE)
        epoch = world.slot().spec.epoch
        fatal(world, left).run(20, step=1.0)
        (remap,) = [remap for remap in world.succeeded() if remap.spec.from_epoch == epoch]
        assert remap.spec.kind is RemapKind.RESTORATIVE
        assert [seat.node for seat in remap.spec.from_] == [left]
        assert [seat.node for seat in remap.spec.to] == [SPARE]
        assert world.slot().spec.epoch == remap.spec.epoch > epoch
        assert sits_well(world, *seated)


def test_the_slot_is_not_bound_while_the_engine_of_the_seat_that_stays_serves_the_old_epoch() -> None:
    world = two_seats(SPARE)
    epoch = world.slot().spec.epoch
    world.hosts[SECOND].stops = False
    fatal(world, FIRST).run(10, step=1.0)
    assert world.slot().spec.epoch == epoch
    assert world.reason().code == "FencePending"
    assert f"{SECOND} to stop epoch {epoch}" in world.reason().message
    world.hosts[SECOND].stops = True
    assert sits_well(world.run(20, step=1.0), SPARE, SECOND)


def test_the_slot_has_no_weight_while_an_engine_sits_on_one_seat_only() -> None:
    world = two_seats(SPARE)
    engine = world.hosts[SPARE].engines.pop()
    standby = {"podSelector": {"matchLabels": {"app": "standby"}}, "readiness": "Device"}
    world.with_group(routing=AT_ONCE, standby=standby)
    fatal(world, FIRST).run(10, step=1.0)
    assert [seat.node for seat in world.slot().spec.seats] == [SPARE, SECOND]
    assert world.router[SLOT] == 0
    world.hosts[SPARE].engines.append(engine)
    assert sits_well(world.run(20, step=1.0), SPARE, SECOND)


def test_fatal_codes_on_both_seats_are_one_move() -> None:
    world = two_seats(SPARE, LAST)
    epoch = world.slot().spec.epoch
    fatal(world, FIRST, SECOND).run(20, step=1.0)
    (remap,) = [remap for remap in world.succeeded() if remap.spec.from_epoch >= epoch]
    assert [seat.node for seat in remap.spec.from_] == [FIRST, SECOND]
    assert sits_well(world, SPARE, LAST)


def test_with_a_spare_for_one_of_two_failed_seats_nothing_is_taken() -> None:
    world = two_seats(SPARE)
    epoch = world.slot().spec.epoch
    fatal(world, FIRST, SECOND).run(20, step=1.0)
    assert world.slot().spec.epoch == epoch
    assert world.reason().code == "NoSpare"
    assert not world.api.kvnodes[SPARE].spec.claims


def test_maintenance_of_one_host_moves_its_seat_once_routers_send_nothing() -> None:
    world = two_seats(SPARE)
    epoch = world.slot().spec.epoch
    world.set_maintenance([SECOND]).run(20, step=1.0)
    (remap,) = [remap for remap in world.succeeded() if remap.spec.from_epoch == epoch]
    assert remap.spec.kind is RemapKind.VOLUNTARY
    assert [seat.node for seat in remap.spec.from_] == [SECOND]
    assert sits_well(world, FIRST, SPARE)


faults = st.lists(
    st.tuples(st.sampled_from(HOSTS), st.sampled_from(("fatal", "dead", "operator")), st.integers(0, 20)),
    max_size=4,
)


@settings(max_examples=12, deadline=None)
@given(faults=faults)
def test_whatever_fails_in_whatever_order_two_sound_hosts_serve_in_the_end(
    faults: list[tuple[str, str, int]],
) -> None:
    world = two_seats(SPARE, LAST)
    failed: set[str] = set()
    for host, what, tenths in faults:
        if what == "operator":
            world.lead()
        elif host in failed or len(failed) < 2:
            failed.add(host)
            if what == "fatal":
                fatal(world, host)
            else:
                world.kill_host(host)
        world.run(tenths / 10, step=0.1)
        epochs = {epoch for _, _, epoch in world.serving()}
        assert len(epochs) <= 1, f"engines serve the slot under {epochs}"
    for _ in range(100):
        world.run(2, step=2.0)
        seats = [seat.node for seat in world.slot().spec.seats]
        if failed.isdisjoint(seats) and sits_well(world, *seats):
            break
    assert len(set(seats)) == 2
    assert failed.isdisjoint(seats)
    assert sits_well(world, *seats), world.reason()
