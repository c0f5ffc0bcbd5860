"""Machine, memory and loopback: what is there, and one sentence for each thing that cannot be measured."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from kvpool.cli.planning.measuring.host_memory import measure_host_memory
from kvpool.cli.planning.measuring.loopback import BURSTS, measure_loopback
from kvpool.cli.planning.measuring.machine import (
    Limits,
    MemoryNode,
    described,
    limits,
    memory_nodes,
    numbers_of,
)
from kvpool.plan.calibration.constants import Source
from tests.cli.planner.measured import by_name

MIB = 1 << 20
MINE = tuple(sorted(os.sched_getaffinity(0)))
FREE = Limits(processors=None, memory_bytes=None)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def node(root: Path, number: int, cpus: str, total_kib: int, distance: str) -> None:
    folder = root / f"sys/devices/system/node/node{number}"
    write(folder / "cpulist", cpus + "\n")
    write(folder / "distance", distance + "\n")
    write(folder / "meminfo", f"Node {number} MemTotal: {total_kib} kB\nNode {number} MemFree: 1048576 kB\n")


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


def test_memory_is_copied_and_the_rate_says_how() -> None:
    found = by_name(
        measure_host_memory([MemoryNode(0, MINE[:1], 256 * MIB, has_processors=True)], FREE, 0.05)
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


def test_no_more_threads_copy_than_a_container_lets_run() -> None:
    nodes = [MemoryNode(0, MINE[:2], 256 * MIB, has_processors=True)]
    found = by_name(measure_host_memory(nodes, Limits(1.5, None), 0.05))
    assert list(found) == ["host.memory.node0.copy"]
    assert "by 1 thread" in found["host.memory.node0.copy"].method


def test_a_container_with_little_memory_is_told_in_one_sentence() -> None:
    nodes = [MemoryNode(0, MINE[:1], 1 << 40, has_processors=True)]
    (copied,) = by_name(measure_host_memory(nodes, Limits(None, 100 * MIB), 0.05)).values()
    assert copied.source is Source.NOT_MEASURED
    assert "256 are needed" in copied.reason


def test_memory_that_cannot_be_bound_is_told_and_the_rest_is_measured() -> None:
    nodes = [
        MemoryNode(0, MINE[:1], 256 * MIB, has_processors=True, distances={0: 10, 900: 30}),
        MemoryNode(900, (), 256 * MIB, has_processors=False, distances={0: 30, 900: 10}),
    ]
    found = by_name(measure_host_memory(nodes, FREE, 0.1))
    assert found["host.memory.node900.copy"].source is Source.NOT_MEASURED
    assert "node 900" in found["host.memory.node900.copy"].reason


def test_every_way_between_nodes_has_its_name() -> None:
    nodes = [
        MemoryNode(0, (0,), 0, has_processors=True, distances={0: 10, 1: 21, 2: 24}),
        MemoryNode(1, (1,), 0, has_processors=True, distances={0: 21, 1: 10, 2: 14}),
        MemoryNode(2, (), 0, has_processors=False, distances={0: 24, 1: 14, 2: 10}),
    ]
    assert list(by_name(measure_host_memory(nodes, FREE, 1))) == [
        "host.memory.node0.copy",
        "host.memory.node0.copy.from1",
        "host.memory.node1.copy",
        "host.memory.node1.copy.from0",
        "host.memory.node2.copy",
        "host.memory.node2.copy.from0",
    ]


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
