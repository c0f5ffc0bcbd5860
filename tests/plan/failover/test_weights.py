"""What routers are asked to give each slot."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from kvpool.api.common import Role
from kvpool.api.supernode import EvidenceClass
from kvpool.model.decisions import SlotWeight
from kvpool.model.ids import ObjectKey
from kvpool.plan.weights import weights
from tests.builders.failover import GROUP, NAMESPACE, World, two_racks

SLOT = "chat-decode-0"


def serving_world() -> World:
    return two_racks().start().run(80, step=1.0)


def weight(world: World) -> tuple[int, str]:
    found = member(world)
    return found.weight, found.reason.code


def member(world: World) -> SlotWeight:
    operator = world.operator
    operator.refresh()
    operator.hear()
    snapshot = operator.snapshot()
    (found,) = weights(snapshot, snapshot.groups[GROUP], Role.DECODE, world.now).members
    return found


def test_a_slot_that_served_for_long_has_the_full_weight() -> None:
    assert weight(serving_world()) == (100, "Serving")


def test_a_fatal_code_takes_the_weight_away_in_the_very_next_plan() -> None:
    world = serving_world().report("node-1", "acc-0", EvidenceClass.FATAL)
    assert weight(world) == (0, "FatalEvidence")


def test_a_dead_host_takes_the_weight_away() -> None:
    world = serving_world().kill_host("node-1").run(10, step=1.0)
    assert weight(world) == (100, "Serving")
    world.tick(1.0)
    assert weight(world) == (0, "HostDead")


def test_what_is_not_confirmed_changes_no_weight() -> None:
    world = serving_world()
    world.report("node-1", "acc-0", EvidenceClass.SOFT, code="63", count=3)
    assert weight(world) == (100, "Serving")
    world.heal("node-1", "acc-0")
    world.hosts["node-1"].agent_up = False
    world.run(60, step=1.0)
    assert weight(world) == (100, "Serving")


def test_a_restarted_agent_changes_no_weight_while_its_engine_dials_again() -> None:
    world = serving_world()
    host = world.hosts["node-1"]
    host.stop_engines()
    host.hello_at = world.now_seconds
    assert weight(world) == (100, "Serving")
    world.tick(6.0)
    assert weight(world) == (0, "NotAttached")


@pytest.mark.parametrize("status_names_the_new_boot", [False, True])
def test_a_host_that_booted_anew_has_no_engine_that_could_dial_again(status_names_the_new_boot: bool) -> None:
    world = serving_world()
    world.hosts["node-1"].reboot(world.now_seconds)
    world.operator.hear()
    snapshot = world.operator.snapshot()
    assert world.slot().status.attached is not None
    if status_names_the_new_boot:  # then the leader that heard the boot before knows it by its streams
        agent = replace(snapshot.agents["node-1"], booted_anew=True)
        kvnode = snapshot.kvnodes["node-1"]
        status = kvnode.status.model_copy(update={"boot_id": agent.boot_id})
        snapshot = replace(
            snapshot,
            agents={**snapshot.agents, "node-1": agent},
            kvnodes={**snapshot.kvnodes, "node-1": kvnode.model_copy(update={"status": status})},
        )
    (found,) = weights(snapshot, snapshot.groups[GROUP], Role.DECODE, world.now).members
    assert (found.weight, found.reason.code) == (0, "NotAttached")


def test_a_boot_that_nobody_can_compare_leaves_the_grace() -> None:
    world = serving_world()
    world.hosts["node-1"].reboot(world.now_seconds)
    world.operator.refresh()
    world.operator.hear()
    snapshot = replace(world.operator.snapshot(), kvnodes={})
    (found,) = weights(snapshot, snapshot.groups[GROUP], Role.DECODE, world.now).members
    assert (found.weight, found.reason.code) == (100, "Serving")


def test_an_engine_under_an_older_epoch_gets_nothing() -> None:
    world = serving_world()
    host = world.hosts["node-1"]
    (engine,) = host.engines
    assert engine.seat is not None
    older = (engine.seat[0], engine.seat[1] - 1)
    host.seats = {older: host.seats[engine.seat]}
    engine.seat = older
    world.tick(20.0)
    assert weight(world)[0] == 0


def test_a_slot_that_is_being_moved_gets_nothing_though_its_device_works() -> None:
    world = serving_world().set_maintenance(["node-1"])
    world.tick(0.5)
    world.round()
    assert world.open_remaps()
    assert weight(world) == (0, "Moving")


def test_a_slot_rises_step_by_step_after_it_first_served() -> None:
    world = serving_world().report("node-1", "acc-0", EvidenceClass.FATAL)
    steps: dict[int, float] = {}
    for _ in range(60):
        world.tick(1.0)
        world.round()
        steps.setdefault(world.router[SLOT], world.now_seconds)
    assert list(steps) == [0, 10, 25, 50, 100]
    moments = list(steps.values())
    assert [later - earlier for earlier, later in pairwise(moments[2:])] == [15, 15]


def rises(world: World, seconds: int = 60) -> dict[int, float]:
    """The weights that the router takes one after the other, each with the second it first had it."""
    begin, steps = world.now_seconds, {world.router[SLOT]: 0.0}
    for _ in range(seconds):
        world.tick(1.0)
        world.round()
        steps.setdefault(world.router[SLOT], world.now_seconds - begin)
    return steps


def lose_engine(world: World) -> None:
    """The engine's stream breaks; for a while nobody sits on the seat."""
    world.hosts["node-1"].stop_engines()
    for _ in range(3):
        world.tick(1.0)
        world.round(work=False)
    assert world.router[SLOT] == 0


def start_anew(world: World, started_at: str, name: str = "") -> None:
    (engine,) = world.hosts["node-1"].engines
    uid = f"uid-{name}" if name else engine.pod.uid
    key = ObjectKey(NAMESPACE, name) if name else engine.pod.key
    engine.pod = replace(engine.pod, key=key, uid=uid, started_at=started_at)


@pytest.mark.parametrize("other_pod", ["", "decode-of-tomorrow"])
def test_an_engine_that_starts_anew_on_its_seat_rises_step_by_step_again(other_pod: str) -> None:
    world = serving_world()
    epoch = world.slot().spec.epoch
    lose_engine(world)
    start_anew(world, world.stamp(), other_pod)
    steps = rises(world)
    assert list(steps) == [0, 10, 25, 50, 100]
    moments = list(steps.values())
    assert [later - earlier for earlier, later in pairwise(moments[1:])] == pytest.approx([15, 15, 15], abs=1)
    assert world.slot().spec.epoch == epoch


@pytest.mark.parametrize("started_at", ["", "2026-01-02T02:00:00Z", "long ago", "2026-01-02T02:00:00"])
def test_an_engine_that_dials_again_without_a_new_start_has_its_whole_weight_at_once(
    started_at: str,
) -> None:
    world = serving_world()
    start_anew(world, started_at)
    lose_engine(world)
    assert list(rises(world)) == [0, 100]


def test_a_side_car_that_starts_anew_takes_no_weight_from_an_engine_that_serves() -> None:
    world = serving_world()
    start_anew(world, world.stamp())
    assert list(rises(world)) == [100]


def test_an_engine_that_starts_anew_faster_than_anybody_looks_rises_step_by_step_too() -> None:
    world = serving_world()
    start_anew(world, world.stamp())
    (engine,) = world.hosts["node-1"].engines
    engine.pod = replace(engine.pod, has_one_container=True)
    steps = rises(world)
    assert sorted(steps) == [10, 25, 50, 100]
    assert steps[50] - steps[10] == pytest.approx(30, abs=1)


def test_a_new_leader_goes_on_with_the_ramp_of_an_engine_that_started_anew() -> None:
    world = serving_world()
    lose_engine(world)
    start_anew(world, world.stamp())
    before = rises(world, 20)
    world.lead()
    assert list(before) == [0, 10, 25]
    after = rises(world)
    assert list(after) == [25, 50, 100]
    assert after[50] == pytest.approx(15 - (20 - before[25]), abs=1)


def test_the_plan_names_the_moment_of_the_next_step() -> None:
    world = two_racks().start().run(3)
    world.operator.hear()
    plan = world.operator.think()
    assert plan.requeue_at is not None
    assert plan.requeue_at <= world.now_seconds + 15


def test_fail_close_writes_nothing_but_zeros_when_no_slot_may_serve() -> None:
    world = serving_world().report("node-1", "acc-0", EvidenceClass.FATAL)
    assert weight(world) == (0, "FatalEvidence")


def test_fail_open_keeps_the_last_weights_when_no_slot_may_serve() -> None:
    world = two_racks().with_group(routing={"failureMode": "FailOpen"}).start().run(80, step=1.0)
    world.report("node-1", "acc-0", EvidenceClass.FATAL)
    assert weight(world) == (100, "FailOpen")
    assert member(world).endpoint


def test_a_pause_freezes_the_weights() -> None:
    world = serving_world()
    world.paused = True
    world.report("node-1", "acc-0", EvidenceClass.FATAL)
    world.tick(0.5)
    assert world.round().weights == ()


def test_a_slot_nobody_asks_for_any_more_gets_nothing() -> None:
    world = serving_world().set_instances(0)
    assert weight(world) == (0, "Unwanted")
