"""The API server is away for a minute, and nothing is wrong: nothing moves, and requests are served."""

from __future__ import annotations

import datetime as dt
import time

import pytest

from devcluster.rest import ApiError
from tests.harness.waiting import wait_until
from tests.system.failover.figures import record
from tests.system.failover.world import NODES, FailoverWorld, condition, stays

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-outage"), pytest.mark.timeout(300)]

OUTAGE_SECONDS = 60.0
CURRENT_SECONDS = 10.0


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
