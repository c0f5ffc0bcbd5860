"""Maintenance empties a device and leaves the floor of spares; a pause holds it; outputs know in and out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.load import classify
from devcluster.rest import ApiError, JsonObject
from tests.harness.waiting import wait_until
from tests.system.failover.in_and_out import add_outputs, in_service, labelled
from tests.system.failover.manifests import API_VERSION, GROUP, NAMESPACE
from tests.system.failover.people import maintain, pause
from tests.system.failover.world import (
    FailoverWorld,
    condition,
    first_times,
    node_of,
    serves,
    stays,
)

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-maintenance")]

MOVE_SECONDS = 40.0
HOLD_SECONDS = 3.0


@pytest.fixture(scope="module")
def outputs(shared_world: FailoverWorld) -> FailoverWorld:
    """The group has two outputs more, that know only in and out."""
    add_outputs(shared_world)
    return shared_world


@pytest.fixture
def kept(outputs: FailoverWorld, world: FailoverWorld) -> Iterator[FailoverWorld]:
    """The world, in which nothing is under maintenance or paused afterwards."""
    wait_until(lambda: in_service(outputs) == set(world.seats().values()), 20, "slices as the seats are")
    yield world
    maintain(world)
    pause(world, on=False)


def group_status(world: FailoverWorld) -> JsonObject:
    return world.api.get(API_VERSION, "PDGroup", GROUP, NAMESPACE)


def blocked(slot: JsonObject) -> str:
    """Why the slot should move and cannot; empty when it is not said to."""
    conditions = slot.get("status", {}).get("conditions", [])
    return next((str(entry["reason"]) for entry in conditions if entry["type"] == "Blocked"), "")


def test_maintenance_moves_a_slot_without_a_failed_request_and_leaves_the_floor(kept: FailoverWorld) -> None:
    world = kept
    name, left = world.a_slot()
    (other,) = set(world.slots()) - {name}
    before = world.epochs()
    with world.requests() as traffic:
        maintain(world, left)
        seen = first_times(
            {
                "bound": lambda: world.epochs()[name] > before[name],
                "in service": lambda: world.epochs()[name] > before[name] and serves(world.slot(name)),
            },
            MOVE_SECONDS,
        )
        maintain(world, left, node_of(world.slot(other)))
        wait_until(lambda: blocked(world.slot(other)) == "SpareFloor", 20, "the other slot to be held")
        stays(lambda: world.epochs()[other] == before[other], HOLD_SECONDS, "the slot that may not move")
    (remap,) = world.remaps(name, before[name])
    assert remap["spec"]["kind"] == "Voluntary"
    ended = {stage["name"]: stage["endedAt"] for stage in remap["status"]["stages"]}
    assert ended["cordon"] <= ended["claim"] <= ended["bind"], "a soft move waits for weight 0 first"
    assert classify(traffic.sent, instant=seen["bound"]).failed_after == 0
    assert all(sent.succeeded for sent in traffic.sent)


def test_outputs_that_know_only_in_and_out_follow_a_move(kept: FailoverWorld) -> None:
    world = kept
    name, left = world.a_slot()
    epoch = world.epochs()[name]
    maintain(world, left)

    def followed() -> bool:
        slot = world.slot(name)
        seated = set(world.seats().values())
        return slot["spec"]["epoch"] > epoch and in_service(world) == seated == labelled(world)

    wait_until(lambda: left not in in_service(world) and left not in labelled(world), 20, "the old place out")
    wait_until(followed, MOVE_SECONDS, "the new place in", tolerate=(ApiError,))
    status = group_status(world)["status"]["routing"]["outputs"]
    assert {entry["name"]: entry["expressible"] for entry in status} == {
        "edge": True,
        "slices": False,
        "pods": False,
    }


def test_a_pause_holds_new_moves_until_it_ends(kept: FailoverWorld) -> None:
    world = kept
    name, left = world.a_slot()
    before = world.epochs()
    pause(world, on=True)
    wait_until(lambda: condition(group_status(world), "Paused") == "True", 20, "the group to say so")
    maintain(world, left)
    wait_until(lambda: blocked(world.slot(name)) == "Paused", 20, "the slot to say what holds it")
    stays(lambda: world.epochs() == before and not world.remaps(name, before[name]), HOLD_SECONDS, "no move")
    pause(world, on=False)
    wait_until(lambda: world.epochs()[name] > before[name], MOVE_SECONDS, "the move after the pause")
