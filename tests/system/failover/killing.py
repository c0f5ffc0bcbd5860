"""A move during which the operator is killed at a deciding write, and all that must hold after it."""

from __future__ import annotations

import datetime as dt
import time

from tests.harness.waiting import wait_until
from tests.system.failover.figures import record
from tests.system.failover.world import NODES, FailoverWorld, node_of, serves

WRITES = ("OpenRemap", "ClaimDevices", "BindSlot", "WriteSlotStatus", "WriteRemapStatus", "ReleaseClaims")
NEW_LEADER_SECONDS = 20.0


def move_through_a_kill(world: FailoverWorld, point: str) -> None:
    """Break a device while the operator is to die at `point`; assert that the move ends as it should."""
    operator = world.replace_operator(point)
    doomed = operator.pid
    name, left = world.a_slot()
    before = world.epochs()
    began_at = dt.datetime.now(dt.UTC)
    assert operator.running
    world.break_device(left)
    wait_until(lambda: operator.running and operator.pid != doomed, 20, f"the operator to die {point}")
    led_at = world.wait_for_leader()
    wait_until(lambda: _is_over(world, name, before[name]), NEW_LEADER_SECONDS, "the move's end")
    record("operator killed", point=point, seconds=round(time.monotonic() - led_at, 2))

    slot = world.slot(name)
    epoch, taken = slot["spec"]["epoch"], node_of(slot)
    assert epoch > before[name]
    assert taken != left
    assert {key: value for key, value in world.epochs().items() if key != name} == {
        key: value for key, value in before.items() if key != name
    }
    (remap,) = world.remaps(name, before[name])
    assert remap["spec"]["epoch"] == epoch
    binds = [
        one
        for one in world.installed.plane.audit.writes(since=began_at)
        if (one.resource, one.subresource, one.name) == ("engineslots", "", name)
    ]
    assert len(binds) == 1, [str(one) for one in binds]
    claimed = [
        (node, claim["epoch"])
        for node in NODES
        for claim in world.kvnode(node)["spec"].get("claims", [])
        if claim["slot"].endswith(f"/{name}")
    ]
    assert claimed == [(taken, epoch)]
    serving = {node: world.engine_health(node) for node in NODES}
    assert [node for node, (_, held) in serving.items() if held == epoch] == [taken]
    assert not any(held == before[name] for _, held in serving.values())


def _is_over(world: FailoverWorld, name: str, epoch_before: int) -> bool:
    """Whether the slot serves elsewhere, its Remap is final and the old place was given back."""
    slot = world.slot(name)
    remaps = world.remaps(name, epoch_before)
    left = remaps[0]["spec"]["from"][0]["node"] if remaps else ""
    return (
        slot["spec"]["epoch"] > epoch_before
        and serves(slot)
        and all(remap["status"].get("phase") == "Succeeded" for remap in remaps)
        and not world.kvnode(left)["spec"].get("claims")
    )
