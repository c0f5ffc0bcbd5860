"""What one command reads from the cluster: our objects, Nodes, and how the operator stands."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kvpool.api.common import Mode
from kvpool.api.labels import PAUSE_CONFIG_MAP, UNINSTALL_CONFIG_MAP
from kvpool.cli.operator_state import LEASE_NAME, OPERATOR_SELECTOR, OperatorState, mode_of, read_pause
from kvpool.cluster.election import LeaseRecord
from kvpool.cluster.errors import Terminal
from kvpool.cluster.reads import EVERYTHING, Selection, find, pages
from kvpool.cluster.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    LEASES,
    NODES,
    OWN_RESOURCES,
    PODS,
    Obj,
    Resource,
)
from kvpool.cluster.rest import Rest
from kvpool.model.snapshot import Uninstall
from kvpool.world.uninstall import read_uninstall

_PAGE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Raw objects of one moment, each with its kind."""

    operator: OperatorState
    raws: Sequence[Obj] = field(default=())


async def read_cluster(rest: Rest, operator_namespace: str, *, pods: bool = False) -> ClusterState:
    """List our kinds and Nodes (and Pods) of the whole cluster. Raises ApiError."""
    resources = (*OWN_RESOURCES, NODES, PODS) if pods else (*OWN_RESOURCES, NODES)
    operator, lists = await asyncio.gather(
        read_operator(rest, operator_namespace),
        asyncio.gather(*(list_resource(rest, resource) for resource in resources)),
    )
    return ClusterState(operator, [raw for found in lists for raw in found])


async def list_resource(rest: Rest, resource: Resource, selection: Selection = EVERYTHING) -> list[Obj]:
    """List a resource, each page within a deadline. Raises ApiError."""
    found = pages(rest, resource, selection, page_timeout_seconds=_PAGE_SECONDS)
    return [item async for page in found for item in page.items]


async def read_operator(rest: Rest, namespace: str) -> OperatorState:
    """Read pause, leader and mode cap. Raises ApiError when the pause cannot be read."""
    pause = await find(rest, CONFIG_MAPS.at(namespace, PAUSE_CONFIG_MAP))
    return OperatorState(
        namespace,
        pause=read_pause(pause),
        lease=await _lease(rest, namespace),
        mode_cap=await _mode_cap(rest, namespace),
        uninstall=await _uninstall(rest, namespace),
    )


async def _uninstall(rest: Rest, namespace: str) -> Uninstall | None:
    found = await find(rest, CONFIG_MAPS.at(namespace, UNINSTALL_CONFIG_MAP))
    if found is None:
        return None
    return read_uninstall(namespace, str(found["metadata"]["resourceVersion"]), found.get("data") or {})


async def _lease(rest: Rest, namespace: str) -> LeaseRecord | None:
    try:
        lease = await find(rest, LEASES.at(namespace, LEASE_NAME))
    except Terminal:  # not every user may read Leases
        return None
    return LeaseRecord.of(lease) if lease is not None else None


async def _mode_cap(rest: Rest, namespace: str) -> Mode | None:
    """The chart's cap, from the operator Deployment's arguments."""
    selection = Selection(namespace=namespace, label_selector=OPERATOR_SELECTOR)
    try:
        found = await list_resource(rest, DEPLOYMENTS, selection)
    except Terminal:  # not every user may read Deployments
        return None
    return next((cap for item in found if (cap := mode_of(item)) is not None), None)
