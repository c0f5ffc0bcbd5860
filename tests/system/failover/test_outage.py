"""The API server is away for a minute, or the leader changes, and nothing is wrong: nothing moves."""

from __future__ import annotations

import datetime as dt
import time

import pytest

from devcluster.rest import ApiError
from tests.harness.waiting import wait_until
from tests.system.failover.figures import record
from tests.system.failover.world import NODES, FailoverWorld, condition, sample, stays

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-outage"), pytest.mark.timeout(300)]

OUTAGE_SECONDS = 60.0
CURRENT_SECONDS = 10.0
HEARD_SECONDS = 3.0


def test_an_api_outage_without_a_fault_moves_nothing_and_status_is_current_soon_after(
    world: FailoverWorld,
) -> None:
    before, seats = world.epochs(), world.seats()
    served = {node: world.engine_health(node) for node in NODES}
    with world.requests() as traffic:
        world.installed.plane.stop_apiserver()
        try:
            stays(
                lambda: {node: world.engine_health(node) for node in NODES} == served,
                OUTAGE_SECONDS,
                "engines and their epochs during the outage",
            )
        finally:
            world.installed.plane.start_apiserver()
        back_at, back_clock = time.monotonic(), dt.datetime.now(dt.UTC)

        def is_current() -> bool:
            nodes = [world.kvnode(node) for node in NODES]
            return all(
                dt.datetime.fromisoformat(node["status"]["lastReport"]) > back_clock
                and condition(node, "AgentConnected") == "True"
                and condition(node, "LeaseHeld") == "True"
                for node in nodes
            )

        wait_until(is_current, 60, "every node's status", tolerate=(ApiError, OSError))
        current_after = time.monotonic() - back_at
        stays(lambda: world.epochs() == before, 12, "epochs in the first lease after the outage")
    failed = [sent for sent in traffic.sent if not sent.succeeded]
    record("API outage", sent=len(traffic.sent), failed=len(failed), current=round(current_after, 2))
    assert not failed, failed[:3]
    assert len(traffic.sent) > OUTAGE_SECONDS * 50
    assert world.seats() == seats
    assert all(not world.remaps(name, epoch) for name, epoch in before.items())
    assert current_after <= CURRENT_SECONDS


def test_a_change_of_leader_moves_nothing_and_says_nothing_new_of_slots(world: FailoverWorld) -> None:
    before, began_at = world.epochs(), dt.datetime.now(dt.UTC)
    with world.requests() as traffic:
        world.replace_operator()
        wait_until(lambda: sample(world.metrics(), "kvpool_agents_connected") == len(NODES), 20, "all agents")
        stays(lambda: world.epochs() == before, HEARD_SECONDS, "epochs under the new leader")
    writes = [
        str(one)
        for one in world.installed.plane.audit.writes(since=began_at)
        if one.resource in ("engineslots", "remaps", "httproutes") and "kvpool-operator" in one.user
    ]
    assert [one for one in writes if "httproutes" not in one] == []
    assert len(writes) <= 1, "the route is applied once by a new leader, which knows of no earlier apply"
    assert all(sent.succeeded for sent in traffic.sent)
