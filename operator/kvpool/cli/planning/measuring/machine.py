"""What machine this is: memory nodes, processors, and the limits that a container sets."""

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path("/")


@dataclass(frozen=True, slots=True)
class MemoryNode:
    """One NUMA node that this process may use."""

    number: int
    processors: tuple[int, ...]
    """That this process may run on; none: a node of memory alone."""
    free_bytes: int
    has_processors: bool
    """The node has processors, whether this process may use them or not."""
    distances: Mapping[int, int] = field(default_factory=dict)
    """To other nodes, as the firmware says; 10 is the node itself."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a container allows; None: all that the machine has."""

    processors: float | None
    memory_bytes: int | None


def memory_nodes(root: Path = ROOT) -> tuple[MemoryNode, ...]:
    """NUMA nodes with memory, in ascending order; one node 0 where the kernel shows none."""
    allowed = os.sched_getaffinity(0)
    usable = _allowed_memory_nodes(root)
    found = []
    folders = list(root.glob("sys/devices/system/node/node[0-9]*"))
    everyone = sorted(int(folder.name.removeprefix("node")) for folder in folders)
    for folder in folders:
        number = int(folder.name.removeprefix("node"))
        facts = _meminfo(_text(folder / "meminfo"))
        if not facts.get("MemTotal") or (usable is not None and number not in usable):
            continue
        all_processors = numbers_of(_text(folder / "cpulist"))
        mine = tuple(one for one in all_processors if one in allowed)
        away = map(int, _text(folder / "distance").split())
        distances = dict(zip(everyone, away, strict=False))
        found.append(MemoryNode(number, mine, facts.get("MemFree", 0), bool(all_processors), distances))
    if found:
        return tuple(sorted(found, key=lambda node: node.number))
    free = _meminfo(_text(root / "proc/meminfo")).get("MemAvailable", 0)
    return (MemoryNode(0, tuple(sorted(allowed)), free, has_processors=True),)


def limits(root: Path = ROOT) -> Limits:
    """The limits of the control groups that this process is in, of either version."""
    processors, memory = [], []
    for folder in _groups(root):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        if quota.isdigit() and period.strip().isdigit():
            processors.append(int(quota) / int(period))
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit():
            processors.append(int(quota) / int(period))
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _text(folder / name)
            # Version 1 says "no limit" by a number near 2^63.
            if text.isdigit() and int(text) < 1 << 60:
                memory.append(int(text))
    return Limits(min(processors, default=None), min(memory, default=None))


def described(root: Path = ROOT) -> Mapping[str, str]:
    """What a calibration says of the machine that it was made on."""
    cpuinfo = _text(root / "proc/cpuinfo")
    models = [
        line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name")
    ]
    total = _meminfo(_text(root / "proc/meminfo")).get("MemTotal", 0)
    found = {
        "processor": models[0] if models else platform.machine(),
        "processors": str(len(os.sched_getaffinity(0))),
        "memory": f"{total / 2**30:.0f} GiB",
        "kernel": platform.release(),
    }
    limited = limits(root)
    if limited.processors is not None:
        found["processor limit"] = f"{limited.processors:g} processors, set by a container"
    if limited.memory_bytes is not None:
        found["memory limit"] = f"{limited.memory_bytes / 2**30:.1f} GiB, set by a container"
    return found


def numbers_of(text: str) -> tuple[int, ...]:
    """Read the kernel's lists: `0-3,8`."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            found.extend(range(int(first), int(last or first) + 1))
    return tuple(found)


def _allowed_memory_nodes(root: Path) -> frozenset[int] | None:
    for line in _text(root / "proc/self/status").splitlines():
        if line.startswith("Mems_allowed_list:"):
            return frozenset(numbers_of(line.partition(":")[2]))
    return None


def _meminfo(text: str) -> dict[str, int]:
    """Bytes by name; lines of a node begin with its own name."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(":")
        words = value.split()
        if name and words and words[0].isdigit():
            found[name.split()[-1]] = int(words[0]) * 1024
    return found


def _groups(root: Path) -> Iterator[Path]:
    base = root / "sys/fs/cgroup"
    yield base
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        below = path.strip("/")
        for folder in (base / below, *(base / name / below for name in controllers.split(",") if name)):
            if folder != base:
                yield folder


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""
