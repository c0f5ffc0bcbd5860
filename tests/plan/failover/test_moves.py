"""Whole moves in the model world: what is written, in which order, and what happens when somebody dies."""

from __future__ import annotations

import pytest

from kvpool.api.engineslot import FenceProof
from kvpool.api.remap import RemapKind, StageName
from kvpool.api.supernode import EvidenceClass, FenceLevel
from kvpool.model.decisions import Announce
from tests.builders.failover import two_racks
from tests.plan.failover.invariants import Invariants, settled
from tests.plan.failover.serving import SLOT, broken, serving_world, two_slots


def test_an_engine_that_runs_keeps_its_place_when_its_slot_is_first_bound() -> None:
    world = serving_world()
    assert world.place() == "node-1/acc-0"
    fence = world.slot().spec.fenced_by
    assert fence is not None
    assert fence.proof is FenceProof.NEVER_HELD
    (remap,) = world.succeeded()
    assert (remap.metadata.name, remap.spec.kind) == (f"{SLOT}-0-1", RemapKind.INITIAL)
    settled(world)


def test_a_fatal_code_moves_the_slot_to_the_standby_of_the_same_rack() -> None:
    world = broken(serving_world()).run(4)
    assert world.place() == "node-2/acc-0"
    remap = world.succeeded()[-1]
    assert remap.spec.kind is RemapKind.RESTORATIVE
    assert [seat.node for seat in remap.spec.from_] == ["node-1"]
    assert remap.spec.epoch == world.slot().spec.epoch > remap.spec.from_epoch
    assert remap.metadata.name == f"{SLOT}-{remap.spec.from_epoch}-1"
    fence = world.slot().spec.fenced_by
    assert fence is not None
    assert (fence.epoch, fence.proof) == (remap.spec.from_epoch, FenceProof.RELEASE_ACK)
    assert fence.level is FenceLevel.PROCESS


def test_a_move_costs_five_writes_and_one_event_and_one_batched_release() -> None:
    world = serving_world()
    world.api.writes.clear()
    events: list[Announce] = []
    broken(world)
    for _ in range(12):
        world.tick(0.25)
        events += world.round().events
    assert sorted(name for name, _ in world.api.writes) == [
        "BindSlot",
        "ClaimDevices",
        "OpenRemap",
        "ReleaseClaims",
        "WriteRemapStatus",
        "WriteSlotStatus",
    ]
    assert [event.reason.code for event in events] == ["Remapped"]


def test_the_stages_of_a_move_are_offsets_from_its_first_evidence() -> None:
    world = broken(serving_world()).run(4, step=0.25)
    stages = {stage.name: stage for stage in world.succeeded()[-1].status.stages}
    assert list(stages) == list(StageName)
    offsets = [float(stage.seconds.removesuffix("s")) for stage in stages.values()]
    assert offsets == sorted(offsets)
    assert offsets[0] == 0.25, "detected in the first plan after the report"
    assert offsets[-1] <= 3.0


def test_the_failed_device_is_kept_in_quarantine_until_it_was_clean_for_a_while() -> None:
    world = broken(serving_world()).run(4)
    (entry,) = world.api.kvnodes["node-1"].spec.quarantine
    assert entry.device == "acc-0"
    assert "79" in entry.reason
    world.heal("node-1", "acc-0").run(200)
    assert world.api.kvnodes["node-1"].spec.quarantine, "five minutes are not over"
    world.run(400, step=5.0)
    assert not world.api.kvnodes["node-1"].spec.quarantine
    assert world.place() == "node-2/acc-0", "nothing moves back by itself"


@pytest.mark.parametrize("known", ["node-1-acc-0-uuid", "", "of-the-one-before"])
def test_another_device_in_its_place_ends_a_quarantine_whatever_the_claim_knew(known: str) -> None:
    world = serving_world()
    kvnode = world.api.kvnodes["node-1"]
    claims = tuple(claim.model_copy(update={"uuid": known}) for claim in kvnode.spec.claims)
    spec = kvnode.spec.model_copy(update={"claims": claims})
    world.api.kvnodes["node-1"] = kvnode.model_copy(update={"spec": spec})
    broken(world).run(4)
    (entry,) = world.api.kvnodes["node-1"].spec.quarantine
    assert entry.uuid == "node-1-acc-0-uuid"
    world.heal("node-1", "acc-0").run(4)
    assert world.api.kvnodes["node-1"].spec.quarantine, "it is the same device still"
    world.hosts["node-1"].uuids["acc-0"] = "another"
    world.run(4)
    assert not world.api.kvnodes["node-1"].spec.quarantine


def test_a_device_that_stays_bad_stays_in_quarantine() -> None:
    world = broken(serving_world()).run(2000, step=5.0)
    assert world.api.kvnodes["node-1"].spec.quarantine


def test_a_dead_host_is_left_after_its_lease_on_the_word_of_its_peers() -> None:
    world = serving_world().kill_host("node-1").run(10)
    assert world.place() == "node-1/acc-0", "its lease still runs"
    world.run(4)
    assert world.place() == "node-2/acc-0"
    fence = world.slot().spec.fenced_by
    assert fence is not None
    assert fence.proof is FenceProof.GUARD_EXPIRY


def test_the_death_of_an_agent_alone_moves_nothing() -> None:
    world = serving_world()
    epoch = world.slot().spec.epoch
    world.hosts["node-1"].agent_up = False
    world.run(300, step=2.0)
    assert (world.place(), world.slot().spec.epoch) == ("node-1/acc-0", epoch)
    assert len(world.api.remaps) == 1, "the first bind"
    assert world.router[SLOT] == 100


def test_a_slot_is_not_bound_elsewhere_while_its_old_engine_may_still_serve() -> None:
    world = serving_world()
    world.hosts["node-1"].stops = False
    broken(world)
    watch = Invariants(world)
    for _ in range(60):
        world.tick(0.5)
        world.round()
        watch.check()
    assert world.place() == "node-1/acc-0"
    world.hosts["node-1"].stops = True
    world.run(3)
    assert world.place() == "node-2/acc-0"


def test_a_device_under_maintenance_is_left_once_routers_send_it_nothing() -> None:
    world = serving_world()
    world.router_answers = False
    world.set_maintenance(["node-1"]).run(10)
    assert world.place() == "node-1/acc-0"
    assert world.reason().code == "CordonPending"
    assert world.serving(), "its engine was not told to stop"
    world.router_answers = True
    world.run(4)
    assert world.place() == "node-2/acc-0"
    assert world.succeeded()[-1].spec.kind is RemapKind.VOLUNTARY


def test_a_device_that_dies_during_a_soft_move_is_left_without_waiting_for_routers() -> None:
    world = serving_world()
    world.router_answers = False
    world.set_maintenance(["node-1"]).run(3)
    broken(world).run(3)
    assert world.place() == "node-2/acc-0"


def test_a_voluntary_move_never_takes_the_last_spares() -> None:
    world = two_racks().with_supernode(spares={"floor": 3}).start().run(20)
    world.set_maintenance(["node-1"]).run(5)
    assert world.place() == "node-1/acc-0"
    assert world.reason().code == "SpareFloor"
    assert "leave 2 spare devices of 3, spares.floor is 3" in world.reason().message


def test_a_dead_device_may_take_the_last_spare() -> None:
    world = two_racks().with_supernode(spares={"floor": 3}).start().run(20)
    broken(world).run(4)
    assert world.place() == "node-2/acc-0"


def test_soft_evidence_moves_a_slot_only_after_it_stood_long_enough() -> None:
    world = serving_world().report("node-1", "acc-0", EvidenceClass.SOFT, code="63", count=3)
    world.run(55)
    assert world.place() == "node-1/acc-0"
    world.run(10)
    assert world.place() == "node-2/acc-0"


def test_only_so_many_voluntary_moves_run_at_once() -> None:
    world = two_slots().run(80)
    world.router_answers = False
    world.set_maintenance(["node-1", "node-2"]).run(5)
    assert len(world.open_remaps()) == 1
    assert world.reason("chat-decode-1").code == "Budget"
    assert "1 Voluntary moves run" in world.reason("chat-decode-1").message
    world.router_answers = True
    world.run(20)
    assert {world.place("chat-decode-0"), world.place("chat-decode-1")} == {"node-3/acc-0", "node-4/acc-0"}


def test_dead_devices_do_not_wait_for_the_voluntary_budget() -> None:
    world = two_slots().run(80)
    world.router_answers = False
    world.set_maintenance(["node-1"]).run(5)
    broken(world, "node-2").run(4)
    assert world.place("chat-decode-1") in {"node-3/acc-0", "node-4/acc-0", "node-5/acc-0"}


def test_a_spare_that_dies_before_the_bind_is_replaced_by_the_next_one() -> None:
    world = serving_world()
    world.hosts["node-1"].stops = False
    broken(world).run(3)
    assert [seat.node for seat in world.open_remaps()[0].spec.to] == ["node-2"]
    broken(world, "node-2").run(3)
    remap = world.open_remaps()[0]
    assert remap.metadata.name.endswith("-2"), "the second attempt from the same epoch"
    assert [seat.node for seat in remap.spec.to] == ["node-3"]
    world.hosts["node-1"].stops = True
    world.run(4)
    assert world.place() == "node-3/acc-0"
    assert not world.api.kvnodes["node-2"].spec.claims, "the lost spare is not claimed any more"


def test_an_epoch_whose_engine_was_told_to_stop_never_serves_again() -> None:
    """The stop was acknowledged during an attempt that failed; a late start would falsify it."""
    world = serving_world()
    broken(world)
    for _ in range(20):
        world.tick(0.25)
        world.operator.refresh()
        world.operator.hear()
        world.operator.think()
        world.operator.act_once()
        if world.api.kvnodes["node-2"].spec.claims:
            break
    broken(world, "node-2").heal("node-1", "acc-0")
    watch = Invariants(world)
    for _ in range(40):
        world.tick(0.5)
        world.round()
        watch.check()
    world.run(80)
    assert world.place() in {"node-1/acc-0", "node-3/acc-0", "node-4/acc-0"}
    settled(world.heal("node-2", "acc-0").run(1000, step=5.0))


def test_three_lost_spares_make_the_move_wait_and_then_go_on() -> None:
    world = serving_world()
    world.hosts["node-1"].stops = False
    broken(world).run(3)
    for spare in ("node-2", "node-3", "node-4"):
        broken(world, spare).run(3)
    assert world.reason().code == "NoSpare"
    for spare in ("node-2", "node-3", "node-4"):
        world.heal(spare, "acc-0")
    world.hosts["node-1"].stops = True
    world.heal("node-1", "acc-0").run(90)
    assert world.place() == "node-1/acc-0", "its own device is sound again and takes it under a new epoch"
    assert world.serving()


def test_a_slot_without_a_spare_says_so_with_what_was_passed_over() -> None:
    world = serving_world()
    for spare in ("node-2", "node-3", "node-4"):
        broken(world, spare)
    broken(world).run(5)
    assert world.place() == "node-1/acc-0"
    assert world.reason().code == "NoSpare"
    assert "3 faulty" in world.reason().message
    blocked = [c for c in world.slot().status.conditions if c.type == "Blocked"]
    assert [c.reason for c in blocked] == ["NoSpare"]
    assert not world.open_remaps(), "a move without a place is not opened"


def test_a_blocked_slot_moves_as_soon_as_a_spare_comes_back() -> None:
    world = serving_world()
    for spare in ("node-2", "node-3", "node-4"):
        broken(world, spare)
    broken(world).run(5)
    world.heal("node-4", "acc-0").run(4)
    assert world.place() == "node-4/acc-0"
