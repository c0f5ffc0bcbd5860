"""Makes everything of kvpool's go, one step after the other, and waits until it is gone.

Nothing is forced: no finalizer is taken off, no Pod is killed. What does not go in time is left and named.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from kvpool.api import labels
from kvpool.cli.pausing import MANAGER, who_am_i
from kvpool.cli.uninstalling.inventory import Inventory, label_managers, take_inventory
from kvpool.cli.uninstalling.remains import Item, Left, Step, left_of
from kvpool.cluster.apply import Applier
from kvpool.cluster.errors import Conflict, Gone, Retryable, Throttled
from kvpool.cluster.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    HTTP_ROUTES,
    LEASES,
    OWN_RESOURCES,
    PODS,
    SECRETS,
    SERVICES,
    Obj,
    Resource,
)
from kvpool.cluster.rest import Rest, Verb
from kvpool.cluster.writes import delete
from kvpool.model.instant import Instant

LOOK_SECONDS: Final = 1.0
NOWHERE: Final = {"kvpool.dev/uninstalled": "true"}
"""A node selector that no Node has: the DaemonSet of the agents runs no Pod then."""

_RESOURCES: Final[Mapping[str, Resource]] = {
    resource.kind: resource
    for resource in (*OWN_RESOURCES, HTTP_ROUTES, SERVICES, ENDPOINT_SLICES, LEASES, SECRETS, CONFIG_MAPS)
}
_PEOPLES: Final = frozenset({"PDGroup", "KVPool", "TierBudget", "Supernode"})

Tell = Callable[[Step, Sequence[Item]], None]


async def ask(rest: Rest, namespace: str, now: Instant) -> None:
    """Tell the operator that everything is to be given back. Raises ApiError."""
    data = {labels.UNINSTALL_DRAIN: "true", "by": await who_am_i(rest), "at": now.text()}
    metadata = {"name": labels.UNINSTALL_CONFIG_MAP, "namespace": namespace}
    await Applier(rest, MANAGER).apply(CONFIG_MAPS, {"metadata": metadata, "data": data})


class Removal:
    """One way through all steps, at most until `deadline` (seconds of the event loop's clock)."""

    def __init__(self, rest: Rest, namespace: str, deadline: float, tell: Tell) -> None:
        self._rest = rest
        self._namespace = namespace
        self._deadline = deadline
        self._tell = tell
        self._acts: Mapping[Step, Callable[[Inventory], Awaitable[None]]] = {
            Step.HOLDINGS: self._wait,
            Step.OBJECTS: self._delete_objects,
            Step.NODES: self._wait,
            Step.AGENTS: self._park_agents,
            Step.OPERATORS: self._stop_operators,
            Step.KEPT: self._delete_kept,
            Step.DEFINITIONS: self._delete_definitions,
        }

    async def run(self, steps: Sequence[Step]) -> Left:
        """Take the steps; stops at the first that does not end in time. Raises ApiError for a refusal."""
        for step in steps:
            left = await self._take(step)
            if left.items or left.trouble:
                return left
        return Left()

    async def _take(self, step: Step) -> Left:
        items: tuple[Item, ...] = ()
        trouble = ""
        while True:
            try:
                inventory = await take_inventory(self._rest, self._namespace)
                items, trouble = left_of(step, inventory), ""
                if not items:
                    return Left()
                self._tell(step, items)
                await self._acts[step](inventory)
            except (Retryable, Throttled) as error:  # an API server that is away for a moment
                trouble = str(error)
            if asyncio.get_running_loop().time() + LOOK_SECONDS > self._deadline:
                return Left(items, step, trouble)
            await asyncio.sleep(LOOK_SECONDS)

    async def _wait(self, _: Inventory) -> None:
        """The operator does it, with the agents."""

    async def _delete_objects(self, inventory: Inventory) -> None:
        """People's objects, then what outputs wrote, then their labels on Pods."""
        for thing in (*inventory.own, *inventory.outputs):
            if thing["kind"] in _PEOPLES or thing["kind"] not in {one.kind for one in OWN_RESOURCES}:
                await self._delete(_RESOURCES[thing["kind"]], thing)
        for pod in inventory.labelled:
            for manager in label_managers(pod):
                meta = pod["metadata"]
                ours = {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]}
                try:
                    await Applier(self._rest, manager).apply(PODS, {"metadata": ours})
                except (Conflict, Gone):
                    continue  # the Pod went, and its labels with it

    async def _park_agents(self, inventory: Inventory) -> None:
        """The release's DaemonSet stays for `helm uninstall`, without Pods that would begin anew."""
        change = {"spec": {"template": {"spec": {"nodeSelector": NOWHERE}}}}
        await self._patch(inventory, DAEMON_SETS, change)

    async def _stop_operators(self, inventory: Inventory) -> None:
        await self._patch(inventory, DEPLOYMENTS, {"spec": {"replicas": 0}})

    async def _delete_kept(self, inventory: Inventory) -> None:
        for thing in inventory.kept:
            await self._delete(_RESOURCES[thing["kind"]], thing)

    async def _delete_definitions(self, inventory: Inventory) -> None:
        for definition in inventory.definitions:
            await self._delete(CUSTOM_RESOURCE_DEFINITIONS, definition)

    async def _patch(self, inventory: Inventory, resource: Resource, change: Obj) -> None:
        for workload in inventory.workloads:
            if workload["kind"] == resource.kind:
                query = {"fieldManager": MANAGER}
                await self._rest.request(Verb.MERGE_PATCH, resource.of(workload), query=query, body=change)

    async def _delete(self, resource: Resource, thing: Obj) -> None:
        """Ask once for each: what lingers waits for somebody's finalizer."""
        if "deletionTimestamp" in thing["metadata"]:
            return
        try:
            await delete(self._rest, resource.of(thing), uid=thing["metadata"]["uid"])
        except (Conflict, Gone):
            return
