"""The keeper alone: it needs its directory, and no agent."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from demo.neighbours.mooncake import MooncakeMaster
from demo.neighbours.store import join_store
from devcluster.ports import free_ports
from devcluster.process import ManagedProcess, ProcessError
from kvpool_agent import actions
from kvpool_keeper import contract
from kvpool_keeper.contract import (
    KeeperPhase,
    KeeperSpec,
    KeeperStatus,
    LeaseFile,
    MooncakeMount,
    Release,
    boottime_ns,
)
from kvpool_keeper.keeper import Keeper
from kvpool_keeper.master_admin import AdminError, parse_metrics
from kvpool_keeper.segment import SegmentError, allocate
from tests.harness.waiting import wait_until

MIB = 1 << 20
BLOCK = os.urandom(64 << 10)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    folder = tmp_path / "unit-g1"
    folder.mkdir()
    return folder


@pytest.fixture
def keeper(directory: Path) -> Iterator[ManagedProcess]:
    program = Path(sys.executable).with_name("kvpool-keeper")
    process = ManagedProcess(
        "keeper", [program, "--unit-dir", directory, "--drain-seconds", "15"], directory / "keeper.log"
    )
    yield process
    process.kill()


@pytest.fixture
def small_tmpfs(may_mount: None, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    actions.mount_tmpfs(folder, "kvpool-test", f"size={4 * MIB}")
    yield folder
    actions.unmount(folder)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[MooncakeMaster]:
    rpc_port, admin_port = free_ports(2)
    with MooncakeMaster(
        address="127.0.0.1",
        log_path=tmp_path / "master.log",
        rpc_port=rpc_port,
        admin_port=admin_port,
        client_ttl_seconds=3,
    ) as running:
        yield running


def spec(directory: Path, **changes: Any) -> KeeperSpec:  # noqa: ANN401 - the fields of KeeperSpec
    plain = KeeperSpec(
        unit="inference.chat.ssd",
        generation=1,
        size_bytes=2 * MIB,
        file=str(directory / "segment"),
        prefault=True,
        adopt=True,
    )
    return dataclasses.replace(plain, **changes)


def tell(directory: Path, order: KeeperSpec | LeaseFile) -> None:
    name = contract.SPEC_FILE if isinstance(order, KeeperSpec) else contract.LEASE_FILE
    contract.write_file(directory / name, order)


def status(directory: Path) -> KeeperStatus:
    found = contract.read_file(directory / contract.STATUS_FILE, KeeperStatus)
    assert found is not None
    return found


def wait_for(directory: Path, what: str, predicate: Callable[[KeeperStatus], object]) -> KeeperStatus:
    wait_until(lambda: predicate(status(directory)), 20, what, tolerate=(AssertionError,))
    return status(directory)


def test_a_keeper_waits_for_its_spec_then_holds_the_whole_file(
    directory: Path, keeper: ManagedProcess
) -> None:
    keeper.start()
    wait_for(directory, "waiting", lambda s: s.phase is KeeperPhase.WAITING)
    tell(directory, spec(directory))
    ready = wait_for(directory, "ready", lambda s: s.phase is KeeperPhase.READY)
    assert (ready.prepared_bytes, ready.resident_bytes) == (2 * MIB, 2 * MIB)
    assert ready.used_bytes is None


def test_a_file_that_does_not_fit_fails_with_both_figures_and_gives_everything_back(
    small_tmpfs: Path,
) -> None:
    file = small_tmpfs / "segment"
    with pytest.raises(SegmentError, match=f"no space for {8 * MIB} bytes"):
        allocate(file, 8 * MIB, adopt=False, prefault=True, progress=lambda _: None)
    assert os.statvfs(small_tmpfs).f_bfree * os.statvfs(small_tmpfs).f_frsize >= 4 * MIB - 4096


def test_a_full_disk_is_a_failed_phase_and_not_the_end_of_the_keeper(
    small_tmpfs: Path, directory: Path, keeper: ManagedProcess
) -> None:
    tell(directory, spec(directory, size_bytes=8 * MIB, file=str(small_tmpfs / "segment")))
    keeper.start()
    failed = wait_for(directory, "failed", lambda s: s.phase is KeeperPhase.FAILED)
    assert "shrink the unit or free the medium" in failed.error
    tell(directory, spec(directory, generation=2, size_bytes=2 * MIB, file=str(small_tmpfs / "segment")))
    wait_for(directory, "ready", lambda s: s.phase is KeeperPhase.READY)
    keeper.terminate()


def test_a_keeper_that_cannot_write_its_status_holds_on_and_writes_it_again_when_there_is_room(
    small_tmpfs: Path, directory: Path
) -> None:
    unit = small_tmpfs / "unit-g1"
    unit.mkdir()
    tell(unit, spec(unit, file=str(directory / "segment")))
    program = Path(sys.executable).with_name("kvpool-keeper")
    process = ManagedProcess("keeper", [program, "--unit-dir", unit], directory / "keeper.log")
    process.start()
    try:
        wait_for(unit, "ready", lambda s: s.phase is KeeperPhase.READY)
        fill = small_tmpfs / "fill"
        with pytest.raises(OSError, match="No space left"):
            fill.write_bytes(bytes(8 * MIB))
        process.wait_for_line("status cannot be written")
        full_at = boottime_ns()
        fill.unlink()
        wait_for(unit, "a heartbeat", lambda s: s.heartbeat_boottime_ns > full_at)
        process.wait_for_line("status is written again")
        assert status(unit).phase is KeeperPhase.READY
        assert process.text().count("status cannot be written") == 1
    finally:
        process.kill()


def test_a_file_in_the_memory_folder_is_never_made_on_the_disk_below(
    directory: Path, keeper: ManagedProcess
) -> None:
    (directory / contract.MEMORY_FOLDER).mkdir()
    tell(directory, spec(directory, file="mem/segment"))
    keeper.start()
    failed = wait_for(directory, "failed", lambda s: s.phase is KeeperPhase.FAILED)
    assert "nothing is mounted" in failed.error
    assert not (directory / "mem" / "segment").exists()


def test_a_spec_of_an_earlier_boot_is_not_followed(directory: Path, keeper: ManagedProcess) -> None:
    tell(directory, spec(directory, boot_id="00000000-0000-0000-0000-000000000000"))
    keeper.start()
    waiting = wait_for(directory, "the error", lambda s: s.error)
    assert waiting.phase is KeeperPhase.WAITING
    assert "earlier boot" in waiting.error


def test_two_keepers_never_hold_the_same_file(tmp_path: Path) -> None:
    file = tmp_path / "segment"
    first = allocate(file, MIB, adopt=True, prefault=False, progress=lambda _: None)
    with pytest.raises(SegmentError, match="another keeper holds it"):
        allocate(file, MIB, adopt=True, prefault=False, progress=lambda _: None)
    first.close()


@pytest.mark.parametrize(("adopt", "kept"), [(True, b"old"), (False, b"\0\0\0")])
def test_a_file_of_the_right_size_is_taken_over_only_when_asked(
    tmp_path: Path, adopt: bool, kept: bytes
) -> None:
    file = tmp_path / "segment"
    file.write_bytes(b"old" + bytes(MIB - 3))
    segment = allocate(file, MIB, adopt=adopt, prefault=False, progress=lambda _: None)
    assert segment.adopted is adopt
    assert file.read_bytes()[:3] == kept
    segment.close()


def test_a_link_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("somebody's")
    (tmp_path / "segment").symlink_to(theirs)
    with pytest.raises(SegmentError, match="cannot be opened"):
        allocate(tmp_path / "segment", MIB, adopt=False, prefault=False, progress=lambda _: None)
    assert theirs.read_text() == "somebody's"


def test_an_unreadable_spec_is_shown_and_the_last_one_stays(directory: Path, keeper: ManagedProcess) -> None:
    tell(directory, spec(directory))
    keeper.start()
    wait_for(directory, "ready", lambda s: s.phase is KeeperPhase.READY)
    (directory / contract.SPEC_FILE).write_text("{")
    broken = wait_for(directory, "the error", lambda s: s.error)
    assert "not a KeeperSpec" in broken.error
    assert broken.phase is KeeperPhase.READY
    assert keeper.running


def test_metrics_without_the_ping_counter_are_an_error_and_not_zero() -> None:
    with pytest.raises(AdminError):
        parse_metrics('segment_allocated_bytes{segment="a:1"} 5', "a:1")


def test_used_bytes_of_an_unknown_segment_are_unknown_and_not_zero() -> None:
    text = 'segment_allocated_bytes{segment="a:11"} 5\nmaster_ping_requests_total 9\n'
    assert parse_metrics(text, "a:1").used_bytes is None
    assert parse_metrics(text, "a:11").used_bytes == 5


def in_store(directory: Path, master: MooncakeMaster, **changes: Any) -> KeeperSpec:  # noqa: ANN401 - as above
    target = MooncakeMount(master.endpoint, master.admin.base_url.removeprefix("http://"))
    return spec(directory, size_bytes=32 * MIB, mooncake=target, **changes)


def ready_in_store(
    directory: Path,
    keeper: ManagedProcess,
    master: MooncakeMaster,
    **changes: Any,  # noqa: ANN401 - as above
) -> KeeperStatus:
    tell(directory, in_store(directory, master, **changes))
    keeper.start()
    return wait_for(directory, "mounted", lambda s: s.phase is KeeperPhase.READY and s.te_endpoint)


@pytest.mark.mooncake
def test_a_killed_keeper_comes_back_under_a_new_name_and_says_what_was_lost(
    directory: Path, keeper: ManagedProcess, master: MooncakeMaster
) -> None:
    first = ready_in_store(directory, keeper, master)
    store = join_store(
        local_name="127.0.0.1:17901", master=master.endpoint, segment_bytes=0, buffer_bytes=MIB
    )
    assert store.put("block", BLOCK) == 0
    wait_for(directory, "used bytes", lambda s: s.used_bytes)
    keeper.kill()
    keeper.start()
    second = wait_for(directory, "mounted again", lambda s: s.mounted and s.segment != first.segment)
    assert second.contents_lost_count == 1
    assert "ended without unmounting" in second.contents_lost_reason
    store.close()


@pytest.mark.mooncake
def test_a_restarted_master_is_noticed_and_the_segment_comes_back_by_itself(
    directory: Path, keeper: ManagedProcess, master: MooncakeMaster
) -> None:
    first = ready_in_store(directory, keeper, master)
    store = join_store(
        local_name="127.0.0.1:17902", master=master.endpoint, segment_bytes=0, buffer_bytes=MIB
    )
    assert store.put("block", BLOCK) == 0
    wait_for(directory, "used bytes", lambda s: s.used_bytes)
    master.process.kill()
    master.process.start()
    master.wait_ready()
    lost = wait_for(directory, "the loss", lambda s: s.contents_lost_count == 1)
    assert "started anew" in lost.contents_lost_reason
    assert [s.name for s in master.admin.wait_for_segments(1)] == [first.segment]
    store.close()


@pytest.mark.mooncake
def test_a_keeper_without_master_keeps_its_memory_and_tries_again(
    directory: Path, keeper: ManagedProcess, master: MooncakeMaster
) -> None:
    order = in_store(directory, master)
    master.process.kill()
    tell(directory, order)
    keeper.start()
    trying = wait_for(directory, "an error", lambda s: "does not answer" in s.error)
    assert (trying.phase, trying.resident_bytes) == (KeeperPhase.MOUNTING, 32 * MIB)
    master.process.start()
    wait_for(directory, "mounted", lambda s: s.phase is KeeperPhase.READY)


@pytest.mark.mooncake
@pytest.mark.parametrize("way", ["release", "signal"])
def test_a_drain_moves_the_objects_to_another_segment_before_the_unmount(
    directory: Path, keeper: ManagedProcess, master: MooncakeMaster, way: str
) -> None:
    ready_in_store(directory, keeper, master)
    # Joined second: until then all objects land in the keeper's segment.
    writer = join_store(
        local_name="127.0.0.1:17903", master=master.endpoint, segment_bytes=0, buffer_bytes=MIB
    )
    keys = [f"block-{number}" for number in range(8)]
    assert [writer.put(key, BLOCK) for key in keys] == [0] * len(keys)
    other = join_store(
        local_name="127.0.0.1:17904", master=master.endpoint, segment_bytes=16 * MIB, buffer_bytes=MIB
    )
    if way == "release":
        tell(directory, in_store(directory, master, release=Release.DRAIN))
    else:
        keeper.signal(signal.SIGTERM)
    assert keeper.wait(20) == 0
    ended = status(directory)
    assert ended.phase is (KeeperPhase.RELEASED if way == "release" else KeeperPhase.STOPPED)
    assert ended.contents_lost_count == 0
    assert [s.name for s in master.admin.segments()] == ["127.0.0.1:17904"]
    assert all(writer.get(key) == BLOCK for key in keys)
    for store in (writer, other):
        store.close()


@pytest.mark.mooncake
def test_a_strict_segment_leaves_the_store_at_the_deadline_and_comes_back_with_the_lease(
    directory: Path, keeper: ManagedProcess, master: MooncakeMaster
) -> None:
    def lease(seconds: float) -> LeaseFile:
        deadline = boottime_ns() + int(seconds * 1e9)
        return LeaseFile(contract.boot_id(), "node-1", deadline, strict=True, ttl_ms=4000, max_skew_ms=500)

    tell(directory, lease(60))  # a slow machine takes long to join; the lease is to run out after that
    first = ready_in_store(directory, keeper, master, unmount_at_deadline=True)
    tell(directory, lease(1))
    left = wait_for(directory, "unmounted", lambda s: not s.mounted)
    assert "lease ran out" in left.error
    assert left.resident_bytes == 32 * MIB
    assert master.admin.segments() == ()
    tell(directory, lease(60))
    again = wait_for(directory, "mounted again", lambda s: s.mounted)
    assert again.segment != first.segment


def test_a_keeper_waits_until_the_agent_made_its_directory(tmp_path: Path) -> None:
    directory = tmp_path / "later-g1"
    program = Path(sys.executable).with_name("kvpool-keeper")
    process = ManagedProcess("keeper", [program, "--unit-dir", directory], tmp_path / "keeper.log").start()
    try:
        with pytest.raises(ProcessError):
            process.wait(1)
        directory.mkdir()
        tell(directory, spec(directory))
        wait_for(directory, "ready", lambda s: s.phase is KeeperPhase.READY)
    finally:
        process.kill()


def test_a_second_keeper_of_a_unit_waits_in_silence_while_the_first_one_is_stopped(
    directory: Path, keeper: ManagedProcess
) -> None:
    tell(directory, spec(directory))
    keeper.start()
    first = wait_for(directory, "ready", lambda s: s.phase is KeeperPhase.READY)
    keeper.signal(signal.SIGSTOP)
    second = ManagedProcess("second", keeper.argv, directory.parent / "second.log").start()
    try:
        second.wait_for_line("another keeper has this unit", 20)
        assert status(directory).pid == first.pid
        tell(directory, spec(directory, release=Release.NOW))
        keeper.kill()
        given_back = wait_for(directory, "given back", lambda s: s.phase is KeeperPhase.RELEASED)
        assert given_back.pid != first.pid
        assert second.wait(10) == 0
    finally:
        second.kill()


async def test_a_keeper_that_meets_something_unexpected_holds_on_shows_it_and_goes_on(
    directory: Path,
) -> None:
    tell(directory, spec(directory))
    held = Keeper(directory, "127.0.0.1", 1.0)
    with mock.patch.object(Keeper, "_allocate", side_effect=ZeroDivisionError("of nobody")):
        living = asyncio.create_task(held.run())
        await asyncio.to_thread(
            wait_for, directory, "the error", lambda s: s.error == "ZeroDivisionError: of nobody"
        )
    await asyncio.to_thread(wait_for, directory, "ready", lambda s: s.phase is KeeperPhase.READY)
    held.end()
    await living
