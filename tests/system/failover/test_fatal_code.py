"""An accelerator reports a fatal code: weight 0, the seat moved within its rack, and few writes for it."""

from __future__ import annotations

import datetime as dt
import statistics
from collections import Counter

import pytest

from tests.harness.waiting import wait_until
from tests.system.failover.figures import record
from tests.system.failover.manifests import API_VERSION, GROUP, NAMESPACE
from tests.system.failover.moves import Move, fail_under_load
from tests.system.failover.world import FailoverWorld

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-fatal-code")]

ROUNDS = 3
OWN_OBJECTS = ("remaps", "engineslots", "kvnodes", "events")


@pytest.fixture(scope="module")
def moves(shared_world: FailoverWorld) -> list[Move]:
    """Several moves in a row, each under load; the tests look at them."""
    found = []
    for _ in range(ROUNDS):
        shared_world.settle()
        found.append(fail_under_load(shared_world))
    return found


def test_the_slot_goes_to_the_spare_of_its_own_rack(moves: list[Move], shared_world: FailoverWorld) -> None:
    for move in moves:
        assert move.taken != move.left
        assert shared_world.rack_of(move.taken) == shared_world.rack_of(move.left)


def test_no_request_sent_after_weight_zero_fails_or_reaches_the_old_place(moves: list[Move]) -> None:
    for move in moves:
        assert move.requests.sent_after > 50
        assert move.requests.failed_after == 0
        assert move.answered_by_old_place == 0


def test_weight_zero_bind_and_service_come_within_the_promised_times(moves: list[Move]) -> None:
    """The median counts: one slow round on a busy machine says nothing of the product."""
    assert statistics.median(move.weight_zero for move in moves) <= 1.0
    assert statistics.median(move.bound for move in moves) <= 3.0
    assert statistics.median(move.first_answer for move in moves) <= 3.0 + 2.0
    assert statistics.median(move.seconds_to("serving") - move.seconds_to("bind") for move in moves) <= 2.0


def test_what_the_router_carries_is_read_back_from_it(moves: list[Move], shared_world: FailoverWorld) -> None:
    assert moves

    def acknowledged() -> str:
        group = shared_world.api.get(API_VERSION, "PDGroup", GROUP, NAMESPACE)
        (output,) = group["status"]["routing"]["outputs"]
        return str(output["acknowledged"])

    wait_until(lambda: acknowledged() == "Observed", 10, "weights that were seen in force")


def test_the_remap_records_every_stage_and_how_the_old_place_was_fenced(moves: list[Move]) -> None:
    for move in moves:
        assert move.remap["spec"]["kind"] == "Restorative"
        assert move.remap["status"]["fence"] == {"level": "Process", "proof": "ReleaseAck"}
        stages = {"detect", "cordon", "claim", "fence", "bind", "engineReady", "serving"}
        assert stages <= set(move.stages)


def timed_reports(world: FailoverWorld, operator: str, move: Move) -> Counter[str]:
    """The statuses of nodes that were due during a move without it: figures are renewed every 30 s.

    Whatever is written sooner after the one before is the move's.
    """
    timed: Counter[str] = Counter()
    last: dict[str, dt.datetime] = {}
    for one in world.installed.plane.audit.writes(operator):
        if (one.resource, one.subresource) != ("kvnodes", "status"):
            continue
        # Reports are a few seconds old when they are written; 30 s are counted from the report.
        due = one.name in last and one.received_at - last[one.name] > dt.timedelta(seconds=20)
        last[one.name] = one.received_at
        if due and one.received_at >= move.began_at:
            timed[str(one).partition(" ")[2]] += 1
    return timed


def test_a_move_costs_at_most_six_writes_and_two_batched_ones(world: FailoverWorld) -> None:
    move = fail_under_load(world)
    operator = f"system:serviceaccount:{world.installed.namespace}:kvpool-operator"

    def event_written() -> bool:
        return any(one.resource == "events" for one in audit.writes(operator, since=move.began_at))

    audit = world.installed.plane.audit
    wait_until(event_written, 10, "the event that tells of the move")
    written = [one for one in audit.writes(operator, since=move.began_at) if one.resource in OWN_OBJECTS]
    nodes = Counter(str(one).partition(" ")[2] for one in written if one.resource == "kvnodes")
    claim = [one for one in written if (one.resource, one.name) == ("kvnodes", move.taken)]
    claim = [one for one in claim if not one.subresource]
    decided = [one for one in written if one.resource != "kvnodes"] + claim
    others = Counter(one.resource for one in audit.writes(operator, since=move.began_at)) - Counter(
        one.resource for one in written
    )
    record(
        "writes of a move",
        decided=[str(one).partition(" ")[2] for one in decided],
        nodes=nodes,
        others=others,
    )
    ramp_ended = [one for one in decided if (one.resource, one.subresource) == ("engineslots", "status")][1:]
    assert len(decided) - len(ramp_ended) <= 6
    assert len(ramp_ended) <= 1
    timed = timed_reports(world, operator, move)
    assert sum((nodes - timed).values()) - len(claim) <= 2, (nodes, timed)
