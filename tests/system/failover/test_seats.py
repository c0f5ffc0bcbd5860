"""Where slots sit: on a spare whose engine is warm enough, and on two seats that move one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from devcluster.rest import ApiError, JsonObject
from tests.harness.waiting import wait_until
from tests.system.failover import manifests
from tests.system.failover.killing import AwaitedMove
from tests.system.failover.manifests import API_VERSION, GROUP, NAMESPACE
from tests.system.failover.world import DEVICE, STANDBY, FailoverWorld, node_of, serves

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-seats")]

MOVE_SECONDS = 20.0
_number = itertools.count(1)


def stand_by(world: FailoverWorld, node: str, readiness: str) -> None:
    """Let a standby that is so warm take the place of the engine on a node."""
    pods = world.api.list("v1", "Pod", NAMESPACE)
    for pod in (pod for pod in pods if pod["spec"].get("nodeName") == node):
        world.api.delete("v1", "Pod", pod["metadata"]["name"], NAMESPACE)
    wait_until(lambda: world.engines_on(node) == 0, MOVE_SECONDS, f"the engine of {node} to end")
    name = f"{STANDBY}-{node}-{next(_number)}"
    port = world.engine_port
    pod = manifests.engine_pod(name, node, DEVICE, port=port, role=STANDBY, readiness=readiness)
    world.api.create(pod)
    wait_until(
        lambda: world.engines_on(node) == 1, MOVE_SECONDS, f"the engine of {node}", tolerate=(OSError,)
    )


def ask_for(world: FailoverWorld, readiness: str) -> None:
    change = {"spec": {"decode": {"standby": {"readiness": readiness}}}}
    world.api.patch(API_VERSION, "PDGroup", GROUP, change, NAMESPACE)


def blocked(world: FailoverWorld, slot: str) -> JsonObject:
    """The condition Blocked; empty when it is not there."""
    found = world.slot(slot).get("status", {}).get("conditions", [])
    return next((one for one in found if one["type"] == "Blocked" and one["status"] == "True"), {})


@pytest.fixture
def spares(world: FailoverWorld) -> Iterator[tuple[str, str]]:
    """The spare in the rack of the first slot and the other one; both stand by ready afterwards."""
    _, left = world.a_slot()
    near, far = sorted(world.spares(), key=lambda node: world.rack_of(node) != world.rack_of(left))
    yield near, far
    ask_for(world, "EngineReady")
    for node in (near, far):
        stand_by(world, node, "EngineReady")


def test_a_standby_without_loaded_weights_is_no_spare_until_it_has_them(
    world: FailoverWorld, spares: tuple[str, str]
) -> None:
    near, far = spares
    name, left = world.a_slot()
    assert world.rack_of(near) == world.rack_of(left)
    stand_by(world, near, "Device")
    stand_by(world, far, "WeightsLoaded")
    ask_for(world, "WeightsLoaded")
    wait_until(lambda: world.spares_ready() == 1, MOVE_SECONDS, "one spare")
    world.break_device(left)
    wait_until(lambda: node_of(world.slot(name)) == far, MOVE_SECONDS, "the warm spare, not the nearest one")
    wait_until(lambda: serves(world.slot(name)), MOVE_SECONDS, "the slot to serve")

    world.break_device(far)
    told = wait_until(lambda: blocked(world, name), MOVE_SECONDS, "the slot to say what it waits for")
    assert told["reason"] == "NoSpare"
    assert "which is at Device, standby.readiness is WeightsLoaded" in told["message"]
    wait_until(lambda: world.spares_ready() == 0, MOVE_SECONDS, "no spare")
    assert node_of(world.slot(name)) == far

    stand_by(world, near, "WeightsLoaded")
    wait_until(lambda: node_of(world.slot(name)) == near, MOVE_SECONDS, "the spare that is warm now")
    wait_until(lambda: serves(world.slot(name)) and not blocked(world, name), MOVE_SECONDS, "service")


def seat(node: str, index: int) -> JsonObject:
    return {"index": index, "node": node, "devices": [DEVICE]}


def place_by_hand(world: FailoverWorld, name: str, *nodes: str) -> int:
    """Write a slot's seats as an operator would that knows engines of several pods; returns the epoch."""
    epoch: int = world.slot(name)["spec"]["epoch"] + 1
    for node in nodes:
        if not world.kvnode(node)["spec"].get("claims"):
            claim = {"device": DEVICE, "slot": f"{NAMESPACE}/{name}", "remap": "by-hand", "epoch": epoch}
            world.api.patch(API_VERSION, "KVNode", node, {"spec": {"claims": [claim]}})
    seats = [seat(node, index) for index, node in enumerate(nodes)]
    change = {"spec": {"seats": seats, "epoch": epoch}}
    world.api.patch(API_VERSION, "EngineSlot", name, change, NAMESPACE)
    return epoch


def all_serve(world: FailoverWorld, name: str, *nodes: str) -> bool:
    epoch = world.slot(name)["spec"]["epoch"]
    served = [world.engine_health(node) for node in nodes]
    return served == [("serving", epoch)] * len(nodes) and serves(world.slot(name))


def test_a_fatal_code_on_one_of_two_seats_moves_that_seat_and_renews_the_other(world: FailoverWorld) -> None:
    name, first = world.a_slot()
    second, spare = world.spares()
    try:
        epoch = place_by_hand(world, name, first, second)
        wait_until(lambda: all_serve(world, name, first, second), MOVE_SECONDS, "engines on both seats")
        move = AwaitedMove.of(world, "Restorative", name)
        world.break_device(second)
        wait_until(
            lambda: world.epochs()[name] > epoch and all_serve(world, name, first, spare),
            MOVE_SECONDS,
            "engines on the seat that stayed and on the new one",
        )
        wait_until(lambda: not world.kvnode(second)["spec"].get("claims"), MOVE_SECONDS, "the old place")
        (remap,) = move.remaps()
        assert remap["spec"]["from"] == [seat(second, 1)]
        assert remap["spec"]["to"] == [seat(spare, 1)]
        assert world.slot(name)["spec"]["seats"] == [seat(first, 0), seat(spare, 1)]
        assert remap["status"]["fence"] == {"level": "Process", "proof": "ReleaseAck"}
    finally:
        wait_until(
            lambda: place_by_hand(world, name, node_of(world.slot(name))),
            MOVE_SECONDS,
            "one seat again",
            tolerate=(ApiError,),
        )
