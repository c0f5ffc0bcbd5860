"""How much memory kvpool's own processes take, against what they may."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from demo.cluster import Cluster
from demo.install import pods_of
from devcluster.rest import JsonObject

MEGABYTE = 1_000_000
LIMIT_BYTES = {"operator": 250 * MEGABYTE, "agent": 120 * MEGABYTE, "keeper": 150 * MEGABYTE}
"""A keeper may take its unit's bytes on top."""
UNIT_ANNOTATION = "kvpool.dev/unit"
KIBI = 1024


@dataclass(frozen=True)
class Footprint:
    """One process: resident bytes, and what it may take."""

    component: str
    pod: str
    resident_bytes: int
    limit_bytes: int


def footprints(cluster: Cluster) -> list[Footprint]:
    """Read every process of kvpool. Raises ApiError or OSError."""
    found = []
    for component, limit_bytes in LIMIT_BYTES.items():
        for pod in pods_of(cluster, component):
            process = cluster.process_of(pod)
            if process is None or not process.running:
                continue
            unit_bytes = _unit_bytes(cluster, pod) if component == "keeper" else 0
            resident = resident_bytes(process.pid, leaving_out="/segment") + unit_bytes
            found.append(Footprint(component, pod["metadata"]["name"], resident, limit_bytes + unit_bytes))
    return found


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


def _unit_bytes(cluster: Cluster, pod: JsonObject) -> int:
    """Size of the unit that a keeper's Pod holds."""
    name = pod["metadata"].get("annotations", {}).get(UNIT_ANNOTATION, "")
    kvnode = cluster.plane.admin.get("kvpool.dev/v1alpha1", "KVNode", pod["spec"]["nodeName"])
    return sum(int(unit["sizeBytes"]) for unit in kvnode["spec"].get("units", []) if unit["name"] == name)
