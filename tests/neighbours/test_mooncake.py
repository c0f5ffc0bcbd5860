"""The real Mooncake master, and the segments that existing engines bring to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.neighbours.mooncake import AdminUnavailableError, MooncakeAdmin, MooncakeMaster
from demo.neighbours.store import SMALLEST_SEGMENT_BYTES, StoreUnavailableError, join_store
from devcluster.ports import free_port, free_ports
from devcluster.process import ProcessError
from tests.harness.waiting import wait_until
from tests.neighbours.conftest import LOOPBACK, StartEngine, require_mooncake

pytestmark = pytest.mark.mooncake


def test_a_fresh_master_serves_and_holds_nothing(mooncake: MooncakeMaster) -> None:
    assert mooncake.admin.healthy()
    assert mooncake.admin.key_count() == 0


def test_an_engines_own_segment_appears_under_its_address_and_leaves_with_the_engine(
    mooncake: MooncakeMaster, start_engine: StartEngine
) -> None:
    store_port = free_port()
    engine = start_engine(
        master=mooncake.endpoint, segment_bytes=SMALLEST_SEGMENT_BYTES, store_port=store_port
    )
    (segment,) = mooncake.admin.segments()
    assert segment.name == f"{LOOPBACK}:{store_port}"
    assert segment.size_bytes == segment.capacity_bytes == SMALLEST_SEGMENT_BYTES
    assert segment.used_bytes == 0
    assert segment.statuses == ("OK",)

    assert engine.process.terminate() == 0
    # A segment that is only left to time out stays for 10 s (the master's client_ttl).
    wait_until(lambda: mooncake.admin.segments() == (), 3, "the segment to leave with its engine")


def test_several_rows_of_one_name_are_counted_once(mooncake: MooncakeMaster) -> None:
    name = f"{LOOPBACK}:{free_port()}"
    store = join_store(
        local_name=name, master=mooncake.endpoint, segment_bytes=SMALLEST_SEGMENT_BYTES, buffer_bytes=1 << 20
    )
    try:
        second = store.allocate_and_mount_segment(SMALLEST_SEGMENT_BYTES)
        assert second["ret"] == 0, second
        assert store.put("one", b"x" * 4096) == 0
        (segment,) = mooncake.admin.segments()
        assert segment.name == name
        assert len(segment.statuses) == 2
        assert segment.size_bytes == segment.capacity_bytes == 2 * SMALLEST_SEGMENT_BYTES
        assert segment.used_bytes == 4096
    finally:
        store.remove_all(True)
        store.close()


def test_a_master_is_not_started_on_a_port_that_is_taken(mooncake: MooncakeMaster, tmp_path: Path) -> None:
    taken = int(mooncake.endpoint.rpartition(":")[2])
    with pytest.raises(ProcessError, match=f"something else listens on {LOOPBACK}:{taken}"):
        MooncakeMaster(
            address=LOOPBACK, log_path=tmp_path / "second.log", rpc_port=taken, admin_port=free_port()
        )


def test_a_master_that_ends_says_so_with_its_log(tmp_path: Path) -> None:
    require_mooncake()
    rpc_port, admin_port = free_ports(2)
    master = MooncakeMaster(
        address=LOOPBACK,
        log_path=tmp_path / "master.log",
        rpc_port=rpc_port,
        admin_port=admin_port,
        flags=["--no_such_flag=1"],
    )
    with pytest.raises(ProcessError, match=r"(?s)mooncake_master: ended with 1.*no_such_flag"):
        master.wait_ready()


def test_an_admin_that_does_not_answer_is_an_error_of_its_own() -> None:
    admin = MooncakeAdmin(f"http://{LOOPBACK}:{free_port()}")
    assert not admin.healthy()
    with pytest.raises(AdminUnavailableError, match="get_segments_detail"):
        admin.segments()


def test_joining_a_store_without_a_master_fails_within_its_deadline() -> None:
    require_mooncake()
    local, master = free_ports(2)
    with pytest.raises(StoreUnavailableError, match="setup against master"):
        join_store(
            local_name=f"{LOOPBACK}:{local}",
            master=f"{LOOPBACK}:{master}",
            segment_bytes=0,
            buffer_bytes=1 << 20,
            deadline_seconds=0.5,
        )


def test_a_segment_below_mooncakes_smallest_is_refused_with_both_sizes() -> None:
    with pytest.raises(StoreUnavailableError, match=r"8388608 bytes .* 16777216"):
        join_store(local_name="a:1", master="b:2", segment_bytes=8 << 20, buffer_bytes=1 << 20)
