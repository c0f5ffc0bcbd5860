"""Names that others chose: any bytes, any length, any number. Each could cost the node a whole Report."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvpool.wire.convert_report import report_from_wire
from kvpool.wire.v1alpha1 import agent_pb2 as wire
from kvpool.wire.v1alpha1 import local_pb2
from kvpool_agent import actions, messages, timing
from kvpool_agent.devices.simulated import SimulatedDevices
from kvpool_agent.front_door import FrontDoor
from kvpool_agent.local_api import LocalApi
from kvpool_agent.messages import MalformedPlanError
from kvpool_agent.node_state import NodeState
from kvpool_agent.processes import identify
from kvpool_agent.seats import Engine, PlannedSeat, SeatBook, SeatRecord, SeatState
from kvpool_agent.unit_view import unit_views
from kvpool_agent.units import UnitView
from tests.agent.test_plan_apply import UNIT, situation

ODD_KEYS = frozenset(
    {
        os.fsdecode(b"k\xe9-g1"),
        "a\nb-g2",
        "x-g99999999999999999999999999",
        "x-g\N{SUPERSCRIPT TWO}",
        "y" * 255,
        "",
        "-g1",
    }
)


def taken(state: NodeState) -> None:
    """Hold that the operator takes the Report, as it comes over the wire."""
    report = messages.report(state, 1.0, 1.0)
    report_from_wire(type(report).FromString(report.SerializeToString()), 1.0)


def test_finds_of_any_name_and_number_are_reported_and_taken() -> None:
    strangers = ODD_KEYS | {f"stranger{number}-g1" for number in range(1000)}
    views = unit_views(situation([UNIT], orphans=strangers), {}, 0)
    taken(NodeState(units=views))
    assert UNIT.name in {view.name for view in views}
    assert "more that are not shown" in views[-1].message


def test_a_keeper_s_odd_segment_and_any_path_in_a_message_are_taken() -> None:
    path = os.fsdecode(b"/mnt/k\xe9")
    taken(NodeState(units=(UnitView("u", 1, "Bound", 1, segment="a\nb" + "c" * 500, message=path),)))


def test_more_seats_than_are_taken_leave_those_that_are_over_out() -> None:
    over = [SeatRecord(f"ns/old{n}", n, (), SeatState.RELEASED) for n in range(200)]
    seats = (*over, SeatRecord("ns/now", 1, (), SeatState.ATTACHED, told=True))
    taken(NodeState(seats=seats))
    assert "ns/now" in [seat.slot for seat in messages.report(NodeState(seats=seats), 1.0, 1.0).seats]


@pytest.mark.parametrize(
    "register",
    [
        local_pb2.Register(pod_uid="p" * 65),
        local_pb2.Register(pod_uid="p", pod_name="n" * 600),
        local_pb2.Register(pod_uid="p", endpoint="http://a\n"),
        local_pb2.Register(pod_uid="p", readiness="r" * 64),
        local_pb2.Register(pod_uid="p", slot="no-namespace"),
        local_pb2.Register(pod_uid="p", slot="a/b/c"),
        local_pb2.Register(pod_uid="p", slot="a/b", epoch=2**64 - 1),
        local_pb2.Register(pod_uid="p", devices=["d"] * 65),
        local_pb2.Register(pod_uid="p", devices=[""]),
    ],
    ids=lambda register: str(register)[:40].strip(),
)
def test_an_engine_that_the_operator_would_refuse_is_refused_by_name(
    register: local_pb2.Register, tmp_path: Path
) -> None:
    problem = LocalApi(SeatBook(), FrontDoor(tmp_path / "s", 1), tmp_path / "seats")._problem(register)
    assert problem.startswith("register.")


def test_engines_cannot_fill_the_book_with_seats_of_their_own(tmp_path: Path) -> None:
    book = SeatBook()
    book.plan([PlannedSeat("ns/planned", 1, ())], hold=False)
    api = LocalApi(book, FrontDoor(tmp_path / "s", 1), tmp_path / "seats")
    engine = Engine(1, "pod", "", "", (), standby=True, readiness="", guarded=False, process=None)
    for epoch in range(timing.MOST_UNPLANNED_SEATS):
        assert api._problem(local_pb2.Register(pod_uid="pod", slot="ns/own", epoch=epoch)) == ""
        book.register(engine, "ns/own", epoch)
    refused = api._problem(local_pb2.Register(pod_uid="pod", slot="ns/own", epoch=10**6))
    assert "seats outside the plan" in refused
    assert api._problem(local_pb2.Register(pod_uid="pod", slot="ns/planned", epoch=1)) == ""


@pytest.mark.parametrize("name", ["a\\nb", "a\\u0000b"])
def test_a_device_of_a_name_that_cannot_be_printed_makes_the_file_unreadable(
    name: str, tmp_path: Path
) -> None:
    file = tmp_path / "devices.json"
    file.write_text(f'{{"devices": [{{"id": "{name}"}}]}}')
    provider = SimulatedDevices(file)
    provider.poll(1.0)
    assert "cannot be printed" in provider.trouble


@contextlib.contextmanager
def mapped(path: bytes) -> Iterator[os.stat_result]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(descriptor, 4096)
    with mmap.mmap(descriptor, 4096):
        os.close(descriptor)
        yield Path(os.fsdecode(path)).stat()
    Path(os.fsdecode(path)).unlink()


def test_processes_that_map_files_of_any_name_are_looked_into(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    odd = (folder + b"/k\xe9", folder + b"/a\x0c1 2 3 zz:yy 5", folder + b"/a\xc2\x851 2 3 zz:yy 5")
    for name in odd:
        with mapped(name) as found:
            assert os.getpid() in actions.mappers(frozenset({(found.st_dev, found.st_ino)}))


def test_a_process_of_any_name_is_told_from_others() -> None:
    here = Path("/proc/self/comm")
    before = here.read_bytes()
    try:
        here.write_bytes(b"k\xe9) Z")
        assert identify(os.getpid()) is not None
    finally:
        here.write_bytes(before.strip())


def test_mounts_of_any_name_are_read(may_mount: None, tmp_path: Path) -> None:
    for name in (b"k\xe9", b"a\xc2\x85b", b"a\x0cb c"):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
        path.mkdir()
        actions.mount_tmpfs(path, "kvpool-test", "size=4096")
        try:
            found = actions.find_mount(path)
            assert found is not None
            assert found.label == "kvpool-test"
        finally:
            actions.unmount(path)


@pytest.mark.parametrize(
    ("field", "value"), [("size_bytes", 2**63), ("generation", 2**64 - 1), ("reserve_bytes", 2**63)]
)
def test_a_plan_with_a_figure_beyond_all_bounds_is_malformed(field: str, value: int) -> None:
    unit = wire.Unit(name="u", generation=1, size_bytes=1, backend="tmpfs")
    setattr(unit, field, value)
    plan = wire.NodePlan(units=[unit])
    with pytest.raises(MalformedPlanError, match=field):
        messages.plan_units(plan)
