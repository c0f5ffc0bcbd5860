"""Moves while people and leaders change: cancelled, paused, held by a mode, taken over, no longer wanted."""

from __future__ import annotations

from kvpool.api import PDGroup
from kvpool.api.common import Mode
from kvpool.api.remap import RemapPhase
from kvpool.model.ids import ObjectKey
from tests.builders.failover import NAMESPACE, two_racks
from tests.plan.failover.invariants import Invariants, settled
from tests.plan.failover.serving import SLOT, broken, serving_world, two_slots


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


def test_a_leader_that_comes_late_goes_on_with_the_move_whose_spare_it_has_not_heard_yet() -> None:
    world = serving_world()
    broken(world).tick(0.5).operator.hear()
    world.operator.think()
    while not world.open_remaps():
        world.operator.act_once()
    (remap,) = world.open_remaps()
    for _ in range(40):
        world.tick(1.0)
    world.lead().views.clear()
    world.operator.think()
    while world.operator.act_once():
        pass
    assert [one.metadata.name for one in world.open_remaps()] == [remap.metadata.name]
    world.run(10)
    assert world.slot().spec.epoch == remap.spec.epoch
    assert len(world.api.remaps) == 2, "the first bind and this move"


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


def _with_mode(group: PDGroup, mode: Mode) -> PDGroup:
    return group.model_copy(update={"spec": group.spec.model_copy(update={"mode": mode})})
