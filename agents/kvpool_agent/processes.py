"""Whether one particular process still runs: a pid alone may be somebody else's by now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

STARTTIME_FIELD = 22


@dataclass(frozen=True)
class ProcessId:
    """A process of this boot."""

    pid: int
    starttime: int
    """Field 22 of /proc/PID/stat, in clock ticks since boot."""


def identify(pid: int, proc: Path = Path("/proc")) -> ProcessId | None:
    """Return the identity of a running process; None when it is gone or in a pid namespace we cannot see."""
    starttime = _starttime(pid, proc)
    return None if starttime is None else ProcessId(pid, starttime)


def is_gone(process: ProcessId, proc: Path = Path("/proc")) -> bool:
    """Whether the process is proven to have ended; a zombie has."""
    return _starttime(process.pid, proc) != process.starttime


def _starttime(pid: int, proc: Path) -> int | None:
    if pid <= 0:
        return None
    try:
        after_name = (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    if after_name[0] in ("Z", "X"):
        return None
    return int(after_name[STARTTIME_FIELD - 3])
