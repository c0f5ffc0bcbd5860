"""How much memory each node really holds in each tier: read from the kernel, and from Mooncake."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from demo.cluster import RACKS, SSD_FOLDER, Cluster
from demo.neighbours.mooncake import MooncakeAdmin
from kvpool.rules.unit_folder import unit_directory_name
from kvpool_keeper.contract import STATUS_FILE

BLOCK_BYTES = 512
OWN_TIERS = ("DRAM", "SSD")
FOREIGN = "foreign"


@dataclass(frozen=True)
class Occupancy:
    """One tier of one node. `held_bytes` are backed by pages or blocks, as the kernel says."""

    node: str
    tier: str
    mounts: int
    held_bytes: int
    mounted_bytes: int
    """In the store, as Mooncake says."""
    used_bytes: int
    """Holding objects, as Mooncake says."""


def occupancy(cluster: Cluster, admin: MooncakeAdmin) -> list[Occupancy]:
    """Ask kernel and store about every node. Raises ApiError, OSError or AdminUnavailableError."""
    segments = {segment.name: segment for segment in admin.segments()}
    found = []
    for node in sorted(RACKS):
        own = _segments_by_tier(cluster, node)
        for tier in OWN_TIERS:
            names = [name for name in own.get(tier, ()) if name in segments]
            found.append(
                Occupancy(
                    node,
                    tier,
                    mounts=_tmpfs_mounts(cluster, node) if tier == "DRAM" else 0,
                    held_bytes=_held_bytes(cluster, node, tier),
                    mounted_bytes=sum(segments[name].size_bytes for name in names),
                    used_bytes=sum(segments[name].used_bytes for name in names),
                )
            )
        ours = {name for names in own.values() for name in names}
        others = [
            segment for name, segment in segments.items() if cluster.lies_on(node, name) and name not in ours
        ]
        found.append(
            Occupancy(
                node,
                FOREIGN,
                mounts=0,
                held_bytes=0,
                mounted_bytes=sum(segment.size_bytes for segment in others),
                used_bytes=sum(segment.used_bytes for segment in others),
            )
        )
    return found


def total(rows: Sequence[Occupancy], tier: str, figure: str) -> int:
    """Add one figure of a tier up over the nodes."""
    return sum(int(getattr(row, figure)) for row in rows if row.tier == tier)


def _segments_by_tier(cluster: Cluster, node: str) -> dict[str, list[str]]:
    """Names of kvpool's segments on a node: tiers by its KVNode, names by what its keepers say."""
    kvnode = cluster.plane.admin.find("kvpool.dev/v1alpha1", "KVNode", node)
    units = kvnode["spec"].get("units", []) if kvnode is not None else []
    folder = cluster.seen(node, f"{cluster.state_folder}/units")
    found: dict[str, list[str]] = {}
    for unit in units:
        status = folder / unit_directory_name(unit["name"], unit["generation"]) / STATUS_FILE
        if status.exists():
            segment = json.loads(status.read_text())["segment"]
            found.setdefault(unit["tier"], []).append(segment)
    return found


def _tmpfs_mounts(cluster: Cluster, node: str) -> int:
    """Count the node's tmpfs mounts of kvpool."""
    return sum(
        line.startswith("kvpool-") and f" {cluster.state_folder}/units/" in line and " tmpfs " in line
        for line in cluster.mounts(node).splitlines()
    )


def _held_bytes(cluster: Cluster, node: str, tier: str) -> int:
    where, pattern = (
        (f"{cluster.state_folder}/units", "*/mem/segment") if tier == "DRAM" else (SSD_FOLDER, "*/segment")
    )
    return sum(file.stat().st_blocks * BLOCK_BYTES for file in cluster.seen(node, where).glob(pattern))
