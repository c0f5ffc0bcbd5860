"""One leadership: watch, learn the highest epoch, step above it, then plan until it ends."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import aiohttp
import structlog

from kvpool.adapters.routers.base import RouterOutput
from kvpool.adapters.routers.endpointslice import EndpointSliceOutput
from kvpool.adapters.routers.httproute import HTTPRouteOutput
from kvpool.adapters.routers.podlabel import PodLabelOutput
from kvpool.api.common import Mode
from kvpool.cluster.lease import Leadership as LeaseHold
from kvpool.cluster.recorder import EventRecorder
from kvpool.cluster.resources import (
    ENDPOINT_SLICES,
    ENGINE_SLOTS,
    KV_NODES,
    KV_POOLS,
    NODES,
    PD_GROUPS,
    PODS,
    REMAPS,
    SUPERNODES,
    TIER_BUDGETS,
)
from kvpool.cluster.rest import Rest
from kvpool.cluster.store import Key
from kvpool.control.execute import Executor
from kvpool.control.facts import Facts
from kvpool.control.faultpoints import FaultPoints
from kvpool.control.figures import Figures
from kvpool.control.gateway_reader import GatewayReader
from kvpool.control.gather import Gatherer
from kvpool.control.keeper_pod import KeeperTemplate
from kvpool.control.marks import Marks
from kvpool.control.metrics import OperatorMetrics
from kvpool.control.reconciler import Loop, Reconciler
from kvpool.control.route_writer import RouteWriter
from kvpool.control.steps import Steps
from kvpool.control.store_poller import StorePoller
from kvpool.control.watching import Watching
from kvpool.control.workloads import Workloads
from kvpool.fleet.fleet import Fleet
from kvpool.model.snapshot import Leadership
from kvpool.rules.epochs import SEQUENCE_BITS, operator_epoch_of, sequence_of

_RESYNC_SECONDS: Final = {
    Loop.FAILOVER: 1.0,
    Loop.PLANS: 2.0,
    Loop.CAPACITY: 5.0,
    Loop.STATUSES: 5.0,
    Loop.STORES: 1.0,
    Loop.WORKLOADS: 30.0,
}
_WAKES: Final = {
    TIER_BUDGETS: (Loop.CAPACITY, Loop.PLANS),
    KV_POOLS: (Loop.STORES, Loop.CAPACITY, Loop.PLANS, Loop.FAILOVER),
    PD_GROUPS: (Loop.FAILOVER, Loop.PLANS, Loop.STATUSES, Loop.WORKLOADS),
    SUPERNODES: (Loop.FAILOVER, Loop.PLANS, Loop.CAPACITY, Loop.STATUSES),
    KV_NODES: (Loop.FAILOVER, Loop.PLANS, Loop.CAPACITY, Loop.STATUSES),
    ENGINE_SLOTS: (Loop.FAILOVER, Loop.PLANS, Loop.STATUSES),
    REMAPS: (Loop.FAILOVER, Loop.STATUSES),
    PODS: (Loop.FAILOVER, Loop.CAPACITY),
    NODES: (Loop.FAILOVER, Loop.PLANS, Loop.CAPACITY),
    ENDPOINT_SLICES: (Loop.STORES,),
}
_log = structlog.get_logger()


@dataclass(frozen=True)
class Surroundings:
    """What a leadership is given and does not own."""

    rest: Rest
    session: aiohttp.ClientSession
    lease: LeaseHold
    fleet: Fleet
    facts: Facts
    recorder: EventRecorder
    metrics: OperatorMetrics
    keepers: KeeperTemplate
    namespace: str
    mode_cap: Mode
    faults: FaultPoints
    claim_signals: Callable[[], None]
    """Makes SIGTERM end this process in order; called again when a library took the signal for itself."""


class Leading:
    """The state of one leadership; made anew for each."""

    def __init__(self, given: Surroundings) -> None:
        self._given = given
        self._since = time.monotonic()
        self._used = (0, 0)
        self.watching = Watching(given.rest, given.facts.store, given.namespace, given.claim_signals)
        self._stepping: asyncio.Lock = asyncio.Lock()
        self._reconciler: Reconciler | None = None

    def wake(self, *loops: Loop) -> None:
        """Run these loops soon; before planning begins this is a no-op."""
        if self._reconciler is not None:
            self._reconciler.wake(*loops)

    def wrong(self) -> list[str]:
        """What is wrong with this leadership, for the liveness probe."""
        stuck = self._reconciler.stuck(time.monotonic()) if self._reconciler is not None else []
        return self.watching.silent() + stuck

    def agent_changed(self, _node: str) -> None:
        """An agent reported something new."""
        self.wake(Loop.FAILOVER, Loop.PLANS, Loop.CAPACITY, Loop.STATUSES)

    async def step_up(self, seen: int) -> None:
        """Make our epoch higher than `seen`, in the Lease first, then towards the agents."""
        async with self._stepping:
            epoch = await self._given.lease.step_up(seen)
            self._given.fleet.set_leader(epoch)
            self._given.metrics.process.operator_epoch.set(epoch)
        self.wake(*Loop)

    async def run(self) -> None:
        """Lead until cancelled."""
        given = self._given
        given.metrics.process.is_leader.set(1)
        unsubscribe = given.facts.store.subscribe(self._fact_changed)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.watching.run(), name="watching")
                await self.watching.synced()
                await self.step_up(given.facts.highest_epoch(given.lease.epoch))
                _log.info("leading", epoch=given.lease.epoch)
                await self._plan()
        finally:
            unsubscribe()
            given.fleet.set_leader(None)
            given.metrics.process.is_leader.set(0)

    async def _plan(self) -> None:
        routes = RouteWriter(
            self._given.rest,
            self._outputs(),
            first_revision=(self._given.lease.epoch << SEQUENCE_BITS) + 1,
            on_ack=lambda: self.wake(Loop.FAILOVER, Loop.STATUSES),
        )
        steps = self._steps(routes)
        self._reconciler = Reconciler(
            {
                Loop.FAILOVER: steps.plan_failover,
                Loop.PLANS: steps.plan_nodes,
                Loop.CAPACITY: steps.plan_capacity,
                Loop.STATUSES: steps.plan_statuses,
                Loop.STORES: steps.poll_stores,
                Loop.WORKLOADS: steps.look_at_workloads,
            },
            _RESYNC_SECONDS,
            self._given.metrics,
        )
        try:
            await self._reconciler.run()
        finally:
            self._reconciler = None
            await routes.close()

    def _steps(self, routes: RouteWriter) -> Steps:
        given = self._given
        marks = Marks()
        stores = StorePoller(
            given.session, given.facts.endpoints, lambda: self.wake(Loop.CAPACITY, Loop.PLANS)
        )
        workloads = Workloads(given.rest, lambda: self.wake(Loop.FAILOVER))
        return Steps(
            gatherer=Gatherer(
                given.facts,
                given.fleet.views,
                stores,
                routes,
                marks,
                workloads,
                mode_cap=given.mode_cap,
                leadership=self._leadership,
            ),
            executor=Executor(
                given.rest,
                given.facts,
                given.keepers,
                leads=given.lease.holds,
                operator_epoch=lambda: given.lease.epoch,
                faults=given.faults,
            ),
            fleet=given.fleet,
            routes=routes,
            stores=stores,
            workload_selectors=workloads,
            facts=given.facts,
            marks=marks,
            recorder=given.recorder,
            metrics=given.metrics,
            figures=Figures(given.metrics),
            wake=self.wake,
            step_up=self.step_up,
        )

    def _outputs(self) -> dict[str, RouterOutput]:
        reader = GatewayReader(self._given.rest, self._given.session)
        return {
            "HTTPRoute": HTTPRouteOutput(reader),
            "EndpointSlice": EndpointSliceOutput(),
            "PodLabel": PodLabelOutput(),
        }

    def _fact_changed(self, key: Key) -> None:
        self.wake(*_WAKES.get(key.resource, tuple(Loop)))

    def _leadership(self) -> Leadership:
        epoch = self._given.lease.epoch
        used = [sequence_of(number) for number in self._slot_epochs() if operator_epoch_of(number) == epoch]
        # A number stays used after the object that carried it is gone.
        self._used = (epoch, max(used, default=0) if self._used[0] != epoch else max(self._used[1], *used, 0))
        return Leadership(
            operator_epoch=epoch,
            since=self._since,
            api_back_since=self._since,
            next_sequence=self._used[1] + 1,
        )

    def _slot_epochs(self) -> list[int]:
        facts = self._given.facts
        return [
            *(slot.spec.epoch for slot in facts.slots().values()),
            *(remap.spec.epoch for remap in facts.remaps().values()),
        ]
