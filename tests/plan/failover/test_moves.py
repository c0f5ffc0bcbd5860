"""Whole moves in the model world: what is written, in which order, and what happens when somebody dies."""

from __future__ import annotations

from kvpool.api import PDGroup
from kvpool.api.common import Mode
from kvpool.api.engineslot import FenceProof
from kvpool.api.remap import RemapKind, RemapPhase, StageName
from kvpool.api.supernode import EvidenceClass, FenceLevel
from kvpool.model.decisions import Announce
from kvpool.model.ids import ObjectKey
from tests.builders.failover import NAMESPACE, World, two_racks
from tests.plan.failover.invariants import Invariants, settled

SLOT = "chat-decode-0"


def serving_world() -> World:
    """One slot that serves at full weight on node-1."""
    return two_racks().start().run(80)


def broken(world: World, host: str = "node-1") -> World:
    return world.report(host, "acc-0", EvidenceClass.FATAL)


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


def test_a_move_that_somebody_cancels_before_its_claim_leaves_all_as_it_was() -> None:
    world = serving_world()
    epoch = world.slot().spec.epoch
    world.router_answers = False
    world.set_maintenance(["node-1"]).run(2)
    world.cancel(world.open_remaps()[0]).run(3)
    world.router_answers = True
    world.run(80)
    assert (world.place(), world.slot().spec.epoch) == ("node-1/acc-0", epoch)
    assert world.reason().code == "Cancelled"
    settled(world)


def test_a_move_that_is_not_needed_any_more_is_cancelled_before_its_claim() -> None:
    world = serving_world()
    world.router_answers = False
    world.set_maintenance(["node-1"]).run(2)
    world.set_maintenance([]).run(2)
    phases = [remap.status.phase for remap in world.api.remaps.values()]
    assert phases == [RemapPhase.SUCCEEDED, RemapPhase.CANCELLED]


def test_a_move_cancelled_after_its_claim_ends_in_its_own_place_under_a_new_epoch() -> None:
    world = serving_world()
    epoch = world.slot().spec.epoch
    world.hosts["node-1"].stops = False
    world.set_maintenance(["node-1"])
    while not world.api.kvnodes["node-2"].spec.claims:
        world.run(0.5)
    world.set_maintenance([])
    world.cancel(world.open_remaps()[0])
    world.hosts["node-1"].stops = True
    world.run(80)
    assert world.place() == "node-1/acc-0"
    assert world.slot().spec.epoch > epoch
    settled(world)


def test_a_new_leader_goes_on_with_an_open_move_under_its_recorded_epoch() -> None:
    world = serving_world()
    world.hosts["node-1"].stops = False
    broken(world).run(3)
    promised = world.open_remaps()[0].spec.epoch
    world.lead()
    world.hosts["node-1"].stops = True
    world.run(5)
    assert world.slot().spec.epoch == promised
    assert len(world.api.remaps) == 2, "the first bind and this move: nothing was opened twice"


def test_a_new_leader_does_not_cancel_a_move_because_it_has_not_heard_yet() -> None:
    world = serving_world().kill_host("node-1").run(10)
    while not world.open_remaps():
        world.run(0.5)
    world.lead()
    world.run(1)
    assert [remap.status.phase for remap in world.open_remaps()] == [RemapPhase.RUNNING]
    world.run(20)
    assert world.place() == "node-2/acc-0"


def test_a_leader_that_sees_a_higher_epoch_decides_nothing_until_it_steps_up() -> None:
    world = serving_world()
    world.hosts["node-3"].highest_operator_epoch = 9
    broken(world)
    world.operator.hear()
    plan = world.operator.think()
    assert plan.actions == ()
    assert dict(plan.explanations)["operator"].code == "StepUp"


def test_a_late_claim_of_a_dead_leader_is_refused() -> None:
    """The old leader decided to claim node-3; meanwhile node-3 went to another slot."""
    world = two_slots().run(80)
    for other in ("node-1", "node-4", "node-5"):
        broken(world, other)
    world.tick(0.5)
    world.round(work=False)
    old = world.operator
    old.refresh()
    old.hear()
    old.think()
    assert type(old.todo[0]).__name__ == "ClaimDevices"
    world.lead()
    world.cancel(world.open_remaps()[0])
    world.heal("node-1", "acc-0").round()
    broken(world, "node-2").run(4)
    assert world.place("chat-decode-1") == "node-3/acc-0"
    old.act_once()
    Invariants(world).check()


def test_two_leaders_open_one_move_only() -> None:
    world = serving_world()
    old = world.operator
    new = world.lead()
    broken(world)
    for operator in (old, new):
        operator.refresh()
        operator.hear()
        operator.think()
    new.act_once()
    old.act_once()
    assert len(world.open_remaps()) == 1
    assert world.open_remaps()[0].spec.operator_epoch == new.epoch


def test_a_paused_cluster_opens_no_move_and_says_so() -> None:
    world = serving_world()
    world.paused = True
    broken(world).run(5)
    assert world.place() == "node-1/acc-0"
    assert not world.open_remaps()
    assert world.reason().code == "Paused"
    world.paused = False
    world.run(4)
    assert world.place() == "node-2/acc-0"


def test_a_move_past_its_claim_is_finished_though_the_cluster_is_paused() -> None:
    world = serving_world()
    world.hosts["node-1"].stops = False
    broken(world).run(3)
    assert world.api.kvnodes["node-2"].spec.claims
    world.paused = True
    world.hosts["node-1"].stops = True
    world.run(4)
    assert world.place() == "node-2/acc-0"
    assert world.router[SLOT] > 0


def test_a_supernode_in_mode_observe_withholds_moves_and_not_first_places() -> None:
    world = two_racks().with_supernode(mode="Observe").start().run(20)
    assert world.place() == "node-1/acc-0"
    broken(world).run(4)
    assert world.place() == "node-1/acc-0"
    assert world.reason().code == "ModeObserve"
    assert world.operator.last.withheld[0].action.startswith("Restorative move: node-1/acc-0")


def test_a_group_in_mode_observe_gets_no_slots() -> None:
    world = two_racks()
    world.api.groups = {key: _with_mode(group, Mode.OBSERVE) for key, group in world.api.groups.items()}
    world.start().run(5)
    assert not world.api.slots
    assert world.operator.last.withheld[0].action == f"create 1 slots ({SLOT})"


def test_fewer_instances_take_the_last_slot_away_once_its_engine_stopped() -> None:
    world = two_slots().run(80)
    world.set_instances(1).run(5)
    assert list(world.api.slots) == [ObjectKey(NAMESPACE, SLOT)]
    settled(world)


def test_a_slot_asked_for_again_is_bound_under_a_higher_epoch() -> None:
    world = two_slots().run(80)
    before = world.slot("chat-decode-1").spec.epoch
    world.set_instances(1).run(5)
    world.set_instances(2).run(80)
    assert world.slot("chat-decode-1").spec.epoch > before
    settled(world)


def test_a_deleted_group_leaves_its_slots_and_their_engines_alone() -> None:
    world = serving_world()
    world.api.groups.clear()
    broken(world).run(10)
    assert world.serving()
    assert world.reason().code == "GroupGone"


def test_another_device_in_the_same_place_is_not_the_device_that_was_claimed() -> None:
    world = serving_world()
    world.hosts["node-1"].uuids["acc-0"] = "node-1-replacement-uuid"
    world.run(4)
    assert world.place() == "node-2/acc-0"


def test_an_api_outage_without_a_fault_moves_nothing_and_its_end_is_quiet() -> None:
    world = serving_world()
    epoch, remaps = world.slot().spec.epoch, len(world.api.remaps)
    for _ in range(60):
        world.tick(1.0, renew=False)
    world.api_back_since = world.now_seconds
    # Two of four agents find their way back late.
    for host in ("node-1", "node-3"):
        world.hosts[host].agent_up = False
    world.lead()
    for _ in range(12):
        world.tick(1.0)
        world.round()
    for host in ("node-1", "node-3"):
        world.hosts[host].agent_up = True
    world.run(60, step=1.0)
    assert (world.slot().spec.epoch, len(world.api.remaps)) == (epoch, remaps)
    assert world.serving()


def two_slots() -> World:
    """Slots on node-1 and node-2, standbys on the three others."""
    world = World()
    for number in range(1, 6):
        name = f"node-{number}"
        world.with_host(name, board=f"b{number}", rack=f"r{number % 2}")
        world.with_engine(name, "acc-0", standby=number > 2)
    return world.with_supernode().with_group(instances=2).start()


def _with_mode(group: PDGroup, mode: Mode) -> PDGroup:
    return group.model_copy(update={"spec": group.spec.model_copy(update={"mode": mode})})
