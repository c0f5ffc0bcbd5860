"""Step: everything is paused and goes on again, as the objects and the status say."""

from __future__ import annotations

from demo.cluster import Cluster
from demo.commands import Commands
from demo.engines import NAMESPACE
from demo.moves import KVPOOL
from demo.screen import Screen
from devcluster.rest import JsonObject

SECONDS = 120.0
PAUSED_LINE = "the cluster is PAUSED"
HELD = (("KVPool", "chat", NAMESPACE), ("PDGroup", "chat", NAMESPACE), ("Supernode", "sn-a", None))
"""What stops acting on a pause: memory, slots, moves."""


def pause_and_resume(cluster: Cluster, commands: Commands, screen: Screen) -> None:
    """Pause, look that pool, group and Supernode and the status say so, resume, look again.

    Raises TimeoutError or CommandFailedError.
    """
    commands.kvpool("pause", "--all")
    _wait_until_held(cluster, held=True)
    status = commands.kvpool("status", show=False)
    screen.expect(PAUSED_LINE in status, f"`kubectl kvpool status` says: {PAUSED_LINE}")
    commands.kvpool("resume", "--all")
    _wait_until_held(cluster, held=False)
    status = commands.kvpool("status", show=False)
    screen.expect(PAUSED_LINE not in status, "and after resuming it says so no more")


def _wait_until_held(cluster: Cluster, *, held: bool) -> None:
    api = cluster.plane.admin

    def as_told() -> bool:
        return all(
            is_paused(api.get(KVPOOL, kind, name, namespace)) is held for kind, name, namespace in HELD
        )

    names = ", ".join(f"{kind} {name}" for kind, name, _ in HELD)
    api.wait_until(as_told, SECONDS, f"{names} to be {'paused' if held else 'paused no more'}")


def is_paused(obj: JsonObject) -> bool:
    """Whether an object's status says that nothing is done for it because of a pause."""
    conditions = obj.get("status", {}).get("conditions", [])
    return any(one["type"] == "Paused" and one["status"] == "True" for one in conditions)
