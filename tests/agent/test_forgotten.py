"""A keeper whose master dropped it for its silence says so; objects that others removed are no loss."""

from __future__ import annotations

import asyncio
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
from kvpool_keeper.membership import NANOSECONDS, Membership, Silence, is_forgotten
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


def at(used: int | None, remounts: int) -> Reading:
    return Reading(used, pings=9, remounts=remounts)


def test_a_silence_is_remembered_with_what_was_there_before_it_until_it_is_old_or_told() -> None:
    silence, second = Silence(), NANOSECONDS
    silence.take(at(5, 1), 1.0, 100 * second)
    assert (silence.seconds, silence.before) == (0.0, None)
    silence.take(at(5, 1), 28.0, 128 * second)
    silence.take(at(0, 1), 1.0, 130 * second)
    assert (silence.seconds, silence.before) == (28.0, at(5, 1)), "of looks a second apart none matters"
    silence.take(at(0, 1), 1.0, 160 * second)
    assert (silence.seconds, silence.before) == (0.0, None)
    silence.take(at(5, 1), 28.0, 228 * second)
    silence.forget()
    assert (silence.seconds, silence.before) == (0.0, None)


def test_of_two_silences_close_together_the_longest_and_the_most_that_was_there_count() -> None:
    silence, second = Silence(), NANOSECONDS
    silence.take(at(5, 1), 12.0, 112 * second)
    silence.take(at(7, 2), 4.0, 117 * second)
    assert (silence.seconds, silence.before) == (12.0, at(7, 1))
    silence.take(at(2, 3), 4.0, 217 * second)
    assert (silence.seconds, silence.before) == (4.0, at(2, 3)), "the first two are long over"


@pytest.mark.parametrize(
    "looks",
    [
        [(None, 1), (0, 2)],
        [(0, 2)],
        [(5, 1), (0, 2)],
        [(5, 2), (0, 2)],
        [(0, 1), (0, 2)],
        [(5, 1), (5, 2), (3, 2)],
    ],
    ids=str,
)
def test_in_whatever_order_a_master_shows_a_loss_after_a_silence_it_is_found_once(
    looks: list[tuple[int | None, int]],
) -> None:
    """Looks come a second apart after 12 s of silence, before which 5 bytes were used and 1 was mounted."""
    silence, last, found = Silence(), at(5, 1), 0
    for index, (used, remounts) in enumerate(looks):
        silence.take(last, 1.0 if index else 12.0, (112 + index) * NANOSECONDS)
        last = at(used, remounts)
        if is_forgotten(silence.before or at(0, 1), last, silence.seconds):
            found += 1
            silence.forget()
    assert found == 1


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (Reading(0, pings=2, remounts=1), "was started anew and forgot all objects"),
        (Reading(None, pings=10, remounts=1), "and forgot its objects"),
        (Reading(0, pings=10, remounts=2), "did not hear this segment for up to 12 s"),
        (Reading(5, pings=10, remounts=2), ""),
    ],
)
@pytest.mark.parametrize("before", [0, None])
def test_what_was_written_since_a_silence_over_an_empty_segment_is_missed_when_it_goes(
    monkeypatch: pytest.MonkeyPatch, before: int | None, after: Reading, told: str
) -> None:
    member = Membership(MooncakeMount("m:1", "m:2"), "127.0.0.1")
    member.te_endpoint = "m:3"
    shown = [Reading(before, 7, 1), Reading(before, 8, 1), Reading(5, 9, 1), after]
    monkeypatch.setattr(member._admin, "read", lambda _: shown.pop(0))
    *whys, why = (asyncio.run(member.look(second * NANOSECONDS)) for second in (100, 112, 113, 114))
    assert whys == ["", "", ""]
    assert told in why
    assert bool(told) == bool(why)


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
