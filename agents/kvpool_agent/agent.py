"""The agent's life: its loops, and what happens when the operator, an engine or a device says something."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from kvpool.rules.lease import PeerState, Stand
from kvpool.wire.v1alpha1 import agent_pb2 as wire
from kvpool_agent import __version__, messages, timing
from kvpool_agent.binder import Binder
from kvpool_agent.devices.base import Device, DeviceProvider
from kvpool_agent.devices.pod_resources import PodResources
from kvpool_agent.epochs import EpochGate
from kvpool_agent.heartbeats import Heartbeats
from kvpool_agent.journal import Journal
from kvpool_agent.lease import LeaseBook, boottime_seconds
from kvpool_agent.local_api import LocalApi
from kvpool_agent.metrics import Reading
from kvpool_agent.node_state import EngineView, NodeState
from kvpool_agent.peers import PeerWatch
from kvpool_agent.plan_apply import plan_by_name
from kvpool_agent.retirement import Retirement, everything_back
from kvpool_agent.seats import SeatState
from kvpool_agent.stream import OperatorStream
from kvpool_agent.units import Source, UnitPlan, UnitView

log = structlog.get_logger()

SERVING_ON_TTL_MS = int(3 * timing.ENGINE_LEASE_SECONDS * 1000)
"""How far the engines' leases are extended at a time while the node serves on without its own."""


@dataclass(frozen=True)
class NodeIdentity:
    """Who this agent is."""

    node_name: str
    pod_uid: str
    boot_id: str
    incarnation: int
    peer_address: str


@dataclass(frozen=True)
class Parts:
    """What the agent is made of; put together in `main`."""

    identity: NodeIdentity
    binder: Binder
    journal: Journal
    lease: LeaseBook
    gate: EpochGate
    peers: PeerWatch
    local: LocalApi
    devices: DeviceProvider
    pod_resources: PodResources | None
    """None when kubelet is not asked who holds devices."""
    hearts: Heartbeats
    retirement: Retirement


class Agent:
    """Holds the newest of everything and runs the loops; implements `stream.Node`."""

    def __init__(self, parts: Parts, adopted: tuple[UnitView, ...]) -> None:
        self._parts = parts
        self._units = adopted
        self._sources: tuple[Source, ...] = ()
        self._devices: tuple[Device, ...] = ()
        self._planned: dict[str, UnitPlan] | None = None
        self._hold = True
        self._revision = 0
        self._applied_revision = 0
        self._observed_at_seconds = boottime_seconds()
        self._stand = Stand.SERVING_ON
        self._seqs = itertools.count(1)
        self._refused_plans = 0
        self._work = asyncio.Event()
        self.stream: OperatorStream | None = None
        self.greeted = False
        """Whether an operator's Welcome was ever taken in this life."""

    # What the stream needs

    @property
    def renew_seconds(self) -> float:
        """How often to renew."""
        return self._parts.lease.renew_seconds

    @property
    def missed_grants(self) -> int:
        """Renews without Grant."""
        return self._parts.lease.missed_grants

    def hello(self) -> wire.Hello:
        """Say who the agent is and what it holds."""
        identity = self._parts.identity
        return wire.Hello(
            node_name=identity.node_name,
            boot_id=identity.boot_id,
            incarnation=identity.incarnation,
            agent_version=__version__,
            highest_operator_epoch=self._parts.gate.highest,
            report=self.report(),
            peer_address=identity.peer_address,
            pod_uid=identity.pod_uid,
        )

    def report(self) -> wire.Report:
        """Say what the agent sees."""
        return messages.report(self.state, boottime_seconds(), time.time())

    def renew(self) -> wire.Renew:
        """Write the next Renew and count the lease from now."""
        seq = next(self._seqs)
        self._parts.lease.renew_sent(seq)
        return messages.renew(
            seq, self._parts.lease.roster_revision, self._parts.peers.sightings, boottime_seconds()
        )

    def welcomed(self, welcome: wire.Welcome) -> bool:
        """Take the terms of a stream, unless its operator's epoch is a lower one."""
        if not self._parts.gate.admits(welcome.operator_epoch, "Welcome"):
            return False
        if not _is_sound(welcome.ttl_ms) or welcome.max_skew_ms / 1000 > timing.LONGEST_TTL_SECONDS:
            log.warning(
                "refused terms that make no sense", ttl_ms=welcome.ttl_ms, skew_ms=welcome.max_skew_ms
            )
            return False
        self._parts.lease.welcomed(welcome.ttl_ms / 1000, welcome.max_skew_ms / 1000, strict=welcome.strict)
        if welcome.HasField("roster"):
            self._take_roster(welcome.roster)
        self.greeted = True
        return True

    def granted(self, grant: wire.Grant) -> None:
        """Extend the lease, unless the operator's epoch is a lower one."""
        if not _is_sound(grant.ttl_ms):
            log.warning("refused a grant that makes no sense", ttl_ms=grant.ttl_ms)
        elif self._parts.gate.admits(grant.operator_epoch, "Grant"):
            self._parts.lease.granted(grant.seq, grant.ttl_ms / 1000)
            self._tell_lease()

    def ended(self) -> None:
        """The stream is over."""
        self._parts.lease.stream_ended()

    def planned(self, plan: wire.NodePlan) -> None:
        """Take a whole plan, unless its epoch is a lower one or it makes no sense."""
        if not self._parts.gate.admits(plan.operator_epoch, "NodePlan"):
            self._changed()
            return
        try:
            units, seats = messages.plan_units(plan), messages.plan_seats(plan)
            retires = messages.plan_retires(plan)
        except messages.MalformedPlanError as error:
            self._refused_plans += 1
            log.warning("plan refused, the last one stays", revision=plan.revision, error=str(error))
            return
        log.info("plan", revision=plan.revision, units=len(units), seats=len(seats), hold=plan.hold)
        if self._parts.retirement.begun and not retires:
            log.warning("told to stay after all: this process ends, the next one begins anew")
            os.kill(os.getpid(), signal.SIGTERM)
            return
        self._parts.retirement.asked = retires
        if plan.HasField("roster"):
            self._take_roster(plan.roster)
        self._planned, self._hold, self._revision = plan_by_name(units), plan.hold, plan.revision
        self._parts.local.book.plan(seats, hold=plan.hold)
        self._parts.local.settle()
        self._work.set()

    # What is reported

    @property
    def state(self) -> NodeState:
        """Everything the agent sees now."""
        return NodeState(
            applied_revision=self._applied_revision,
            units=self._units,
            seats=tuple(record for _, record in sorted(self._parts.local.book.records.items())),
            devices=self._devices,
            holders_at_seconds=self._parts.pod_resources.said_at_seconds
            if self._parts.pod_resources
            else None,
            sources=self._sources,
            engines=self._engines(),
            observed_at_seconds=self._observed_at_seconds,
            refused_epochs=self._parts.gate.refused,
            loop_ages=self._parts.hearts.ages(),
            retired=self._parts.retirement.done,
        )

    def reading(self) -> Reading:
        """What is scraped."""
        return Reading(
            state=self.state,
            counters={
                "refused_epochs": self._parts.gate.refused,
                "refused_plans": self._refused_plans,
                "unreadable_records": len(self._parts.journal.unreadable),
                "local_api_refused": self._parts.local.refused_messages,
                "local_api_turned_away": self._parts.local.turned_away,
                "dials_failed": self.stream.dials_failed if self.stream else 0,
            },
            connected=self.stream is not None and bool(self.stream.connected_to),
            lease_seconds=self._parts.lease.remaining_seconds(),
            serving_on=self._stand is Stand.SERVING_ON,
            operator_epoch=self._parts.gate.highest,
        )

    def own_word(self) -> PeerState:
        """What peers are told of this node's lease."""
        return self._parts.lease.own_word()

    # The loops

    async def run(self, stream: OperatorStream) -> None:
        """Run all loops until one fails for good or the task is cancelled."""
        self.stream = stream
        async with asyncio.TaskGroup() as group:
            group.create_task(stream.run())
            group.create_task(self._loop("bind", timing.BIND_SECONDS, self._bind, self._work))
            group.create_task(self._loop("sources", timing.SOURCES_SECONDS, self._look_at_sources))
            group.create_task(self._loop("devices", timing.DEVICES_SECONDS, self._look_at_devices))
            if self._parts.pod_resources is not None:
                look = self._parts.pod_resources.look
                group.create_task(self._loop("podResources", timing.POD_RESOURCES_SECONDS, look))
            group.create_task(self._loop("peers", timing.PROBE_EVERY_SECONDS, self._look_at_peers))
            group.create_task(self._loop("stand", timing.STAND_SECONDS, self._take_stand))
            group.create_task(self._loop("engines", timing.ENGINE_WATCH_SECONDS, self._watch_engines))
            group.create_task(self._loop("engineLeases", timing.ENGINE_LEASE_SECONDS, self._extend_engines))

    async def _loop(
        self,
        name: str,
        every_seconds: float,
        work: Callable[[], Awaitable[None]],
        wake: asyncio.Event | None = None,
    ) -> None:
        """Run `work` again and again. What fails is told and tried again; its heartbeat tells how long."""
        self._parts.hearts.beat(name)
        wake = wake or asyncio.Event()
        while True:
            try:
                await work()
            except OSError as error:
                log.warning("loop failed, goes on", loop=name, error=str(error))
            except Exception:  # one loop's fault must not end the others: it is told, and its heart stops
                log.exception("loop failed, goes on", loop=name)
            else:
                self._parts.hearts.beat(name)
            try:
                async with asyncio.timeout(every_seconds):
                    await wake.wait()
            except TimeoutError:
                continue
            wake.clear()

    async def _bind(self) -> None:
        revision, began_at = self._revision, boottime_seconds()
        planned = self._planned
        if self._parts.retirement.asked:
            planned = everything_back(self._parts.journal.records.values())
        units = await asyncio.to_thread(self._parts.binder.step_on, planned, hold=self._hold)
        self._observed_at_seconds = began_at
        if units != self._units or revision != self._applied_revision:
            fresh = {unit.name for unit in units} - {unit.name for unit in self._units}
            self._units, self._applied_revision = units, revision
            if fresh:
                self._tell_lease()
            self._changed()
        if await self._parts.retirement.go_on(units):
            self._changed()

    async def _look_at_sources(self) -> None:
        self._sources = await asyncio.to_thread(self._parts.binder.sources)

    async def _look_at_devices(self) -> None:
        now = time.time()
        devices = self._parts.devices.poll(now)
        if devices is None:
            return
        known = {(d.id, f.source, f.code, len(f.seen_at_seconds)) for d in self._devices for f in d.faults}
        self._devices = devices
        self._changed()
        for device in devices:
            for fault in device.faults:
                if (device.id, fault.source, fault.code, len(fault.seen_at_seconds)) not in known:
                    log.warning("device fault", device=device.id, source=fault.source, code=fault.code)
                    if self.stream is not None:
                        self.stream.push(messages.evidence(device, fault, now))
        book = self._parts.local.book
        book.unasked = frozenset(device.id for device in devices if not device.observed)
        if devices or not self._parts.devices.trouble:
            book.holders = {device.id: device.holder for device in devices if device.holder}
        self._parts.local.settle()

    async def _look_at_peers(self) -> None:
        lease = self._parts.lease
        await self._parts.peers.look(lease.members, everybody=not lease.renewing)

    async def _take_stand(self) -> None:
        verdict = self._parts.lease.stand(self._parts.peers.words())
        if verdict is self._stand:
            return
        log.warning("stand", now=verdict, before=self._stand)
        self._stand = self._parts.local.book.stand = verdict
        self._parts.local.settle()
        self._tell_lease()

    async def _watch_engines(self) -> None:
        self._parts.local.watch_processes()

    async def _extend_engines(self) -> None:
        """Tell engines how long they may serve: the lease's time, or a short while as long as peers allow."""
        if self._stand is Stand.HELD:
            self._parts.local.extend_leases(int(self._parts.lease.remaining_seconds() * 1000))
        elif self._stand is Stand.SERVING_ON:
            self._parts.local.extend_leases(SERVING_ON_TTL_MS)

    # Helpers

    def _tell_lease(self) -> None:
        """Write the lease for the keepers; they enforce it when this agent cannot."""
        self._parts.lease.tell_keepers(
            self._parts.binder.held_directories, self._stand, self._parts.gate.highest
        )

    def _take_roster(self, roster: wire.Roster) -> None:
        self._parts.lease.rostered(roster.revision, messages.roster_members(roster))

    def _changed(self) -> None:
        if self.stream is not None:
            self.stream.changed()

    def _engines(self) -> tuple[EngineView, ...]:
        book = self._parts.local.book
        slots = {r.pod_uid: r.slot for r in book.records.values() if r.state is SeatState.ATTACHED}
        views = []
        for engine in sorted(book.engines.values(), key=lambda engine: engine.pod_uid):
            running, hbm_kv_bytes = self._parts.local.figures(engine.connection)
            views.append(
                EngineView(
                    engine.pod_uid,
                    engine.pod_name,
                    engine.endpoint,
                    engine.devices,
                    standby=engine.standby,
                    readiness=engine.readiness,
                    slot=slots.get(engine.pod_uid, ""),
                    requests_running=running,
                    hbm_kv_bytes=hbm_kv_bytes,
                )
            )
        return tuple(views)


def _is_sound(ttl_ms: int) -> bool:
    return timing.SHORTEST_TTL_SECONDS <= ttl_ms / 1000 <= timing.LONGEST_TTL_SECONDS
