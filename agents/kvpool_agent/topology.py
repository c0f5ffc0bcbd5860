"""The NUMA nodes of the machine, read from sysfs below a root that tests may replace."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

KIBI = 1024
RECLAIMABLE = ("MemFree", "Active(file)", "Inactive(file)", "SReclaimable")
"""What the kernel can hand out without swapping, as MemAvailable counts it, but for one node."""


@dataclass(frozen=True)
class NumaNode:
    """One NUMA node with memory."""

    number: int
    capacity_bytes: int
    free_bytes: int
    """Free or reclaimable now; tmpfs pages count as taken."""
    has_cpus: bool


def numa_nodes(sysroot: Path) -> tuple[NumaNode, ...]:
    """Return the nodes with memory, by number; `sysroot` stands for `/sys`.

    A node that is offline, has no memory or vanishes while it is read is left out. Without NUMA support in
    the kernel there are none.
    """
    found = []
    for folder in (sysroot / "devices/system/node").glob("node[0-9]*"):
        try:
            memory = _meminfo((folder / "meminfo").read_text())
            cpus = (folder / "cpulist").read_text().strip()
        except OSError:
            continue
        if memory.get("MemTotal"):
            free = sum(memory.get(name, 0) for name in RECLAIMABLE)
            number = int(folder.name.removeprefix("node"))
            found.append(
                NumaNode(number, memory["MemTotal"], min(free, memory["MemTotal"]), has_cpus=bool(cpus))
            )
    return tuple(sorted(found, key=lambda node: node.number))


def _meminfo(text: str) -> dict[str, int]:
    """Read `Node 0 MemTotal:  16869596 kB` lines into bytes; others are skipped."""
    lines = re.findall(r"^Node \d+ (\S+):\s+(\d+) kB$", text, re.MULTILINE)
    return {name: int(kibibytes) * KIBI for name, kibibytes in lines}
