"""cgroups (v1) of the nodes: made before a node starts, removed after it, pruned when a cluster was killed.

A cluster's cgroups are named `kvpool-<its id>` in every hierarchy. A process in `kvpool-<id>/owner` shows
that the cluster lives: the kernel refuses to remove a cgroup that has one, whichever namespaces ask.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PREFIX = "kvpool-"
OWNER = "owner"
OWNED_IN = "memory"  # the hierarchy in which the owner's process is kept
INHERITED = ("cpuset.cpus", "cpuset.mems")  # empty in a new cgroup, and useless until filled
ATTEMPTS = 20
REMOVE_SECONDS = 10.0
POLL_SECONDS = 0.02


class CgroupError(Exception):
    """A cgroup cannot be made or does not become empty."""


def claim(cluster: str, pid: int) -> None:
    """Make the cluster's mark with a process in it. Raises CgroupError."""
    mark = ROOT / OWNED_IN / cluster / OWNER
    for _ in range(ATTEMPTS):  # another cluster that starts now may take the empty folder for a dead one's
        with contextlib.suppress(FileNotFoundError):
            mark.mkdir(parents=True, exist_ok=True)
            (mark / "cgroup.procs").write_text(str(pid))
            return
    raise CgroupError(f"{mark} is removed again and again")


def make(cluster: str, node: str) -> str:
    """Make the cgroup of a node in every hierarchy and return its path below each of them."""
    for hierarchy in _hierarchies("release_agent"):
        group = hierarchy / cluster / node
        group.mkdir(parents=True, exist_ok=True)
        for name in INHERITED:
            if (hierarchy / name).exists():
                for level in (group.parent, group):
                    (level / name).write_text((hierarchy / name).read_text())
    return f"/{cluster}/{node}"


def remove(cluster: str, node: str = "") -> None:
    """Remove a node's cgroups, or all of the cluster's, as its processes end. Raises CgroupError."""
    end = time.monotonic() + REMOVE_SECONDS
    while left := [group for group in _groups(cluster, node) if not _removed(group)]:
        if time.monotonic() > end:
            raise CgroupError(f"{left[0]} still has processes after {REMOVE_SECONDS:g} s")
        time.sleep(POLL_SECONDS)


def prune() -> list[str]:
    """Remove what clusters that were killed have left, and return their names; living ones are left alone."""
    pruned = []
    for cluster in sorted({path.name for path in ROOT.glob(f"*/{PREFIX}*")}):
        if _removed(ROOT / OWNED_IN / cluster / OWNER):
            for group in _groups(cluster, ""):
                _removed(group)
            pruned.append(cluster)
    return pruned


def _groups(cluster: str, node: str) -> Iterator[Path]:
    """Innermost first."""
    for hierarchy in _hierarchies("cgroup.procs"):  # the container runtime uses that of version 2 as well
        for folder, _, _ in os.walk(hierarchy / cluster / node, topdown=False):
            yield Path(folder)


def _removed(group: Path) -> bool:
    """Remove a cgroup; False when it still has processes or children."""
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.ENOTEMPTY):
            raise
        return False
    return True


def _hierarchies(with_file: str) -> list[Path]:
    """Those that have this file at their root; only version 1 has a release agent."""
    return sorted(path.parent for path in ROOT.glob(f"*/{with_file}"))
