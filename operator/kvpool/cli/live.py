"""Reads a cluster as the planning steps need it: our objects, Nodes, Pods, and workloads' selectors."""

from dataclasses import dataclass

from kvpool.api import PDGroup
from kvpool.cli import clock
from kvpool.cli.cluster_state import ClusterState, read_cluster
from kvpool.cli.workloads import Selectors, read_selectors
from kvpool.cluster.rest import Rest
from kvpool.model.instant import Instant
from kvpool.world.build import Objects, read_objects


@dataclass(frozen=True, slots=True)
class Live:
    """All of it at one moment."""

    state: ClusterState
    objects: Objects
    selectors: Selectors
    now: Instant


async def read_live(rest: Rest, operator_namespace: str) -> Live:
    """Read everything. Raises ApiError."""
    state = await read_cluster(rest, operator_namespace, pods=True)
    now = clock.now()
    objects = read_objects(state.raws, now)
    selectors = await read_selectors(rest, objects.keyed(PDGroup).values())
    return Live(state, objects, selectors, now)
