"""The planning steps: gather, plan, execute. Each is a few hops from what is known to what is written."""

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import structlog

from kvpool.cluster.recorder import EventRecorder, Severity
from kvpool.control import clock
from kvpool.control.event_target import event_target
from kvpool.control.execute import Executor
from kvpool.control.facts import Facts
from kvpool.control.figures import Figures
from kvpool.control.gather import Gatherer
from kvpool.control.marks import Marks
from kvpool.control.metrics import OperatorMetrics
from kvpool.control.reconciler import Loop, MovedOn
from kvpool.control.route_writer import RouteWriter
from kvpool.control.store_poller import POLL_SECONDS, StorePoller
from kvpool.control.workloads import Workloads
from kvpool.fleet.fleet import Fleet
from kvpool.model import decisions as d
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Snapshot
from kvpool.plan.capacity import capacity_plan
from kvpool.plan.domain_statuses import domain_statuses
from kvpool.plan.failover import failover_plan
from kvpool.plan.moves import slot_of
from kvpool.plan.node_plan import node_plans
from kvpool.rules.epochs import MOST_SEQUENCES, next_sequence, operator_epochs_in

_log = structlog.get_logger()
WORKLOAD_SECONDS = 30.0
SEQUENCES_OF_A_PLAN = 1 << 14
"""Slot epochs that one plan may give out; a leadership that has fewer left steps up before it plans."""


@dataclass(frozen=True)
class Steps:
    """One method for each loop; each returns when it wants to run again by time alone."""

    gatherer: Gatherer
    executor: Executor
    fleet: Fleet
    routes: RouteWriter
    stores: StorePoller
    workload_selectors: Workloads
    facts: Facts
    marks: Marks
    recorder: EventRecorder
    metrics: OperatorMetrics
    figures: Figures
    wake: Callable[..., None]
    step_up: Callable[[int], Awaitable[None]]
    """Makes our epoch higher than the given one. Raises ApiError: it has not changed then."""

    async def plan_failover(self) -> float | None:
        """Weights first and without waiting, then the next deciding write of every move.

        Raises:
            ApiError: when a higher epoch was seen and ours could not be raised above it; nothing is decided.
        """
        snapshot = await self._above_all_epochs()
        plan = failover_plan(snapshot, clock.now())
        self._publish(snapshot, plan)
        self.marks.add(plan.marks)
        running = {key for key, remap in snapshot.remaps.items() if not remap.status.phase.is_final}
        self.marks.keep_only(running | {mark.remap for mark in plan.marks})
        self.figures.failover(snapshot, plan)
        asked = {key: revision.number for key, revision in self.routes.wanted().items()}
        self.figures.routes(asked, self.routes.acks())
        wrote = await self._carry_out(plan)
        if wrote or plan.marks:
            self.wake(Loop.FAILOVER, Loop.PLANS)
        return plan.requeue_at

    async def plan_capacity(self) -> float | None:
        """Admission, units, keepers and every status of the capacity chain."""
        snapshot = self.gatherer.snapshot()
        plan = capacity_plan(snapshot, clock.now())
        self.figures.capacity(snapshot, plan)
        wrote = await self._carry_out(plan)
        if wrote:
            self.wake(Loop.CAPACITY, Loop.PLANS)
        return plan.requeue_at

    async def plan_statuses(self) -> float | None:
        """What groups and Supernodes say of themselves; nothing is decided on it."""
        await self._carry_out(domain_statuses(self.gatherer.snapshot(), clock.now()))
        return None

    async def plan_nodes(self) -> float | None:
        """Hand every node's whole plan to the fleet, which sends what changed."""
        snapshot = self.gatherer.snapshot()
        for name, plan in node_plans(snapshot).items():
            self.fleet.set_plan(name, plan)
        for name in self.fleet.views():
            kinds = ("KVNode", "Node")
            if any(snapshot.may_exist(kind, ObjectKey("", name)) for kind in kinds):
                continue
            if name not in snapshot.kvnodes and name not in snapshot.nodes:
                self.fleet.forget(name)
        self.figures.fleet(snapshot)
        return None

    async def poll_stores(self) -> float | None:
        """Ask every pool's store how it is."""
        await self.stores.poll(self.facts.pools().values(), self.facts.masters())
        return time.monotonic() + POLL_SECONDS

    async def look_at_workloads(self) -> float | None:
        """Look up the selectors of the workloads that groups name."""
        await self.workload_selectors.look(self.facts.groups().values())
        return time.monotonic() + WORKLOAD_SECONDS

    async def _above_all_epochs(self) -> Snapshot:
        """What is known, once our epoch is the highest that any object or agent names."""
        while True:
            snapshot = self.gatherer.snapshot()
            mine, highest = snapshot.leadership.operator_epoch, max(operator_epochs_in(snapshot), default=0)
            if highest <= mine and next_sequence(snapshot) <= MOST_SEQUENCES - SEQUENCES_OF_A_PLAN:
                # The Lease may have taken a higher epoch in a write whose answer was lost.
                self.fleet.set_leader(mine)
                return snapshot
            highest = max(highest, mine)
            _log.warning("stepping up above the highest operator epoch", seen=highest, mine=mine)
            await self.step_up(highest)

    def _publish(self, snapshot: Snapshot, plan: d.Plan) -> None:
        pods = {pod.uid: pod for pod in snapshot.pods.values()}
        self.routes.keep_only(snapshot.groups, plan.weights)
        self.routes.publish(snapshot.groups, plan.weights, pods)

    async def _carry_out(self, plan: d.Plan) -> bool:
        """Write, then tell: events follow the writes they speak of. True when anything was written.

        Raises:
            ApiError: the first one, after all other actions were carried out and told of.
            MovedOn: when what an action was decided on had moved.
        """
        outcomes = await self.executor.run(plan.actions)
        for outcome in outcomes:
            result = "done" if outcome.done else "failed" if outcome.error else "moved"
            self.metrics.api.actions.labels(type(outcome.action).__name__, result).inc()
            if not outcome.done:
                _log.info("not written", action=type(outcome.action).__name__, detail=outcome.detail)
        undone = {self._subject(outcome.action) for outcome in outcomes if not outcome.done}
        self._announce(event for event in plan.events if (event.kind, event.key) not in undone)
        failed = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
        if failed is not None:
            raise failed
        if not all(outcome.done for outcome in outcomes):
            raise MovedOn
        return any(outcome.wrote for outcome in outcomes)

    def _subject(self, action: d.Action) -> tuple[str, ObjectKey] | None:
        """Kind and key of the object that events of a status write are about; None for other writes."""
        match action:
            case d.WriteStatus(kind=kind, key=key):
                return kind, key
            case d.WriteSlotStatus(key=key):
                return "EngineSlot", key
            case d.WriteRemapStatus(key=key) | d.CancelRemap(key=key):
                remap = self.facts.remaps().get(key)
                return ("EngineSlot", slot_of(remap)) if remap is not None else None
        return None

    def _announce(self, events: Iterable[d.Announce]) -> None:
        for event in events:
            target = event_target(self.facts, event.kind, event.key)
            if target is None:
                continue
            severity, reason = Severity(event.event_type), event.reason
            self.recorder.record(target, severity, reason.code, reason.message, action=reason.code)
