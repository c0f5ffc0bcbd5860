"""How much memory a Pod takes, by the account of the kernel's memory cgroup (version 1)."""

from __future__ import annotations

from pathlib import Path

from devcluster.nodes.cgroups import ROOT
from devcluster.rest import JsonObject

IDLE_CACHE = "total_inactive_file"


def working_set_bytes(cluster: str, pod: JsonObject) -> int:
    """What the Pod's containers are charged with, without page cache that is not in use, as kubelet counts.

    `cluster` is the name of the cluster's cgroups. Raises OSError.
    """
    group = _group(cluster, pod)
    used = int((group / "memory.usage_in_bytes").read_text())
    stats = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    return max(0, used - int(stats[IDLE_CACHE]))


def _group(cluster: str, pod: JsonObject) -> Path:
    node, uid = pod["spec"]["nodeName"], pod["metadata"]["uid"]
    pods: Path = ROOT / "memory" / cluster / node / "kubepods"
    found = list(pods.rglob(f"pod{uid}"))
    if not found:
        raise FileNotFoundError(f"{pod['metadata']['name']} has no cgroup under {pods}")
    return found[0]
