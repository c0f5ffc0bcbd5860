"""The write-ahead journal: any death leaves a state from which the next agent goes on."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool_agent.backends.file import FileBackend
from kvpool_agent.backends.tmpfs import Ability
from kvpool_agent.journal import Journal
from kvpool_agent.plan_apply import plan_by_name
from kvpool_agent.units import Record, RecordPhase, UnitPlan
from kvpool_keeper.contract import Release
from tests.agent.lifecycle import MARK, Killed, Machine, killed_at

MORE_THAN_ALL_CHANCES = 200


def survive(machine: Machine, deaths: list[int]) -> int:
    """Live a whole life with the agent killed at the given chances; returns how many deaths there were."""
    happened = 0
    waiting = list(deaths)
    for stage in (
        lambda: machine.live(Release.NONE),
        lambda: machine.live(Release.DRAIN),
        machine.drop,
    ):
        done = False
        while not done:
            count = waiting.pop(0) if waiting else MORE_THAN_ALL_CHANCES
            with killed_at(count) as killed:
                done = _until_death(stage)
            happened += killed()
            if not done:
                held = machine.keeper_holds
                machine.start()
                assert not held or machine.data() == MARK
    return happened


def _until_death(stage: Callable[[], None]) -> bool:
    try:
        stage()
    except Killed:
        return False
    return True


def every_death(ability: Ability, backend: str) -> None:
    """Kill once at each chance there is, one after another."""
    for count in range(MORE_THAN_ALL_CHANCES):
        with tempfile.TemporaryDirectory(prefix="kvpool-") as folder:
            machine = Machine(Path(folder), ability, backend)
            deaths = survive(machine, [count])
            assert machine.leftovers() == []
        if not deaths:
            assert count > 10, "the life of a unit has more effects than that"
            return
    raise AssertionError("a life without end")


@pytest.mark.parametrize("backend", ["tmpfs", "file"])
def test_an_agent_killed_at_any_step_leaves_nothing_half_done(backend: str) -> None:
    every_death(Ability(mount=False), backend)


@pytest.mark.memory
def test_an_agent_killed_at_any_step_of_mounting_leaves_no_mount_behind(may_mount: None) -> None:
    every_death(Ability(mount=True), "tmpfs")


@settings(max_examples=60, deadline=None)
@given(deaths=st.lists(st.integers(0, 30), min_size=2, max_size=5))
def test_an_agent_killed_again_and_again_gets_there_too(deaths: list[int]) -> None:
    with tempfile.TemporaryDirectory(prefix="kvpool-") as folder:
        machine = Machine(Path(folder), Ability(mount=False), "tmpfs")
        survive(machine, deaths)
        assert machine.leftovers() == []


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    for name in ("journal", "quarantine"):
        (tmp_path / name).mkdir()
    return Journal(tmp_path / "journal", tmp_path / "quarantine")


def record() -> Record:
    unit = UnitPlan("inference.chat.dram.n0", 1, 4096, "tmpfs")
    return Record(unit, RecordPhase.BOUND, "boot", (), 0, "/somewhere/segment", True, False)


def test_a_record_comes_back_as_it_was_written(journal: Journal) -> None:
    journal.write(record())
    journal.load()
    assert dict(journal.records) == {record().key: record()}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: b"",
        lambda text: b"\x00" * len(text),
        lambda text: text.replace(b'"version":1', b'"version":9'),
        lambda text: text.replace(b'"Bound"', b'"Balanced"'),
        lambda text: b"[]",
        lambda text: text.replace(b"inference.chat", b"inference.chit"),
    ],
    ids=["truncated", "empty", "zeroes", "version", "phase", "list", "renamed"],
)
def test_an_unreadable_record_is_set_aside_and_named_and_nothing_is_deleted(
    journal: Journal, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    journal.write(record())
    path = tmp_path / "journal" / f"{record().key}.json"
    broken = damage(path.read_bytes())
    path.write_bytes(broken)
    journal.load()
    assert dict(journal.records) == {}
    assert journal.unreadable == (path.name,)
    assert [kept.read_bytes() for kept in (tmp_path / "quarantine").iterdir()] == [broken]


def test_a_write_that_was_never_finished_counts_as_none_and_is_removed(
    journal: Journal, tmp_path: Path
) -> None:
    journal.write(record())
    (tmp_path / "journal" / f".{record().key}.json.4711").write_text("{")
    journal.load()
    assert [path.name for path in (tmp_path / "journal").iterdir()] == [f"{record().key}.json"]
    assert dict(journal.records) == {record().key: record()}
    assert journal.unreadable == ()


def test_a_record_of_a_backend_that_this_agent_does_not_have_is_set_aside(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Ability(mount=False), "tmpfs")
    machine.live(Release.NONE)
    (path,) = machine.places.journal.iterdir()
    path.write_text(path.read_text().replace('"backend":"tmpfs"', '"backend":"hugetlb"'))
    machine.start()
    assert [kept.name.startswith(path.name) for kept in machine.places.quarantine.iterdir()] == [True]
    assert machine.data() == MARK


def test_a_unit_that_cannot_be_looked_at_is_degraded_and_harms_no_other(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Ability(mount=False), "file")
    machine.live(Release.NONE)
    other = UnitPlan("inference.chat.y.n0", 1, 1 << 20, "tmpfs")
    broken = OSError(errno.EIO, "Input/output error")
    failing = mock.patch.object(FileBackend, "look", side_effect=broken)
    with failing, mock.patch.object(FileBackend, "remains", side_effect=broken):
        machine.start()
        views = machine.binder.step_on(plan_by_name([machine.unit, other]), hold=False)
    phases = {view.name: (view.phase, [finding.reason for finding in view.findings]) for view in views}
    assert phases[machine.unit.name] == ("Degraded", ["CannotLook"])
    assert phases[other.name][0] == "Allocating"
    machine.end_keeper()
