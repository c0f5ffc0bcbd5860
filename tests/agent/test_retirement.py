"""An agent that is told to retire gives all back, leaves nothing, and begins anew when it is to stay."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kvpool.wire.v1alpha1 import agent_pb2 as wire
from kvpool_agent.messages import MalformedPlanError, plan_retires
from kvpool_agent.places import Places
from kvpool_agent.retirement import everything_back, holds_nothing
from kvpool_agent.seats import SeatRecord, SeatState
from kvpool_agent.units import Record, RecordPhase, UnitPlan, UnitView
from kvpool_keeper.contract import Release
from tests.agent.node import TestNode
from tests.agent.scripted_operator import ScriptedOperator
from tests.harness.waiting import wait_until

UNIT = UnitPlan("inference.chat.dram.n0", 1, 4096, "tmpfs")


def record(phase: RecordPhase, unit: UnitPlan = UNIT) -> Record:
    return Record(unit, phase, "boot", (), 0, "/f", volatile=True, placement_bound=False)


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [(Release.NONE, Release.DRAIN), (Release.DRAIN, Release.DRAIN), (Release.NOW, Release.NOW)],
)
def test_what_is_recorded_is_given_back_with_grace_unless_it_was_asked_for_at_once(
    recorded: Release, asked: Release
) -> None:
    kept = record(RecordPhase.BOUND, dataclasses.replace(UNIT, release=recorded))
    assert everything_back([kept])[UNIT.name].release is asked


def test_what_is_given_back_already_is_named_no_more_so_that_it_is_forgotten() -> None:
    assert everything_back([record(RecordPhase.RELEASED)]) == {}


def test_of_two_generations_the_newer_one_speaks_for_both() -> None:
    newer = dataclasses.replace(UNIT, generation=2)
    back = everything_back([record(RecordPhase.PREPARED, newer), record(RecordPhase.BOUND)])
    assert back[UNIT.name].generation == 2


def test_something_found_or_an_engine_on_a_seat_keeps_it_from_being_nothing() -> None:
    found = UnitView("stray", 1, "Degraded", 0)
    seat = SeatRecord("inference/chat-decode-0", 7, ("dev0",))
    assert holds_nothing([], [dataclasses.replace(seat, state=SeatState.RELEASED)])
    assert not holds_nothing([found], [])
    assert not holds_nothing([], [dataclasses.replace(seat, state=SeatState.STOPPING)])


def test_a_plan_that_tells_to_retire_and_to_hold_something_makes_no_sense() -> None:
    assert plan_retires(wire.NodePlan(retire=True))
    assert not plan_retires(wire.NodePlan())
    for held in (wire.NodePlan(units=[wire.Unit()]), wire.NodePlan(seats=[wire.Seat()])):
        with pytest.raises(MalformedPlanError, match="retire is set"):
            plan_retires(wire.NodePlan(retire=True, units=held.units, seats=held.seats))


def test_clearing_leaves_what_others_put_there_and_a_unit_that_is_not_empty(tmp_path: Path) -> None:
    places = Places(tmp_path / "state")
    places.make()
    places.lock()
    places.next_incarnation()
    for name in ("lease.json", "epoch.json", "seats.json", ".lease.json.123"):
        (places.root / name).write_text("{}")
    for folder in (places.journal, places.quarantine, places.identity):
        (folder / "something").write_text("")
    (places.root / "devices.json").write_text("people's own")
    stray = places.units / "stray-g1"
    stray.mkdir()
    (stray / "data").write_text("")
    with pytest.raises(OSError, match="not empty"):
        places.clear()
    assert (places.journal / "something").exists(), "nothing else is removed before"
    (stray / "data").unlink()
    places.clear()
    assert [path.name for path in places.root.iterdir()] == ["devices.json"]
    places.clear()


def bound(node: TestNode, operator: ScriptedOperator) -> tuple[wire.Unit, ...]:
    """A memory unit and a file of a running node."""
    node.start_agent()
    node.wait_until_connected()
    units = (node.unit(), node.unit("ssd"))
    operator.plan(revision=1, units=units)
    for unit in units:
        wait_until(node.places.unit(unit.name, 1).is_dir, 15, f"the place of {unit.name}")
        node.keeper_of(unit)
        operator.wait_for_unit(unit.name, "Bound")
    return units


def left(node: TestNode) -> list[str]:
    """Everything of ours on the node's media."""
    folders = (node.places.root, node.ssd, node.shared_memory, node.short)
    return [str(path) for folder in folders for path in folder.iterdir()]


@pytest.mark.parametrize("kind", ["node", "mounting_node"])
def test_a_retired_agent_leaves_nothing_on_its_host_and_says_so(
    kind: str, operator: ScriptedOperator, request: pytest.FixtureRequest
) -> None:
    node: TestNode = request.getfixturevalue(kind)
    bound(node, operator)
    operator.forget_reports()
    # The plan names none of the units: retiring gives back what the journal names.
    operator.plan(revision=2, retire=True)
    operator.wait_for_report("retired", lambda report: report.retired, 30)
    assert left(node) == []
    assert node.mounts() == ()
    node.wait_until_connected()
    operator.script.epoch += 1
    operator.plan(revision=3, retire=True, roster=wire.Roster(revision=9))
    operator.wait_for_report("the new plan applied", lambda report: report.applied_revision == 3)
    node.agent.terminate()
    assert left(node) == [], "a retired agent writes nothing, whatever it hears"


def test_a_restarted_agent_retires_again_and_one_that_is_to_stay_begins_anew(
    node: TestNode, operator: ScriptedOperator
) -> None:
    node.start_agent()
    node.wait_until_connected()
    operator.plan(revision=1, retire=True)
    operator.wait_for_report("retired", lambda report: report.retired)
    node.restart_agent()
    wait_until(lambda: len(operator.heard.hellos) > 1, 15, "another Hello")
    assert not operator.heard.hellos[-1].report.retired
    operator.wait_for_report("retired again", lambda report: report.retired)
    operator.plan(revision=2, units=[node.unit()])
    assert node.agent.wait(15) == 0
    node.start_agent()
    operator.wait_for_unit(node.unit().name, "Allocating")
    assert node.places.journal.is_dir()


def test_what_no_record_knows_is_left_and_the_agent_does_not_say_that_it_retired(
    node: TestNode, operator: ScriptedOperator
) -> None:
    stray = node.ssd / "kvpool-somebodys-g1"
    stray.mkdir()
    (stray / "segment").write_text("data")
    node.start_agent()
    node.wait_until_connected()
    operator.plan(revision=1, retire=True)
    unit = operator.wait_for_unit("somebodys", "Degraded")
    assert "no record knows it" in unit.message
    assert (stray / "segment").read_text() == "data"
    assert operator.report is not None
    assert not operator.report.retired
    (stray / "segment").unlink()
    stray.rmdir()
    operator.wait_for_report("retired", lambda report: report.retired)
