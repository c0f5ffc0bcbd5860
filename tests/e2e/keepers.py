"""Keepers by what must not change about them while their units stay."""

from __future__ import annotations

from devcluster.rest import JsonObject
from tests.e2e.site import RealSite
from tests.harness.objects import MIB

OVERHEAD_BYTES = 192 * MIB
"""Of a keeper's process, beside its unit: requested and limited."""


def keepers_of(site: RealSite) -> dict[str, tuple[str, int]]:
    """Name of each keeper to its UID and restarts: the same again means that none was touched."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            pod["status"]["containerStatuses"][0]["restartCount"],
        )
        for pod in site.pods_of("keeper")
    }


def memory_keeper(site: RealSite, node: str, pool: str = "chat") -> JsonObject:
    """The Pod that keeps a pool's unit of memory on a node. Raises ValueError unless there is one."""
    return _keeper(site, node, f"{pool}-dram-")


def disk_keeper(site: RealSite, node: str, pool: str = "chat") -> JsonObject:
    """The Pod that keeps a pool's SSD unit on a node. Raises ValueError unless there is one."""
    return _keeper(site, node, f"{pool}-ssd-")


def _keeper(site: RealSite, node: str, prefix: str) -> JsonObject:
    (keeper,) = [
        pod
        for pod in site.pods_of("keeper", node)
        if pod["metadata"]["name"].startswith(prefix) and "deletionTimestamp" not in pod["metadata"]
    ]
    return keeper
