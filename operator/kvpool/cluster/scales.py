"""Which pods a workload runs, asked through its scale sub-resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvpool.api.pdgroup import WorkloadRef
from kvpool.cluster.reads import get
from kvpool.cluster.resources import Resource
from kvpool.cluster.rest import Rest

_DEADLINE_SECONDS: Final = 3.0
_API_VERSIONS: Final = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
}


async def workload_selector(rest: Rest, namespace: str, ref: WorkloadRef) -> Mapping[str, str]:
    """Labels that select the workload's pods.

    Raises ApiError: Gone for a workload that is not there or a kind without a scale sub-resource.
    """
    group, _, version = (ref.api_version or _API_VERSIONS.get(ref.kind, "")).rpartition("/")
    workload = Resource(group, version, f"{ref.kind.lower()}s", ref.kind, namespaced=True)
    scale = await get(rest, workload.at(namespace, ref.name, "scale"), timeout_seconds=_DEADLINE_SECONDS)
    return parse_selector((scale.get("status") or {}).get("selector", ""))


def parse_selector(text: str) -> Mapping[str, str]:
    """Read `a=b,c=d`, the form in which a scale sub-resource states equality selectors."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {key.strip(): value.strip().lstrip("=") for key, _, value in pairs}
