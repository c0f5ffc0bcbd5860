"""Step: kvpool adds memory to the store that is there, without touching an engine."""

from __future__ import annotations

from demo import install
from demo.cluster import Cluster
from demo.commands import Commands
from demo.deployment import Deployment
from demo.engines import NAMESPACE
from demo.moves import KVPOOL
from demo.occupancy import FOREIGN, OWN_TIERS, Occupancy, occupancy, total
from demo.screen import Screen, size
from devcluster.rest import JsonObject
from kvpool.api.quantity import parse_quantity

ENFORCE = '--patch={"spec":{"mode":"Enforce"}}'
BIND_SECONDS = 120


def enforce(commands: Commands, *objects: str) -> None:
    """Set objects, as `kind/name`, to Enforce. Raises CommandFailedError."""
    for name in objects:
        commands.kubectl("patch", name, f"--namespace={NAMESPACE}", "--type=merge", ENFORCE)


def bind(cluster: Cluster, deployment: Deployment, commands: Commands, screen: Screen) -> None:
    """Raise the cap, set budget and pool to Enforce, and wait until the pool is bound."""
    before = engine_lives(cluster)
    install.raise_cap(commands)
    enforce(commands, "tierbudget/gpu", "kvpool/chat")
    commands.kubectl(
        "wait",
        "--for=condition=Bound",
        "kvpool/chat",
        f"--namespace={NAMESPACE}",
        f"--timeout={BIND_SECONDS}s",
    )
    pool = cluster.plane.admin.get(KVPOOL, "KVPool", "chat", NAMESPACE)
    rows = occupancy(cluster, deployment.store)
    show(screen, "Held by each node, by the kernel's and by Mooncake's account", rows)
    for tier in OWN_TIERS:
        bound = _bound_bytes(pool, tier)
        kernel, store = total(rows, tier, "held_bytes"), total(rows, tier, "mounted_bytes")
        screen.expect(
            0 < bound == store <= kernel,
            f"{tier}: status says {size(bound)} bound, the kernel {size(kernel)}, Mooncake {size(store)}",
        )
    screen.expect(engine_lives(cluster) == before, f"none of {len(before)} engines was restarted")


def engine_lives(cluster: Cluster) -> dict[str, str]:
    """What tells one life of an engine from the next, by engine: the same again means none was restarted."""
    pods = cluster.plane.admin.list("v1", "Pod", NAMESPACE, "app=engine")
    return {pod["metadata"]["name"]: cluster.life_of(pod) for pod in pods}


def show(screen: Screen, title: str, rows: list[Occupancy]) -> None:
    """Show occupancy as a table."""
    screen.table(
        title,
        ("node", "tier", "tmpfs mounts", "kernel", "in the store", "holding objects"),
        [
            (
                row.node,
                row.tier,
                str(row.mounts) if row.mounts else "",
                size(row.held_bytes) if row.tier != FOREIGN else "",
                size(row.mounted_bytes),
                size(row.used_bytes),
            )
            for row in rows
            if row.tier != FOREIGN or row.mounted_bytes
        ],
    )


def _bound_bytes(pool: JsonObject, tier: str) -> int:
    return sum(parse_quantity(one["bound"]) for one in pool["status"]["tiers"] if one["name"] == tier)
