"""The files between agent and keeper, and what a keeper makes of the lease."""

from __future__ import annotations

import dataclasses
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.rules.lease import PeerState, PeerWord
from kvpool_keeper.contract import (
    STATUS_FILE,
    ContractError,
    KeeperPhase,
    KeeperSpec,
    KeeperStatus,
    LeaseFile,
    MooncakeMount,
    Peer,
    Release,
    boot_id,
    boottime_ns,
    read_file,
    write_file,
)
from kvpool_keeper.deadline import GroupWords, may_be_mounted, must_ask_peers
from tests.harness.waiting import wait_until

SECOND = 1_000_000_000
SPEC = KeeperSpec("inference.chat.dram.n0", 1, 4096, "mem/segment", prefault=True, adopt=True)
FENCED = dataclasses.replace(SPEC, unmount_at_deadline=True)
LEASE = LeaseFile(
    "boot",
    "node-1",
    100 * SECOND,
    strict=False,
    ttl_ms=10_000,
    max_skew_ms=1000,
    peers=(Peer("node-2", "10.0.0.2:9631"), Peer("node-3", "10.0.0.3:9631")),
)
UNPRIVILEGED = 65532


def test_a_spec_comes_back_as_it_was_written(tmp_path: Path) -> None:
    full = dataclasses.replace(SPEC, mooncake=MooncakeMount("m:1", "m:2"), release=Release.DRAIN)
    write_file(tmp_path / "spec.json", full, durable=True)
    assert read_file(tmp_path / "spec.json", KeeperSpec) == full


def test_a_missing_file_is_none_and_a_broken_one_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    assert read_file(path, KeeperSpec) is None
    path.write_text('{"unit": "x"}')
    with pytest.raises(ContractError, match=f"{path}: not a KeeperSpec: generation"):
        read_file(path, KeeperSpec)


def test_fields_of_a_later_version_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    write_file(path, SPEC)
    path.write_text(path.read_text().replace("{", '{"later": 1, ', 1))
    assert read_file(path, KeeperSpec) == SPEC


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lease.json"
    write_file(path, LEASE)
    with path.open() as old:
        write_file(path, dataclasses.replace(LEASE, node="node-9"))
        assert '"node-1"' in old.read()
    assert list(tmp_path.iterdir()) == [path]


@given(st.binary(max_size=300))
def test_garbage_is_an_error_and_nothing_worse(garbage: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "status.json"
        path.write_bytes(garbage)
        with pytest.raises(ContractError):
            read_file(path, KeeperStatus)


def test_a_segment_stays_mounted_after_the_deadline_unless_fencing_asks_for_it() -> None:
    assert may_be_mounted(SPEC, LEASE, 500 * SECOND, "boot", GroupWords())
    assert not may_be_mounted(FENCED, LEASE, 500 * SECOND, "boot", GroupWords())


def test_a_fenced_segment_is_mounted_only_under_a_lease_of_this_boot() -> None:
    assert may_be_mounted(FENCED, LEASE, 99 * SECOND, "boot", GroupWords())
    assert not may_be_mounted(FENCED, LEASE, 99 * SECOND, "another boot", GroupWords())
    assert not may_be_mounted(FENCED, None, 99 * SECOND, "boot", GroupWords())


def test_a_fenced_segment_stays_in_an_outage_that_the_keeper_sees_itself() -> None:
    now = 101 * SECOND
    lost = {"node-2": PeerWord(PeerState.LOST, 100.5)}
    assert may_be_mounted(FENCED, LEASE, now, "boot", GroupWords().heard(LEASE, lost, now))
    held = {"node-2": PeerWord(PeerState.HELD, 100.5)}
    assert not may_be_mounted(FENCED, LEASE, now, "boot", GroupWords().heard(LEASE, held, now))


def test_what_peers_said_before_the_deadline_is_no_outage_after_it() -> None:
    lost = {"node-2": PeerWord(PeerState.LOST, 99.0)}
    early = GroupWords().heard(LEASE, lost, 99 * SECOND)
    assert not may_be_mounted(FENCED, LEASE, 101 * SECOND, "boot", early)


def test_peers_are_asked_when_the_deadline_is_near_and_only_when_it_matters() -> None:
    assert must_ask_peers(FENCED, LEASE, int(99.5 * SECOND))
    assert not must_ask_peers(FENCED, LEASE, 90 * SECOND)
    assert not must_ask_peers(SPEC, LEASE, 500 * SECOND)
    assert not must_ask_peers(FENCED, dataclasses.replace(LEASE, strict=True), 500 * SECOND)


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that another user can reach, unlike a test's own."""
    folder = Path(tempfile.mkdtemp(prefix="kvpool-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_keeper_needs_no_rights_but_those_to_its_directory(shared_folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, or `python -m devcluster.sandbox`: changes the user")
    directory = shared_folder / "unit-g1"
    directory.mkdir(mode=0o750)
    try:
        os.chown(directory, UNPRIVILEGED, UNPRIVILEGED)
    except OSError as error:
        pytest.skip(f"needs real root: user {UNPRIVILEGED} is not mapped here ({error.strerror})")
    order = dataclasses.replace(SPEC, file=str(directory / "segment"), boot_id=boot_id())
    write_file(directory / "spec.json", order)
    # Everything is imported before the user changes: the interpreter may lie where only root can read.
    program = (
        "import os, concurrent.futures.thread; from kvpool_keeper.main import main; "
        f"os.setgroups([]); os.setgid({UNPRIVILEGED}); os.setuid({UNPRIVILEGED}); main()"
    )
    keeper = subprocess.Popen([sys.executable, "-c", program, "--unit-dir", str(directory)])
    try:
        wait_until(
            lambda: (s := read_file(directory / STATUS_FILE, KeeperStatus)) and s.phase is KeeperPhase.READY,
            10,
            "the keeper to be ready",
        )
        found = (directory / "segment").stat()
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (UNPRIVILEGED, 0o600)
        status = read_file(directory / STATUS_FILE, KeeperStatus)
        assert status is not None
        assert boottime_ns() - status.heartbeat_boottime_ns < 5 * SECOND
    finally:
        keeper.kill()
        keeper.wait()
