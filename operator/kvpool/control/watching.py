"""Feeds the fact store: list-watches for machines' kinds, kopf for people's, and a comparing resync."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from typing import Final

from kvpool.api.labels import PAUSE_CONFIG_MAP, UNINSTALL_CONFIG_MAP
from kvpool.cluster.backoff import jittered
from kvpool.cluster.errors import ApiError
from kvpool.cluster.listwatch import ListWatch, list_into
from kvpool.cluster.reads import Selection
from kvpool.cluster.resources import (
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    ENGINE_SLOTS,
    KV_NODES,
    NODES,
    PODS,
    REMAPS,
    Resource,
)
from kvpool.cluster.rest import Rest
from kvpool.cluster.store import FactStore
from kvpool.control.complaints import Complaints
from kvpool.control.kopf_run import run_kopf
from kvpool.control.people_watch import PEOPLES, people_registry, people_settings

RESYNC_SECONDS: Final = 60.0
SILENCE_LIMIT_SECONDS: Final = 180.0
_LOOK_SECONDS: Final = 1.0
MACHINES: Final[tuple[Resource, ...]] = (KV_NODES, ENGINE_SLOTS, REMAPS, PODS, NODES, ENDPOINT_SLICES)


class Watching:
    """All watches of one leadership."""

    def __init__(
        self, rest: Rest, store: FactStore, namespace: str, claim_signals: Callable[[], None]
    ) -> None:
        self._rest = rest
        self._claim_signals = claim_signals
        self._store = store
        backoff = jittered(random.random)
        self._watches = [ListWatch(rest, resource, store, backoff=backoff) for resource in MACHINES]
        for switch in (PAUSE_CONFIG_MAP, UNINSTALL_CONFIG_MAP):
            chosen = Selection(namespace=namespace, name=switch)
            self._watches.append(ListWatch(rest, CONFIG_MAPS, store, backoff=backoff, selection=chosen))
        self._complaints = Complaints()
        self._people_ready = asyncio.Event()
        self._people_listed = time.monotonic()

    async def run(self) -> None:
        """Watch until cancelled; raises when kopf ends: a leader that is blind to people must not go on."""
        async with asyncio.TaskGroup() as group:
            for watch in self._watches:
                group.create_task(watch.run(), name=f"watch {watch.resource}")
            group.create_task(self._complain(), name="watch errors")
            group.create_task(self._resync_people(), name="resync people's kinds")
            started = asyncio.Event()
            registry = people_registry(self._rest, self._store)
            group.create_task(run_kopf(registry, people_settings(), started), name="kopf")
            group.create_task(self._reclaim_signals(started), name="signals")

    async def synced(self) -> None:
        """Return once every resource was listed completely."""
        await asyncio.gather(*(watch.synced.wait() for watch in self._watches), self._people_ready.wait())

    def ages_seconds(self) -> Mapping[str, float]:
        """Seconds since the API server last said anything, by resource."""
        now = time.monotonic()
        ages = {"people": now - self._people_listed}
        for watch in self._watches:
            name = watch.resource.plural
            ages[name] = max(ages.get(name, 0.0), now - watch.last_event_monotonic)
        return ages

    def silent(self) -> list[str]:
        """What is wrong, for the liveness probe: watches that have heard nothing for too long."""
        return [
            f"watch of {resource} silent for {age:.0f} s"
            for resource, age in self.ages_seconds().items()
            if age > SILENCE_LIMIT_SECONDS
        ]

    async def _reclaim_signals(self, started: asyncio.Event) -> None:
        """Kopf takes SIGTERM for itself when it starts, and would not give the Lease back."""
        await started.wait()
        self._claim_signals()

    async def _complain(self) -> None:
        """Say which watch does not work: a missing right or CRD shows in the log, not only in a silence."""
        while True:
            for watch in self._watches:
                error = watch.last_error if watch.failures else None
                self._complaints.note(f"watch of {watch.what}", error)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _resync_people(self) -> None:
        """List people's kinds at the start and then at intervals: a watch never tells what it missed."""
        while True:
            complete = True
            for resource in PEOPLES:
                error: ApiError | None = None
                try:
                    await list_into(self._rest, resource, self._store)
                except ApiError as failed:
                    error, complete = failed, False
                self._complaints.note(f"list of {resource}", error)
            if complete:
                self._people_listed = time.monotonic()
                self._people_ready.set()
            await asyncio.sleep(RESYNC_SECONDS if self._people_ready.is_set() else 1.0)
