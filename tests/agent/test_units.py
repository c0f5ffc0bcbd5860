"""Units from plan to bytes and back, with a real agent and a real keeper."""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
from pathlib import Path
from unittest import mock

import pytest

from kvpool_agent import actions
from kvpool_agent.backends.file import FileBackend
from kvpool_agent.backends.tmpfs import Ability, TmpfsBackend
from kvpool_agent.plan_apply import plan_by_name
from kvpool_agent.units import KeeperView, UnitPlan
from kvpool_keeper.contract import KeeperPhase, KeeperStatus, Release
from kvpool_keeper.segment import allocate
from tests.agent.lifecycle import MARK, Machine
from tests.agent.node import MIB, TestNode
from tests.agent.scripted_operator import ScriptedOperator
from tests.harness.waiting import wait_until


@pytest.mark.memory
def test_a_planned_unit_is_mounted_allocated_and_reported_bound_with_its_placement(
    mounting_node: TestNode, operator: ScriptedOperator
) -> None:
    unit = mounting_node.unit()
    operator.plan(revision=5, units=[unit])
    mounting_node.start_agent()
    mounting_node.keeper_of(unit)
    bound = operator.wait_for_unit(unit.name, "Bound")
    assert bound.resident_bytes == 8 * MIB
    assert dict(bound.placement) == {0: 8 * MIB}
    assert bound.placement_verified
    assert mounting_node.mounts() == (f"kvpool-{unit.name}-g1",)
    operator.wait_for_report("the revision applied", lambda report: report.applied_revision == 5)


@pytest.mark.memory
def test_placement_is_read_from_a_keeper_whose_pid_is_of_another_namespace(
    may_mount: None, tmp_path: Path
) -> None:
    file = tmp_path / "segment"
    actions.mount_tmpfs(tmp_path, "kvpool-test", f"size={2 * MIB},mpol=bind:0")
    try:
        segment = allocate(file, MIB, adopt=False, prefault=True, progress=lambda _: None)
        found = file.stat()
        backend = TmpfsBackend(
            Ability(mount=True, mpol=True),
            owner=(os.getuid(), os.getgid()),
            sysroot=Path("/sys"),
            units=tmp_path,
            shared_memory=tmp_path,
        )
        unit = UnitPlan("inference.chat.dram.n0", 1, MIB, "tmpfs", numa_node=0)
        record = dataclasses.replace(
            backend.draft(unit, tmp_path, "boot"),
            file=str(file),
            actions=(),
            device_inode=f"{found.st_dev}:{found.st_ino}",
        )
        status = KeeperStatus("boot", 2**22 + 1, KeeperPhase.READY, 0)
        reality = backend.look(record, KeeperView(status, alive=True))
        assert (reality.placement, reality.placement_verified) == ({0: MIB}, True)
        segment.close()
    finally:
        actions.unmount(tmp_path)


def test_without_the_right_to_mount_the_unit_is_bound_and_says_that_its_placement_is_unverified(
    node: TestNode, operator: ScriptedOperator
) -> None:
    unit = node.unit()
    operator.plan(revision=1, units=[unit])
    node.start_agent()
    node.keeper_of(unit)
    bound = operator.wait_for_unit(unit.name, "Bound")
    assert bound.resident_bytes == 8 * MIB
    assert not bound.placement_verified
    assert [finding.reason for finding in bound.findings] == ["PlacementUnverified"]


def test_a_file_unit_is_fallocated_in_the_folder_that_the_administrator_named(
    node: TestNode, operator: ScriptedOperator
) -> None:
    unit = node.unit("ssd")
    operator.plan(revision=1, units=[unit])
    node.start_agent()
    node.keeper_of(unit)
    operator.wait_for_unit(unit.name, "Bound")
    file = node.ssd / f"kvpool-{unit.name}-g1" / "segment"
    assert file.stat().st_blocks * 512 >= 8 * MIB


def test_a_released_unit_leaves_nothing_and_is_forgotten_when_the_plan_drops_it(
    node: TestNode, operator: ScriptedOperator
) -> None:
    unit = node.unit()
    operator.plan(revision=1, units=[unit])
    node.start_agent()
    keeper = node.keeper_of(unit)
    operator.wait_for_unit(unit.name, "Bound")
    released = node.unit(release="RELEASE_MODE_DRAIN")
    operator.plan(revision=2, units=[released])
    operator.wait_for_unit(unit.name, "Released")
    assert keeper.wait(10) == 0
    operator.plan(revision=3)
    operator.wait_for_report("no units", lambda report: report.applied_revision == 3 and not report.units)
    wait_until(lambda: not list(node.places.journal.glob("*.json")), 5, "the record to go")


def test_what_a_plan_forgets_to_name_is_kept(node: TestNode, operator: ScriptedOperator) -> None:
    unit = node.unit()
    operator.plan(revision=1, units=[unit])
    node.start_agent()
    node.keeper_of(unit)
    operator.wait_for_unit(unit.name, "Bound")
    operator.plan(revision=2)
    report = operator.wait_for_report("the empty plan", lambda report: report.applied_revision == 2)
    assert [(u.name, u.phase) for u in report.units] == [(unit.name, "Bound")]
    assert "NotPlanned" in [finding.reason for finding in report.units[0].findings]


def test_a_plan_on_hold_starts_nothing(node: TestNode, operator: ScriptedOperator) -> None:
    unit = node.unit()
    operator.plan(revision=1, units=[unit], hold=True)
    node.start_agent()
    pending = operator.wait_for_unit(unit.name, "Pending")
    assert "on hold" in pending.message
    assert not node.places.unit(unit.name, 1).exists()


def test_a_unit_larger_than_the_medium_fails_with_both_figures(
    node: TestNode, operator: ScriptedOperator
) -> None:
    unit = node.unit("ssd", size_bytes=1 << 50)
    operator.plan(revision=1, units=[unit])
    node.start_agent()
    failed = operator.wait_for_unit(unit.name, "Failed")
    assert str(1 << 50) in failed.message
    assert "are free on" in failed.message


def test_a_folder_that_the_administrator_did_not_name_is_refused(
    node: TestNode, operator: ScriptedOperator
) -> None:
    unit = node.unit("ssd", path="/etc")
    operator.plan(revision=1, units=[unit])
    node.start_agent()
    failed = operator.wait_for_unit(unit.name, "Failed")
    assert "'/etc' is not a folder of this agent" in failed.message


def test_a_file_that_is_there_already_is_never_overwritten(
    node: TestNode, operator: ScriptedOperator
) -> None:
    unit = node.unit("ssd")
    theirs = node.ssd / f"kvpool-{unit.name}-g1" / "segment"
    theirs.parent.mkdir()
    theirs.write_text("somebody's data")
    operator.plan(revision=1, units=[unit])
    node.start_agent()
    failed = operator.wait_for_unit(unit.name, "Failed")
    assert "it is kept" in failed.message
    assert theirs.read_text() == "somebody's data"


def test_a_new_generation_drains_the_old_one_before_it_is_made(
    node: TestNode, operator: ScriptedOperator
) -> None:
    old = node.unit()
    operator.plan(revision=1, units=[old])
    node.start_agent()
    node.keeper_of(old)
    operator.wait_for_unit(old.name, "Bound")
    new = node.unit(generation=2, size_bytes=4 * MIB)
    operator.plan(revision=2, units=[new])
    node.keeper_of(new)
    report = operator.wait_for_report(
        "generation 2 bound alone",
        lambda r: [(u.generation, u.phase) for u in r.units] == [(2, "Bound")],
    )
    assert report.units[0].resident_bytes == 4 * MIB


@pytest.mark.memory
def test_a_full_disk_under_the_agent_s_state_costs_no_lease_and_is_tried_again(
    may_mount: None, node: TestNode, operator: ScriptedOperator
) -> None:
    state = node.places.root
    state.mkdir()
    actions.mount_tmpfs(state, "kvpool-test", f"size={MIB}")
    node.start_agent()
    node.wait_until_connected()
    filler = state / "filler"
    with pytest.raises(OSError, match="No space left"):
        filler.write_bytes(bytes(2 * MIB))
    unit = node.unit("ssd")
    operator.plan(revision=1, units=[unit])
    failed = operator.wait_for_unit(unit.name, "Failed")
    assert "No space left" in failed.message
    renews = len(operator.heard.renews)
    wait_until(lambda: len(operator.heard.renews) > renews + 1, 10, "the lease to go on")
    assert node.agent.running
    filler.unlink()
    node.keeper_of(unit)
    operator.wait_for_unit(unit.name, "Bound", deadline_seconds=25)


def test_a_file_that_another_unit_holds_is_refused_under_any_name(tmp_path: Path) -> None:
    backend = FileBackend([tmp_path], tmp_path / "units")
    held = UnitPlan("inference.chat.ssd", 1, MIB, "file", path=str(tmp_path))
    draft = backend.draft(held, tmp_path / "units", "")
    file = Path(draft.file)
    file.parent.mkdir()
    file.write_bytes(b"x")
    found = file.stat()
    bound = dataclasses.replace(draft, device_inode=f"{found.st_dev}:{found.st_ino}")
    wanted = UnitPlan("inference.other.ssd", 1, MIB, "file", path=str(tmp_path))
    link = Path(backend.draft(wanted, tmp_path / "units", "").file)
    link.parent.mkdir()
    link.hardlink_to(file)
    refusal = backend.refuse(wanted, [bound])
    assert refusal == f"{link} is bound by unit inference.chat.ssd generation 1"


def test_a_unit_whose_filesystem_is_not_mounted_is_kept_and_nothing_new_is_made_in_its_place(
    may_mount: None, tmp_path: Path
) -> None:
    machine = Machine(tmp_path, Ability(mount=False), "file")
    machine.live(Release.NONE)
    other = UnitPlan("inference.chat.y.n0", 1, MIB, "file", path=str(machine.ssd))
    actions.mount_tmpfs(machine.ssd, "another", f"size={4 * MIB}")
    try:
        (view,) = machine.start()
        assert (view.phase, [found.reason for found in view.findings]) == ("Degraded", ["MediumMissing"])
        assert "tmpfs another" in view.message
        newer = dataclasses.replace(machine.unit, generation=2)
        views = machine.binder.step_on(plan_by_name([newer, other]), hold=False)
        refused = next(view for view in views if view.name == other.name)
        assert refused.phase == "Failed"
        assert "on tmpfs another" in refused.message
        assert "bound was" in refused.message
        assert list(machine.ssd.iterdir()) == []
    finally:
        actions.unmount(machine.ssd)
    assert machine.data() == MARK
    views = machine.start()
    assert [view.generation for view in views] == [1]
    assert (machine.ssd / f"kvpool-{machine.unit.key}" / "segment").exists()
    machine.end_keeper()


def test_a_unit_whose_folder_is_not_there_is_kept_but_one_that_was_removed_is_lost(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Ability(mount=False), "file")
    machine.live(Release.NONE)
    aside = machine.ssd.rename(tmp_path / "aside")
    (view,) = machine.start()
    assert (view.phase, [found.reason for found in view.findings]) == ("Degraded", ["MediumMissing"])
    aside.rename(machine.ssd)
    (view,) = machine.start()
    assert view.phase == "Bound"
    shutil.rmtree(machine.ssd / f"kvpool-{machine.unit.key}")
    (view,) = machine.start()
    assert view.phase == "Lost"
    machine.end_keeper()


def test_a_folder_that_fails_does_not_hide_the_others(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    for folder in (good, bad):
        folder.mkdir()
    real = os.statvfs

    def failing(path: Path) -> os.statvfs_result:
        if path == bad:
            raise OSError(errno.EIO, "Input/output error")
        return real(path)

    with mock.patch("kvpool_agent.backends.file.os.statvfs", failing):
        (source,) = FileBackend([bad, good], tmp_path).discover()
    assert source.key.endswith(f":{good}")
