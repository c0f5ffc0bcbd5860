"""A keeper whose master dropped it for its silence says so; objects that others removed are no loss."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.neighbours.mooncake import MooncakeMaster
from demo.neighbours.store import join_store
from devcluster.ports import free_ports
from devcluster.process import ManagedProcess
from kvpool_keeper import contract
from kvpool_keeper.contract import KeeperPhase, KeeperSpec, KeeperStatus, MooncakeMount
from kvpool_keeper.master_admin import Reading, parse_metrics
from kvpool_keeper.membership import NANOSECONDS, Silence, is_forgotten
from tests.harness.waiting import wait_until

MIB = 1 << 20
DEADLINE_SECONDS = 20.0
CLIENT_TTL_SECONDS = 3


@pytest.mark.parametrize(
    ("before", "after", "silent_seconds", "forgotten"),
    [
        ((5, 1), (None, 1), 1.0, True),
        ((5, 1), (0, 2), 12.0, True),
        ((5, 1), (2, 2), 12.0, True),
        ((5, 1), (0, 1), 12.0, False),
        ((5, 1), (0, 2), 1.0, False),
        ((5, 1), (5, 2), 12.0, False),
        ((0, 1), (None, 2), 12.0, False),
        ((None, 1), (0, 2), 12.0, False),
    ],
)
def test_objects_are_forgotten_where_the_segment_went_or_came_anew_after_a_silence(
    before: tuple[int | None, int], after: tuple[int | None, int], silent_seconds: float, forgotten: bool
) -> None:
    """Each reading is used bytes and count of remounts."""
    last, now = (Reading(used, pings=9, remounts=remounts) for used, remounts in (before, after))
    assert is_forgotten(last, now, silent_seconds) is forgotten


def test_a_remount_that_comes_some_looks_after_a_silence_still_tells_of_it() -> None:
    silence, second = Silence(), NANOSECONDS
    assert silence.lately(1.0, 100 * second) == 1.0
    assert silence.lately(28.0, 128 * second) == 28.0
    assert silence.lately(1.0, 130 * second) == 28.0, (
        "the master showed what it had forgotten, for a look or two"
    )
    assert silence.lately(1.0, 160 * second) == 1.0


def test_remounts_are_read_from_the_master_s_metrics_and_a_master_without_them_has_none() -> None:
    text = "master_ping_requests_total 9\n"
    assert parse_metrics(f"{text}master_remount_segment_requests_total 4\n", "a:1").remounts == 4
    assert parse_metrics(text, "a:1").remounts == 0


@pytest.fixture
def master(tmp_path: Path) -> Iterator[MooncakeMaster]:
    rpc_port, admin_port = free_ports(2)
    with MooncakeMaster(
        address="127.0.0.1",
        log_path=tmp_path / "master.log",
        rpc_port=rpc_port,
        admin_port=admin_port,
        client_ttl_seconds=CLIENT_TTL_SECONDS,
    ) as running:
        yield running


@pytest.fixture
def directory(tmp_path: Path, master: MooncakeMaster) -> Path:
    """Of a unit that joins the master."""
    folder = tmp_path / "unit-g1"
    folder.mkdir()
    spec = KeeperSpec(
        unit="inference.chat.ssd",
        generation=1,
        size_bytes=32 * MIB,
        file=str(folder / "segment"),
        prefault=True,
        adopt=True,
        mooncake=MooncakeMount(master.endpoint, master.admin.base_url.removeprefix("http://")),
    )
    contract.write_file(folder / contract.SPEC_FILE, spec)
    return folder


@pytest.fixture
def keeper(directory: Path) -> Iterator[ManagedProcess]:
    program = Path(sys.executable).with_name("kvpool-keeper")
    process = ManagedProcess("keeper", [program, "--unit-dir", directory], directory / "keeper.log").start()
    yield process
    process.kill()


def status(directory: Path) -> KeeperStatus:
    found = contract.read_file(directory / contract.STATUS_FILE, KeeperStatus)
    assert found is not None
    return found


@pytest.mark.mooncake
def test_a_keeper_that_its_master_could_not_hear_says_once_that_it_was_forgotten(
    directory: Path, keeper: ManagedProcess, master: MooncakeMaster
) -> None:
    wait_until(
        lambda: status(directory).te_endpoint, DEADLINE_SECONDS, "the mount", tolerate=(AssertionError,)
    )
    store = join_store(
        local_name="127.0.0.1:17903", master=master.endpoint, segment_bytes=0, buffer_bytes=MIB
    )
    assert store.put("block", os.urandom(64 << 10)) == 0
    wait_until(lambda: status(directory).used_bytes, DEADLINE_SECONDS, "used bytes")
    os.kill(keeper.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: not master.admin.segments(), DEADLINE_SECONDS, "the master to forget the segment")
    finally:
        os.kill(keeper.pid, signal.SIGCONT)
    wait_until(lambda: status(directory).contents_lost_count, DEADLINE_SECONDS, "the loss to be said")
    assert "longer than its client_ttl, and forgot its objects" in status(directory).contents_lost_reason
    assert [one.name for one in master.admin.wait_for_segments(1)] == [status(directory).segment]
    wait_until(lambda: status(directory).used_bytes == 0, DEADLINE_SECONDS, "an empty segment")
    assert (status(directory).phase, status(directory).contents_lost_count) == (KeeperPhase.READY, 1)
    store.close()
