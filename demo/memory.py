"""How much memory kvpool's own Pods take, against what they may."""

from __future__ import annotations

from dataclasses import dataclass

from demo.cluster import Cluster
from demo.install import pods_of
from devcluster.rest import JsonObject

MEGABYTE = 1_000_000
LIMIT_BYTES = {"operator": 250 * MEGABYTE, "agent": 120 * MEGABYTE, "keeper": 150 * MEGABYTE}
"""A keeper may take its unit's bytes on top."""
UNIT_ANNOTATION = "kvpool.dev/unit"


@dataclass(frozen=True)
class Footprint:
    """One Pod: the bytes that it takes, and what it may take."""

    component: str
    pod: str
    resident_bytes: int
    limit_bytes: int


def footprints(cluster: Cluster) -> list[Footprint]:
    """Look at every Pod of kvpool that runs. Raises ApiError or OSError."""
    found = []
    for component, limit_bytes in LIMIT_BYTES.items():
        for pod in pods_of(cluster, component):
            if not cluster.life_of(pod):
                continue
            unit_bytes = _unit_bytes(cluster, pod) if component == "keeper" else 0
            taken = cluster.memory_bytes(pod, unit_bytes)
            found.append(Footprint(component, pod["metadata"]["name"], taken, limit_bytes + unit_bytes))
    return found


def _unit_bytes(cluster: Cluster, pod: JsonObject) -> int:
    """Size of the unit that a keeper's Pod holds."""
    name = pod["metadata"].get("annotations", {}).get(UNIT_ANNOTATION, "")
    kvnode = cluster.plane.admin.get("kvpool.dev/v1alpha1", "KVNode", pod["spec"]["nodeName"])
    return sum(int(unit["sizeBytes"]) for unit in kvnode["spec"].get("units", []) if unit["name"] == name)
