"""Everything of kvpool's that a cluster holds, as raw objects of one moment."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kvpool.api import labels
from kvpool.cli.cluster_state import list_resource
from kvpool.cli.operator_state import LEASE_NAME
from kvpool.cluster.errors import Gone
from kvpool.cluster.reads import Selection, find
from kvpool.cluster.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    HTTP_ROUTES,
    LEASES,
    NODES,
    OWN_RESOURCES,
    PODS,
    SECRETS,
    SERVICES,
    Obj,
    Resource,
)
from kvpool.cluster.rest import Rest
from kvpool.model.snapshot import Uninstall
from kvpool.world.uninstall import read_uninstall

AUTHORITY: Final = "kvpool-ca"
"""Name of the Secret with the agents' authority, and of the ConfigMap with its certificate."""
OURS: Final = f"{labels.MANAGED_BY}={labels.MANAGER}"
SLICES: Final = f"endpointslice.kubernetes.io/managed-by={labels.MANAGER}"
INSTALLATION: Final = "app.kubernetes.io/name=kvpool"


@dataclass(frozen=True, slots=True)
class Inventory:
    """Each field is a list of one kind or sort, in no order."""

    own: Sequence[Obj] = ()
    """Objects of kvpool.dev."""
    nodes: Sequence[Obj] = ()
    keepers: Sequence[Obj] = ()
    outputs: Sequence[Obj] = ()
    """Routes, Services and EndpointSlices that router outputs wrote."""
    labelled: Sequence[Obj] = ()
    """Pods that carry a label of a router output."""
    agents: Sequence[Obj] = ()
    """Agents' Pods."""
    operators: Sequence[Obj] = ()
    """Operators' Pods."""
    workloads: Sequence[Obj] = ()
    """The release's Deployment and DaemonSet."""
    kept: Sequence[Obj] = ()
    """What operator and plugin keep in the operator's namespace, in the order in which it may go."""
    definitions: Sequence[Obj] = ()
    uninstall: Uninstall | None = field(default=None)


async def take_inventory(rest: Rest, namespace: str) -> Inventory:
    """Look for everything of ours; `namespace` is the operator's. Raises ApiError."""
    own, nodes, pods, outputs, workloads, kept, definitions = await asyncio.gather(
        _all(rest, *((resource, Selection()) for resource in OWN_RESOURCES)),
        list_resource(rest, NODES),
        list_resource(rest, PODS),
        _all(
            rest,
            (HTTP_ROUTES, Selection(label_selector=f"{OURS},{labels.PDGROUP}")),
            (SERVICES, Selection(label_selector=f"{OURS},{labels.PDGROUP}")),
            (ENDPOINT_SLICES, Selection(label_selector=f"{SLICES},{labels.PDGROUP}")),
        ),
        _all(
            rest,
            *((one, Selection(namespace, label_selector=INSTALLATION)) for one in (DEPLOYMENTS, DAEMON_SETS)),
        ),
        _kept(rest, namespace),
        _all(rest, (CUSTOM_RESOURCE_DEFINITIONS, Selection())),
    )
    switch = next((one for one in kept if one["metadata"]["name"] == labels.UNINSTALL_CONFIG_MAP), None)
    return Inventory(
        own=own,
        nodes=nodes,
        keepers=[pod for pod in pods if is_keeper(pod)],
        outputs=[thing for thing in outputs if _is_written_by_outputs(thing)],
        labelled=[pod for pod in pods if label_managers(pod)],
        agents=[pod for pod in pods if _is_of(pod, namespace, "agent")],
        operators=[pod for pod in pods if _is_of(pod, namespace, "operator")],
        workloads=workloads,
        kept=kept,
        definitions=[one for one in definitions if one["spec"]["group"] == "kvpool.dev"],
        uninstall=_word(namespace, switch) if switch is not None else None,
    )


def label_managers(pod: Obj) -> list[str]:
    """The router outputs, by their field managers, that labels of a Pod are of."""
    return [
        str(entry["manager"])
        for entry in pod["metadata"].get("managedFields") or ()
        if str(entry.get("manager", "")).startswith(labels.ROUTING_MANAGER)
        and "f:labels" in (entry.get("fieldsV1") or {}).get("f:metadata", {})
    ]


def is_keeper(pod: Obj) -> bool:
    """Whether the operator made the Pod as a keeper."""
    found = pod["metadata"].get("labels") or {}
    return found.get(labels.MANAGED_BY) == labels.MANAGER and found.get(labels.COMPONENT) == "keeper"


def _is_of(pod: Obj, namespace: str, component: str) -> bool:
    found = pod["metadata"].get("labels") or {}
    here = pod["metadata"]["namespace"] == namespace
    named = found.get("app.kubernetes.io/name") == "kvpool"
    return here and named and found.get(labels.COMPONENT) == component


def _is_written_by_outputs(thing: Obj) -> bool:
    """Whether a router output wrote the object: somebody else may have given his own our labels."""
    entries = thing["metadata"].get("managedFields") or ()
    return any(entry.get("manager") == labels.ROUTING_MANAGER for entry in entries)


async def _all(rest: Rest, *asked: tuple[Resource, Selection]) -> list[Obj]:
    """List several resources; a kind that the cluster does not have has no objects."""

    async def some(resource: Resource, selection: Selection) -> list[Obj]:
        try:
            return await list_resource(rest, resource, selection)
        except Gone:
            return []

    lists = await asyncio.gather(*(some(resource, selection) for resource, selection in asked))
    return [item for found in lists for item in found]


async def _kept(rest: Rest, namespace: str) -> list[Obj]:
    """The word to uninstall goes last: as long as it is there, an interrupted run can go on."""
    asked = (
        (LEASES, LEASE_NAME),
        (SECRETS, AUTHORITY),
        (CONFIG_MAPS, AUTHORITY),
        (CONFIG_MAPS, labels.PAUSE_CONFIG_MAP),
        (CONFIG_MAPS, labels.UNINSTALL_CONFIG_MAP),
    )
    found = await asyncio.gather(*(find(rest, resource.at(namespace, name)) for resource, name in asked))
    return [
        {"apiVersion": resource.api_version, "kind": resource.kind, **thing}
        for (resource, _), thing in zip(asked, found, strict=True)
        if thing is not None
    ]


def _word(namespace: str, switch: Obj) -> Uninstall | None:
    version = str(switch["metadata"]["resourceVersion"])
    return read_uninstall(namespace, version, switch.get("data") or {})
