"""Ends a demonstration that was left running, or was killed: nothing of it stays but its files."""

from __future__ import annotations

from demo import places
from devcluster import sandbox
from devcluster.nodes import cgroups
from devcluster.nodes.cluster import NAME_FILE


def stop() -> None:
    """End the sandbox, and remove the cgroups of its nodes. Raises SandboxError or CgroupError."""
    sandbox.stop(places.PIDFILE)
    name = places.NODES / NAME_FILE
    if name.exists():
        cgroups.remove(name.read_text())
        name.unlink()
