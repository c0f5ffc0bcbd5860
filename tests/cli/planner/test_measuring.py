"""Measuring edges: what a machine shows, and one sentence for each thing that cannot be measured."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NoReturn, cast

import pytest

from kvpool.cli.planning.measuring import cuda, scratch_file
from kvpool.cli.planning.measuring.accelerator import (
    Accelerator,
    NoAcceleratorError,
    measure_accelerator,
)
from kvpool.cli.planning.measuring.host_memory import measure_host_memory
from kvpool.cli.planning.measuring.loopback import BURSTS, measure_loopback
from kvpool.cli.planning.measuring.machine import MemoryNode, described, limits, memory_nodes, numbers_of
from kvpool.cli.planning.measuring.scratch_file import file_system_of
from kvpool.cli.planning.measuring.ssd import measure_ssd
from kvpool.plan.calibration.constants import Constant, Source

MIB = 1 << 20
MINE = tuple(sorted(os.sched_getaffinity(0)))


def by_name(constants: Iterator[Constant]) -> dict[str, Constant]:
    listed = list(constants)
    found = {constant.name: constant for constant in listed}
    assert len(found) == len(listed)
    return found


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def node(root: Path, number: int, cpus: str, total_kib: int, distance: str) -> None:
    folder = root / f"sys/devices/system/node/node{number}"
    write(folder / "cpulist", cpus + "\n")
    write(folder / "distance", distance + "\n")
    write(folder / "meminfo", f"Node {number} MemTotal: {total_kib} kB\nNode {number} MemFree: 1048576 kB\n")


# ---- the machine


def test_a_node_of_memory_alone_is_found_beside_the_others(tmp_path: Path) -> None:
    node(tmp_path, 0, ",".join(map(str, MINE)), 2**20, "10 21 24")
    node(tmp_path, 1, "900-901", 2**20, "21 10 14")
    node(tmp_path, 2, "", 2**22, "24 14 10")
    node(tmp_path, 3, "902", 0, "40 40 40 10")
    first, second, third = memory_nodes(tmp_path)
    assert first.processors == MINE
    assert (second.processors, second.has_processors) == ((), True)
    assert (third.processors, third.has_processors) == ((), False)
    assert third.free_bytes == 1 << 30
    assert third.distances[1] == 14


def test_only_nodes_that_a_container_may_use_are_measured(tmp_path: Path) -> None:
    node(tmp_path, 0, "0", 2**20, "10 21")
    node(tmp_path, 1, "1", 2**20, "21 10")
    write(tmp_path / "proc/self/status", "Name:\tx\nMems_allowed_list:\t1\n")
    assert [one.number for one in memory_nodes(tmp_path)] == [1]


def test_a_kernel_without_nodes_has_one(tmp_path: Path) -> None:
    write(tmp_path / "proc/meminfo", "MemTotal: 2048 kB\nMemAvailable: 1024 kB\n")
    (only,) = memory_nodes(tmp_path)
    assert (only.number, only.processors, only.free_bytes) == (0, MINE, 1 << 20)


@pytest.mark.parametrize(
    ("text", "numbers"), [("0-3,8", (0, 1, 2, 3, 8)), ("", ()), ("5", (5,)), ("1,2", (1, 2))]
)
def test_lists_of_the_kernel_are_read(text: str, numbers: tuple[int, ...]) -> None:
    assert numbers_of(text) == numbers


def test_limits_of_both_versions_of_control_groups_are_found(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/pod/engine\n")
    write(tmp_path / "sys/fs/cgroup/pod/engine/cpu.max", "150000 100000\n")
    write(tmp_path / "sys/fs/cgroup/pod/engine/memory.max", "4294967296\n")
    assert (limits(tmp_path).processors, limits(tmp_path).memory_bytes) == (1.5, 4 << 30)
    old = tmp_path / "old"
    write(old / "proc/self/cgroup", "4:memory:/a\n1:cpu,cpuacct:/a\n")
    write(old / "sys/fs/cgroup/memory/a/memory.limit_in_bytes", str(2 << 30))
    write(old / "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000")
    write(old / "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000")
    assert (limits(old).processors, limits(old).memory_bytes) == (0.5, 2 << 30)


def test_no_limit_is_none_however_it_is_written(tmp_path: Path) -> None:
    write(tmp_path / "sys/fs/cgroup/cpu.max", "max 100000\n")
    write(tmp_path / "sys/fs/cgroup/memory.max", "max\n")
    write(tmp_path / "sys/fs/cgroup/memory.limit_in_bytes", "9223372036854771712")
    assert (limits(tmp_path).processors, limits(tmp_path).memory_bytes) == (None, None)


def test_a_machine_says_that_a_container_limits_it(tmp_path: Path) -> None:
    write(tmp_path / "sys/fs/cgroup/cpu.max", "150000 100000\n")
    write(tmp_path / "sys/fs/cgroup/memory.max", "4294967296\n")
    found = described(tmp_path)
    assert found["processor limit"] == "1.5 processors, set by a container"
    assert found["memory limit"] == "4.0 GiB, set by a container"


# ---- memory


def test_memory_is_copied_and_the_rate_says_how() -> None:
    found = by_name(
        measure_host_memory([MemoryNode(0, MINE[:1], 256 * MIB, has_processors=True)], None, 0.05)
    )
    (copied,) = found.values()
    assert copied.name == "host.memory.node0.copy"
    assert copied.source is Source.MEASURED
    assert copied.value is not None
    assert copied.low is not None
    assert copied.high is not None
    assert 10**7 < copied.low <= copied.value <= copied.high < 10**13
    assert copied.samples >= 3
    assert "32 MiB within node 0 by 1 thread of node 0" in copied.method


def test_a_container_with_little_memory_is_told_in_one_sentence() -> None:
    nodes = [MemoryNode(0, MINE[:1], 1 << 40, has_processors=True)]
    (copied,) = by_name(measure_host_memory(nodes, 100 * MIB, 0.05)).values()
    assert copied.source is Source.NOT_MEASURED
    assert "256 are needed" in copied.reason


def test_memory_that_cannot_be_bound_is_told_and_the_rest_is_measured() -> None:
    nodes = [
        MemoryNode(0, MINE[:1], 256 * MIB, has_processors=True, distances={0: 10, 900: 30}),
        MemoryNode(900, (), 256 * MIB, has_processors=False, distances={0: 30, 900: 10}),
    ]
    found = by_name(measure_host_memory(nodes, None, 0.1))
    assert found["host.memory.node900.copy"].source is Source.NOT_MEASURED
    assert "node 900" in found["host.memory.node900.copy"].reason


def test_every_way_between_nodes_has_its_name() -> None:
    nodes = [
        MemoryNode(0, (0,), 0, has_processors=True, distances={0: 10, 1: 21, 2: 24}),
        MemoryNode(1, (1,), 0, has_processors=True, distances={0: 21, 1: 10, 2: 14}),
        MemoryNode(2, (), 0, has_processors=False, distances={0: 24, 1: 14, 2: 10}),
    ]
    assert list(by_name(measure_host_memory(nodes, None, 1))) == [
        "host.memory.node0.copy",
        "host.memory.node0.copy.from1",
        "host.memory.node1.copy",
        "host.memory.node1.copy.from0",
        "host.memory.node2.copy",
        "host.memory.node2.copy.from0",
    ]


# ---- disk


def test_a_disk_is_written_and_read_and_nothing_stays(tmp_path: Path) -> None:
    found = by_name(measure_ssd(tmp_path, 64 * MIB, 0.4))
    assert list(tmp_path.iterdir()) == []
    if file_system_of(tmp_path) == "tmpfs":
        assert "memory and no disk" in found["ssd.write"].reason
        return
    assert list(found) == [
        "ssd.write",
        *(name for depth in (1, 8, 32) for name in (f"ssd.read.qd{depth}", f"ssd.read.qd{depth}.p99")),
    ]
    for constant in found.values():
        assert constant.value is not None
        assert constant.value > 0
        assert constant.samples >= 1
    assert "short" in found["ssd.write"].reason


def test_memory_is_not_taken_for_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_file, "file_system_of", lambda _: "tmpfs")
    assert f"{tmp_path} is tmpfs, which is memory" in refused(tmp_path)


def refused(folder: Path) -> str:
    (reason,) = {constant.reason for constant in measure_ssd(folder, 64 * MIB, 0.1)}
    assert list(folder.iterdir()) == []
    return reason


def on_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_file, "file_system_of", lambda _: "ext4")


def test_a_full_disk_says_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_disk(monkeypatch)
    facts = os.statvfs_result((4096, 4096, 10_000, 3_000, 2_560, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: facts)
    assert "has 10 MiB free and 128 are needed" in refused(tmp_path)


def test_a_disk_that_fills_up_meanwhile_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_disk(monkeypatch)

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(scratch_file, "_past_the_cache", lambda *_: None)
    monkeypatch.setattr(os, "posix_fallocate", full)
    assert "is full (No space left on device)" in refused(tmp_path)


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_disk(monkeypatch)

    def read_only(**_: object) -> NoReturn:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "TemporaryFile", read_only)
    assert "cannot be written (Read-only file system)" in refused(tmp_path)


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    reasons = {constant.reason for constant in measure_ssd(tmp_path / "none", 64 * MIB, 0.1)}
    assert reasons == {
        f"{tmp_path / 'none'} cannot be used: No such file or directory; name another folder (--folder)"
    }


def test_a_file_system_without_direct_transfers_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_disk(monkeypatch)

    def no_direct(_: int, command: int, argument: int = 0) -> int:
        if command == fcntl.F_SETFL and argument & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return 0

    monkeypatch.setattr(fcntl, "fcntl", no_direct)
    assert "takes no direct I/O (O_DIRECT)" in refused(tmp_path)


def test_a_disk_that_fails_while_it_is_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> NoReturn:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    on_a_disk(monkeypatch)
    monkeypatch.setattr(scratch_file, "_past_the_cache", lambda *_: None)
    monkeypatch.setattr(os, "preadv", broken)
    found = list(measure_ssd(tmp_path, 64 * MIB, 0.1))
    assert (found[0].name, found[0].source) == ("ssd.write", Source.MEASURED)
    assert [one.name for one in found[1:]] == ["ssd.read.qd1", "ssd.read.qd8", "ssd.read.qd32"]
    assert all("Input/output error" in one.reason for one in found[1:])
    assert list(tmp_path.iterdir()) == []


def test_nothing_stays_when_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_disk(monkeypatch)
    monkeypatch.setattr(scratch_file, "_past_the_cache", lambda *_: None)
    seen: list[Path] = []

    def stopped() -> None:
        with scratch_file.scratch_file(tmp_path, 64 * MIB):
            seen.extend(tmp_path.iterdir())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert seen == list(tmp_path.iterdir()) == []


def test_the_file_system_of_a_folder_is_that_of_the_last_mount_above_it(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    inner = (tmp_path / "data").resolve()
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/a rw\n"
        f"2 1 0:5 / {inner} rw shared:1 - xfs /dev/b rw\n"
        f"3 1 0:6 / {inner} rw - tmpfs tmpfs rw\n"
        f"4 1 0:7 / {inner}-more rw - nfs4 x rw\n"
        "broken line\n"
    )
    assert file_system_of(inner / "x", mounts) == "tmpfs"
    assert file_system_of(tmp_path, mounts) == "ext4"
    assert file_system_of(tmp_path, tmp_path / "none") == ""


# ---- loopback


def test_blocks_are_pulled_over_the_loopback_alone_and_in_bursts() -> None:
    found = by_name(measure_loopback(0.3))
    assert list(found) == ["network.loopback", *(f"network.loopback.burst{count}" for count in BURSTS)]
    curve = found["network.loopback"].curve
    assert curve is not None
    assert [point.size_bytes for point in curve.points] == sorted(point.size_bytes for point in curve.points)
    assert all(constant.source is Source.MEASURED and constant.value for constant in found.values())


def test_a_machine_without_loopback_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))

    monkeypatch.setattr("socket.create_server", none)
    (constant,) = measure_loopback(0.1)
    assert constant.source is Source.NOT_MEASURED
    assert "Cannot assign requested address" in constant.reason


# ---- accelerator


class FakeCard:
    """Copies nothing, and counts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.driver = "for CUDA 13.0"
        self.copied = {"in": 0, "out": 0, "within": 0}

    def copy_in(self, size_bytes: int) -> None:
        self.copied["in"] += size_bytes
        ctypes.create_string_buffer(size_bytes // 64)

    def copy_out(self, size_bytes: int) -> None:
        self.copied["out"] += size_bytes
        ctypes.create_string_buffer(size_bytes // 64)

    def copy_within(self, size_bytes: int) -> None:
        self.copied["within"] += size_bytes


def opener(card: FakeCard) -> object:
    @contextmanager
    def opened(room_bytes: int) -> Iterator[Accelerator]:
        assert room_bytes == 1 << 30
        yield card

    return opened


def none_here(_: int) -> AbstractContextManager[Accelerator]:
    raise NoAcceleratorError("no accelerator can be measured: none is here")


def test_an_accelerator_is_measured_and_its_products_come_from_its_data_sheet() -> None:
    card = FakeCard("NVIDIA H200")
    found = by_name(measure_accelerator(opener(card), None, 0.06))  # type: ignore[arg-type]  # a fake
    assert {name: constant.source for name, constant in found.items()} == {
        "card.memory.rate": Source.MEASURED,
        "card.copy.in": Source.MEASURED,
        "card.copy.out": Source.MEASURED,
        "card.memory.bytes": Source.DATA_SHEET,
        "card.products.16bit": Source.DATA_SHEET,
        "card.products.8bit": Source.DATA_SHEET,
    }
    assert all(card.copied.values())
    assert "NVIDIA H200, driver for CUDA 13.0" in found["card.copy.in"].method
    assert found["card.memory.bytes"].value == 141e9


def test_an_accelerator_without_a_known_sheet_is_measured_all_the_same() -> None:
    found = by_name(measure_accelerator(opener(FakeCard("Shiny 9")), None, 0.06))  # type: ignore[arg-type]  # a fake
    assert found["card.memory.rate"].source is Source.MEASURED
    assert found["card.products.16bit"].source is Source.NOT_MEASURED
    assert "Shiny 9 is no card that is known here" in found["card.products.16bit"].reason


def test_without_an_accelerator_a_named_card_gives_its_data_sheet_and_says_so() -> None:
    found = by_name(measure_accelerator(none_here, "H200", 1))
    assert found["card.memory.rate"].source is Source.DATA_SHEET
    assert found["card.memory.rate"].value == 4.8e12
    assert found["card.memory.rate"].reason == "peak, not measured here"
    assert found["card.copy.in"].source is Source.NOT_MEASURED


def test_without_an_accelerator_and_a_name_the_reason_names_the_cards() -> None:
    found = by_name(measure_accelerator(none_here, None, 1))
    assert {constant.source for constant in found.values()} == {Source.NOT_MEASURED}
    assert "--card): A100-80GB" in found["card.memory.rate"].reason


class FakeDriver:
    """The driver's library, with one card; every function gives `error` when it is the one that fails."""

    def __init__(self, count: int = 1, failing: str = "") -> None:
        self.count, self.failing = count, failing
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> object:
        def call(*arguments: object) -> int:
            self.calls.append(name)
            if name == self.failing:
                return 2
            if name == "cuDeviceGetCount":
                arguments[0]._obj.value = self.count  # type: ignore[attr-defined]  # what byref points to
            if name == "cuDriverGetVersion":
                arguments[0]._obj.value = 13_020  # type: ignore[attr-defined]  # what byref points to
            if name == "cuDeviceGetName":
                arguments[0].value = b"NVIDIA H100"  # type: ignore[attr-defined]  # a string buffer
            return 0

        return call


def opened_with(driver: FakeDriver) -> AbstractContextManager[Accelerator]:
    return cuda.opened(4096, lambda: cast("ctypes.CDLL", driver))


def test_the_drivers_library_is_opened_used_and_given_back() -> None:
    driver = FakeDriver()
    with opened_with(driver) as card:
        assert (card.name, card.driver) == ("NVIDIA H100", "for CUDA 13.2")
        card.copy_in(10)
        card.copy_out(10)
        card.copy_within(10)
    for copy in ("cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2"):
        assert driver.calls[driver.calls.index(copy) + 1] == "cuCtxSynchronize"
    assert driver.calls[-4:] == [
        "cuMemFreeHost",
        "cuMemFree_v2",
        "cuMemFree_v2",
        "cuDevicePrimaryCtxRelease_v2",
    ]


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (FakeDriver(count=0), "its driver sees none"),
        (FakeDriver(failing="cuInit"), "cuInit gave error 2"),
        (FakeDriver(failing="cuMemAllocHost_v2"), "cuMemAllocHost_v2 gave error 2"),
    ],
)
def test_a_card_that_cannot_be_opened_says_why_and_is_given_back(driver: FakeDriver, words: str) -> None:
    with pytest.raises(NoAcceleratorError, match=words), opened_with(driver):
        pass
    assert driver.calls.count("cuMemAlloc_v2") == driver.calls.count("cuMemFree_v2")
    assert driver.calls.count("cuDevicePrimaryCtxRetain") == driver.calls.count(
        "cuDevicePrimaryCtxRelease_v2"
    )


def test_a_machine_without_the_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "LIBRARY", "libcuda-of-nobody.so.1")
    with pytest.raises(NoAcceleratorError, match="libcuda-of-nobody"):
        cuda.load()
