"""What tiers are asked for: the objects of one request after the other, and when each is used next."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.plan.placement.eviction import NEVER
from kvpool.sim.caches.paths import paths_of
from kvpool.sim.workloads.request import Workload


@dataclass(frozen=True, slots=True)
class Access:
    """The objects of one request, from the start of its prompt on."""

    now_ns: int
    objects: Sequence[int]
    group: str = ""
    next_ns: Sequence[int] = ()
    """When each object is used next, `NEVER` if not; empty: nobody knows."""


def accesses_of(workload: Workload, *, oracle: bool = False) -> list[Access]:
    """Return the prefix chunks of each request; `oracle` adds when they are used next.

    Raises:
        ValueError: when the workload has no prefix blocks.
    """
    paths = paths_of(workload)
    after = [NEVER] * len(paths.parents)
    found: list[Access] = []
    for request in range(len(paths.nodes) - 1, -1, -1):
        path, now = paths.nodes[request], paths.arrivals_ns[request]
        next_ns = [after[node] for node in path] if oracle else ()
        found.append(Access(now, path, paths.groups[request], next_ns))
        if oracle:
            for node in path:
                after[node] = now
    found.reverse()
    return found


def distinct_objects(accesses: Sequence[Access]) -> int:
    """Return how many different objects are accessed."""
    return 1 + max((max(access.objects) for access in accesses if access.objects), default=-1)
