"""Files that are not what they should be: pipes, folders, links, endless ones, figures beyond all bounds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kvpool_agent import actions
from kvpool_agent.backends.tmpfs import Ability
from kvpool_agent.devices.simulated import SimulatedDevices
from kvpool_agent.epochs import EpochGate
from kvpool_agent.journal import Journal
from kvpool_agent.lease import LeaseBook
from kvpool_agent.places import Places
from kvpool_agent.plan_apply import plan_by_name
from kvpool_agent.units import Action
from kvpool_keeper import contract
from kvpool_keeper.contract import ContractError, KeeperSpec, KeeperStatus, Release
from kvpool_keeper.segment import SegmentError, allocate
from tests.agent.lifecycle import MARK, Machine

MIB = 1 << 20


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(100 * MIB)


def link(path: Path) -> None:
    path.symlink_to("/proc/self/mem")


ODD: tuple[Callable[[Path], None], ...] = (pipe, Path.mkdir, endless, link, Path.touch)
odd_files = pytest.mark.parametrize("make_odd", ODD, ids=["pipe", "folder", "endless", "link", "empty"])
NUMBERS = ("-1", "1e400", "9" * 400, '"5"x', "[" * 100_000, "null")


@odd_files
def test_an_odd_file_of_the_contract_is_an_error_that_names_it_and_blocks_nobody(
    make_odd: Callable[[Path], None], tmp_path: Path
) -> None:
    file = tmp_path / contract.STATUS_FILE
    make_odd(file)
    with pytest.raises(ContractError, match=str(file)):
        contract.read_file(file, KeeperStatus)


@odd_files
def test_a_keeper_s_odd_status_hurts_its_own_unit_alone(
    make_odd: Callable[[Path], None], tmp_path: Path
) -> None:
    machine = Machine(tmp_path, Ability(mount=False), "file")
    machine.live(Release.NONE)
    status = machine.places.unit(machine.unit.name, 1) / contract.STATUS_FILE
    status.unlink()
    make_odd(status)
    (view,) = machine.binder.step_on(plan_by_name([machine.unit]), hold=False)
    assert view.phase == "Degraded"
    machine.end_keeper()


@pytest.mark.parametrize("field", ["heartbeat_boottime_ns", "used_bytes", "contents_lost_count"])
@pytest.mark.parametrize("figure", [-1, 2**64, 10**400])
def test_a_keeper_s_figure_that_cannot_be_is_an_unreadable_status(
    field: str, figure: int, tmp_path: Path
) -> None:
    status = {"boot_id": "b", "pid": 1, "phase": "Ready", "heartbeat_boottime_ns": 1, field: figure}
    (tmp_path / contract.STATUS_FILE).write_text(json.dumps(status))
    with pytest.raises(ContractError, match=field):
        contract.read_file(tmp_path / contract.STATUS_FILE, KeeperStatus)


def test_a_heartbeat_from_the_future_is_none(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Ability(mount=False), "file")
    machine.live(Release.NONE)
    file = machine.places.unit(machine.unit.name, 1) / contract.STATUS_FILE
    status = json.loads(file.read_text())
    file.write_text(json.dumps({**status, "heartbeat_boottime_ns": contract.boottime_ns() + 10**12}))
    (view,) = machine.binder.step_on(plan_by_name([machine.unit]), hold=False)
    assert "KeeperSilent" in [finding.reason for finding in view.findings]
    machine.end_keeper()


def test_what_lies_where_a_file_is_written_first_is_replaced_and_never_written_through(
    tmp_path: Path,
) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("somebody's")
    for make_odd in (lambda path: path.symlink_to(theirs), pipe):
        make_odd(tmp_path / f".spec.json.{os.getpid()}")
        contract.replace_whole(tmp_path / "spec.json", b"ours", durable=False)
    assert theirs.read_text() == "somebody's"
    assert (tmp_path / "spec.json").read_text() == "ours"


def test_a_unit_leaves_nothing_of_writers_that_were_killed(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Ability(mount=False), "file")
    machine.live(Release.NONE)
    directory = machine.places.unit(machine.unit.name, 1)
    for name in (".status.json.77", ".spec.json.78"):
        (directory / name).touch()
    machine.live(Release.NOW)
    assert not directory.exists()


def test_a_unit_leaves_nothing_when_its_keeper_is_told_of_the_lease_as_it_goes(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Ability(mount=False), "file")
    machine.live(Release.NONE)
    directory = machine.places.unit(machine.unit.name, 1)
    undo = actions.undo
    told: list[Action] = []

    def late(action: Action) -> None:
        if not told:
            told.append(action)
            (directory / contract.LEASE_FILE).write_text("{}")
        undo(action)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kvpool_agent.actions.undo", late)
        machine.live(Release.NOW)
    assert told
    assert not directory.exists()


def test_memory_that_a_keeper_holds_out_of_sight_is_not_removed(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Ability(mount=False), "file")
    machine.live(Release.NONE)
    record = machine.binder._journal.records[machine.unit.key]
    file = Path(record.file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kvpool_agent.actions.mappers", lambda _: ())
        with pytest.raises(Exception, match="cannot be seen from here"):
            machine.binder.remove(record)
    assert file.exists()
    machine.end_keeper()


@odd_files
def test_an_odd_record_is_set_aside_or_left_and_the_agent_starts(
    make_odd: Callable[[Path], None], tmp_path: Path
) -> None:
    places = Places(tmp_path)
    places.make()
    make_odd(places.journal / "unit-g1.json")
    (places.journal / ".unit-g1.json.7").mkdir()
    journal = Journal(places.journal, places.quarantine)
    journal.load()
    assert journal.unreadable == ("unit-g1.json",)
    assert not journal.records


def test_a_record_that_cannot_be_set_aside_is_named_and_the_agent_starts(tmp_path: Path) -> None:
    places = Places(tmp_path)
    places.make()
    places.quarantine.rmdir()
    places.quarantine.write_text("a file in place of the folder")
    (places.journal / "unit-g1.json").write_text("{")
    journal = Journal(places.journal, places.quarantine)
    journal.load()
    assert journal.unreadable == ("unit-g1.json",)
    assert (places.journal / "unit-g1.json").exists()


@pytest.mark.parametrize("text", NUMBERS)
def test_an_odd_epoch_incarnation_or_lease_counts_as_none(text: str, tmp_path: Path) -> None:
    places = Places(tmp_path)
    places.make()
    for name in ("epoch.json", "incarnation.json"):
        (tmp_path / name).write_text(text)
    gate = EpochGate(tmp_path / "epoch.json")
    gate.load()
    assert gate.highest == 0
    assert 0 < places.next_incarnation() < 2**63
    state = '{"boot_id": "this-boot", "deadline_seconds": 1e300, "ttl_seconds": 10}'
    for content in (state, state.replace("1e300", text), state.replace("10}", f"{text}}}")):
        (tmp_path / "lease.json").write_text(content)
        lease = LeaseBook(tmp_path / "lease.json", "node-1", "this-boot")
        lease.load()
        assert lease.remaining_seconds() == 0
        assert lease.renew_seconds == 2


def test_an_incarnation_that_cannot_be_kept_does_not_keep_the_agent_from_starting(tmp_path: Path) -> None:
    (tmp_path / "incarnation.json").mkdir()
    assert Places(tmp_path).next_incarnation() > 0


@odd_files
def test_an_odd_file_of_devices_makes_them_unknown_and_blocks_nobody(
    make_odd: Callable[[Path], None], tmp_path: Path
) -> None:
    file = tmp_path / "devices.json"
    file.write_text(json.dumps({"devices": [{"id": "gpu0"}]}))
    provider = SimulatedDevices(file)
    provider.poll(1.0)
    file.unlink()
    make_odd(file)
    found = provider.poll(2.0)
    assert found is not None
    assert [device.observed for device in found] == [False]


@odd_files
def test_an_odd_file_in_place_of_the_segment_is_refused_or_emptied_and_never_waited_for(
    make_odd: Callable[[Path], None], tmp_path: Path
) -> None:
    file = tmp_path / "segment"
    make_odd(file)
    try:
        allocate(file, MIB, adopt=True, prefault=False, progress=lambda _: None).close()
    except SegmentError as error:
        assert str(file) in str(error)  # noqa: PT017 - some of them are refused, some are not
    else:
        assert file.stat().st_size == MIB


@pytest.mark.parametrize(("size_bytes", "file"), [(2**62, "segment"), (MIB, "seg\0ment"), (MIB, "x" * 5000)])
def test_a_segment_that_cannot_be_is_an_error_of_its_own(size_bytes: int, file: str, tmp_path: Path) -> None:
    with pytest.raises(SegmentError):
        allocate(tmp_path / file, size_bytes, adopt=True, prefault=False, progress=lambda _: None)


def test_a_file_that_was_taken_over_keeps_its_contents_when_it_cannot_be_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    file = tmp_path / "segment"
    file.write_bytes(b"objects" + bytes(MIB - 7))
    monkeypatch.setattr("os.posix_fallocate", read_only)
    with pytest.raises(SegmentError, match="the file is kept"):
        allocate(file, MIB, adopt=True, prefault=False, progress=lambda _: None)
    assert file.read_bytes()[:7] == b"objects"


def test_what_was_allocated_is_given_back_when_it_cannot_be_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("mmap.mmap", no_memory)
    with pytest.raises(SegmentError, match="Cannot allocate memory"):
        allocate(tmp_path / "segment", MIB, adopt=False, prefault=True, progress=lambda _: None)
    assert (tmp_path / "segment").stat().st_blocks == 0


@pytest.mark.parametrize("size_bytes", [0, -1, 2**63])
def test_a_spec_of_an_impossible_size_is_unreadable(size_bytes: int, tmp_path: Path) -> None:
    spec = {"unit": "u", "generation": 1, "size_bytes": size_bytes, "file": "f", "prefault": True}
    (tmp_path / contract.SPEC_FILE).write_text(json.dumps({**spec, "adopt": True}))
    with pytest.raises(ContractError, match="size_bytes"):
        contract.read_file(tmp_path / contract.SPEC_FILE, KeeperSpec)


def test_a_record_that_ends_anywhere_costs_its_unit_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Ability(mount=False), "file")
    machine.live(Release.NONE)
    file = machine.places.journal / f"{machine.unit.key}.json"
    whole = file.read_bytes()
    for length in (*range(0, len(whole), 37), len(whole) - 1):
        file.write_bytes(whole[:length])
        machine.start()
        machine.live(Release.NONE)
        assert machine.data() == MARK, length
    machine.end_keeper()


def test_a_record_of_a_later_version_costs_its_unit_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Ability(mount=False), "file")
    machine.live(Release.NONE)
    file = machine.places.journal / f"{machine.unit.key}.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "version": 2}))
    machine.start()
    machine.live(Release.NONE)
    assert machine.data() == MARK
    assert [path.name for path in machine.places.quarantine.iterdir()] != []
    machine.end_keeper()
