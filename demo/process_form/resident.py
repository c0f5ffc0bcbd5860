"""How much memory a process takes, by the kernel's account."""

from __future__ import annotations

from pathlib import Path

KIBI = 1024


def resident_bytes(pid: int, *, leaving_out: str) -> int:
    """Add up what is resident, but for mappings of files whose path ends so. Raises OSError.

    A unit is mapped twice, by its keeper and by the store's client in it, and would count twice.
    """
    total = 0
    counted = True
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            counted = not line.endswith(leaving_out)
        elif name == "Rss:" and counted:
            total += int(rest.split()[0]) * KIBI
    return total
