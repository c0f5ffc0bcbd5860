"""Finds a workload's pods through its scale sub-resource; a kind without one is said to have none."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kvpool.api.pdgroup import PDGroup, WorkloadRef
from kvpool.cluster.errors import ApiError, Gone
from kvpool.cluster.reads import get
from kvpool.cluster.resources import Resource
from kvpool.cluster.rest import Rest

DEADLINE_SECONDS: Final = 3.0
_API_VERSIONS: Final = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
}


def workload_key(namespace: str, ref: WorkloadRef) -> str:
    """`namespace/Kind/name`, the key of `Snapshot.workload_selectors`."""
    return f"{namespace}/{ref.kind}/{ref.name}"


class Workloads:
    """Remembers the selector of every workload that a PDGroup names; a failed look leaves it unknown."""

    def __init__(self, rest: Rest, on_change: Callable[[], None]) -> None:
        self._rest = rest
        self._on_change = on_change
        self._selectors: dict[str, Mapping[str, str] | None] = {}

    def selectors(self) -> Mapping[str, Mapping[str, str] | None]:
        """Selector labels by workload; None for a kind without a scale sub-resource."""
        return dict(self._selectors)

    async def look(self, groups: Iterable[PDGroup]) -> None:
        """Ask for the scale of every workload named."""
        wanted: dict[str, tuple[str, WorkloadRef]] = {}
        for group in groups:
            for role in (group.spec.prefill, group.spec.decode):
                if role is not None and role.workload_ref is not None:
                    namespace = group.metadata.namespace
                    wanted[workload_key(namespace, role.workload_ref)] = (namespace, role.workload_ref)
        before = dict(self._selectors)
        for key in [key for key in self._selectors if key not in wanted]:
            del self._selectors[key]
        for key, (namespace, ref) in wanted.items():
            try:
                self._selectors[key] = await self._selector(namespace, ref)
            except Gone:
                self._selectors[key] = None
            except ApiError:
                continue
        if before != self._selectors:
            self._on_change()

    async def _selector(self, namespace: str, ref: WorkloadRef) -> Mapping[str, str] | None:
        group, _, version = (ref.api_version or _API_VERSIONS.get(ref.kind, "")).rpartition("/")
        workload = Resource(group, version, f"{ref.kind.lower()}s", ref.kind, namespaced=True)
        scale = await get(
            self._rest, workload.at(namespace, ref.name, "scale"), timeout_seconds=DEADLINE_SECONDS
        )
        return parse_selector(scale.get("status", {}).get("selector", ""))


def parse_selector(text: str) -> Mapping[str, str]:
    """Read `a=b,c=d`, the form in which a scale sub-resource states equality selectors."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {key.strip(): value.strip().lstrip("=") for key, _, value in pairs}
