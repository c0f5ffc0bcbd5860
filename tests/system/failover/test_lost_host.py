"""A host that is gone is told apart from an agent that is gone: by its lease and by its peers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from demo.load import classify
from devcluster.process import ManagedProcess
from tests.harness.waiting import wait_until
from tests.system.failover.figures import record
from tests.system.failover.world import (
    NODES,
    FailoverWorld,
    condition,
    first_times,
    node_of,
    serves,
    stays,
)

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-lost-host")]

BOUND_SECONDS = 12.0
SERVING_AFTER_BIND_SECONDS = 2.0
AWAY_SECONDS = 15.0


def test_a_lost_host_is_left_by_lease_and_the_word_of_its_peers(world: FailoverWorld) -> None:
    name, left = world.a_slot()
    before, seats = world.epochs(), world.seats()
    host = world.installed.hosts[left]
    revision = world.revision_in_force() or 0

    def moved() -> bool:
        return bool(world.slot(name)["spec"]["epoch"] > before[name])

    with world.requests() as traffic:
        gone_at = time.monotonic()
        host.take_away()
        try:
            seen = first_times(
                {
                    "weight zero": lambda: (world.revision_in_force() or 0) > revision,
                    "bound": moved,
                    "full": lambda: moved() and serves(world.slot(name)),
                },
                40,
            )
            wait_until(lambda: world.remaps(name, before[name])[0]["status"].get("finishedAt"), 10, "the end")
        finally:
            host.bring_up()
    took = {step: round(at - gone_at, 2) for step, at in seen.items()}
    (remap,) = world.remaps(name, before[name])
    counted = classify(traffic.sent, instant=seen["weight zero"])
    stages = {stage["name"]: stage["seconds"] for stage in remap["status"]["stages"]}
    record("lost host", seconds=took, stages=stages, requests=vars(counted), cause=remap["spec"]["cause"])
    witnesses = [node for node in NODES if node != left and node in remap["spec"]["cause"]]
    assert len(witnesses) >= 2, remap["spec"]["cause"]
    # Nothing on the host could stop the engine at the deadline, and nothing more is claimed.
    assert remap["status"]["fence"] == {"level": "ContentOnly", "proof": "GuardExpiry"}
    assert remap["spec"]["kind"] == "Restorative"
    assert took["bound"] <= BOUND_SECONDS
    ended = {name: float(seconds.removesuffix("s")) for name, seconds in stages.items()}
    assert ended["serving"] - ended["bind"] <= SERVING_AFTER_BIND_SECONDS
    assert counted.failed_after == 0
    assert world.rack_of(node_of(world.slot(name))) == world.rack_of(left)
    others = {key for key in before if key != name}
    assert {key: world.epochs()[key] for key in others} == {key: before[key] for key in others}
    assert {key: world.seats()[key] for key in others} == {key: seats[key] for key in others}


def test_an_agent_that_stays_dead_moves_nothing_while_others_reach_its_host(world: FailoverWorld) -> None:
    _, node = world.a_slot()
    before, seats = world.epochs(), world.seats()
    agent = world.installed.process("agent", node)
    with world.requests() as traffic:
        with kept_away(agent):
            wait_until(
                lambda: condition(world.kvnode(node), "LeaseHeld") == "False", 20, "the lease to run out"
            )
            stays(lambda: world.epochs() == before, AWAY_SECONDS - 10, "epochs without the agent")
        wait_until(lambda: condition(world.kvnode(node), "LeaseHeld") == "True", 20, "a new lease")
        stays(lambda: world.epochs() == before, 1, "epochs after the agent's return")
    assert world.seats() == seats
    assert all(sent.succeeded for sent in traffic.sent)
    assert all(not world.remaps(name, epoch) for name, epoch in before.items())


@contextmanager
def kept_away(process: ManagedProcess) -> Iterator[None]:
    """Kill a container's process and let one that does nothing run in its place meanwhile."""
    argv = list(process.argv)
    process.argv[:] = ["sleep", "600"]
    process.kill()
    try:
        yield
    finally:
        process.argv[:] = argv
        process.kill()
