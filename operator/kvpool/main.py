"""The operator's composition root: the only place that wires everything."""

import asyncio
import logging
import signal
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

import aiohttp
import structlog
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from kvpool.cluster.errors import ApiError
from kvpool.cluster.lease import Leadership
from kvpool.cluster.recorder import EventRecorder
from kvpool.cluster.rest import Access, RequestRecord, Rest
from kvpool.control.agent_access import KubernetesAccess
from kvpool.control.complaints import Complaints
from kvpool.control.facts import Facts
from kvpool.control.faultpoints import FaultPoints
from kvpool.control.health import Health
from kvpool.control.keeper_pod import KeeperTemplate
from kvpool.control.leading import Leading, Surroundings
from kvpool.control.metrics import OperatorMetrics
from kvpool.control.reconciler import Loop
from kvpool.fleet.fleet import Fleet, FleetCallbacks
from kvpool.fleet.settings import EnrolmentRules, FleetSettings
from kvpool.model.ids import ObjectKey
from kvpool.settings import Settings, parse_settings

_API_RETRY_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 1.0
_DRAIN_SECONDS: Final = 1.0
_log = structlog.get_logger()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the operator until SIGTERM; exits at once when the leader Lease may be lost."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(sort_keys=False),
        ]
    )
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    asyncio.run(Operator(parse_settings(arguments)).run())


class Operator:
    """One operator process: leads or stands by."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._metrics = OperatorMetrics(self._registry)
        self._metrics.process.build_info.labels(version("kvpool")).set(1)
        self._leading: Leading | None = None
        self._serving = False
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Wait for the API, serve agents, lead when it is our turn; returns after SIGTERM."""
        settings = self._settings
        health = Health(self._registry, self._wrong, lambda: self._serving)
        await health.start(settings.listen_address, settings.metrics_port)
        rest = await Rest.connect(Access(kubeconfig=settings.kubeconfig), hook=self._count_request)
        self._claim_signals()
        work = asyncio.create_task(self._work(rest), name="operator")
        beat = asyncio.create_task(health.beat(), name="heartbeat")
        stopping = asyncio.create_task(self._stop.wait(), name="signals")
        await asyncio.wait({work, beat, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in (work, beat, stopping):
            task.cancel()
        results = await asyncio.gather(work, beat, return_exceptions=True)
        await health.stop()
        await rest.close()
        for result in results:
            if isinstance(result, Exception):
                raise result

    def _claim_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)

    async def _work(self, rest: Rest) -> None:
        settings = self._settings
        facts = Facts(self._metrics)
        fleet = self._fleet(rest, facts)
        await self._start_fleet(fleet)
        lease = Leadership(rest, namespace=settings.namespace, name=settings.lease_name, me=settings.identity)
        recorder = EventRecorder(rest, controller="kvpool.dev/operator", instance=settings.identity)
        self._serving = True
        try:
            async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
                events = group.create_task(recorder.run(), name="events")
                try:
                    await self._lead(self._surroundings(rest, session, lease, fleet, facts, recorder))
                finally:
                    # Only while `events` runs can anything be posted.
                    await recorder.drain(timeout_seconds=_DRAIN_SECONDS)
                    events.cancel()
        finally:
            await lease.release()
            await fleet.stop()

    async def _lead(self, surroundings: Surroundings) -> None:
        lease = surroundings.lease
        async with asyncio.TaskGroup() as group:
            group.create_task(_complain(lease), name="lease errors")
            await lease.acquire()
            self._leading = Leading(surroundings)
            group.create_task(lease.hold(), name="lease")
            group.create_task(self._leading.run(), name="leading")

    async def _start_fleet(self, fleet: Fleet) -> None:
        """Load or make the authority; an API outage is waited out."""
        while True:
            try:
                await fleet.start()
            except (ApiError, OSError) as error:
                _log.warning("agent channel not started", error=str(error))
                await asyncio.sleep(_API_RETRY_SECONDS)
            else:
                return

    def _fleet(self, rest: Rest, facts: Facts) -> Fleet:
        settings = self._settings
        agents = ObjectKey(settings.namespace, settings.agent_service_account)
        return Fleet(
            FleetSettings(
                namespace=settings.namespace,
                server_names=settings.server_names,
                enrolment=EnrolmentRules(service_account=agents),
                listen_address=settings.listen_address,
                agent_port=settings.agent_port,
                enrolment_port=settings.enrolment_port,
            ),
            KubernetesAccess(rest, settings.namespace, facts.pod),
            FleetCallbacks(on_change=self._agent_changed, on_higher_epoch=self._higher_epoch),
            self._metrics.agents,
        )

    def _surroundings(
        self,
        rest: Rest,
        session: aiohttp.ClientSession,
        lease: Leadership,
        fleet: Fleet,
        facts: Facts,
        recorder: EventRecorder,
    ) -> Surroundings:
        settings = self._settings
        return Surroundings(
            rest=rest,
            session=session,
            lease=lease,
            fleet=fleet,
            facts=facts,
            recorder=recorder,
            metrics=self._metrics,
            keepers=KeeperTemplate(
                image=settings.keeper_image,
                namespace=settings.namespace,
                service_account=settings.keeper_service_account,
                host_units_folder=settings.host_units_folder,
                user_id=settings.keeper_user_id,
                shared_memory_folder=settings.shared_memory_folder,
                cpu=settings.keeper_cpu,
                priority_class=settings.keeper_priority_class,
            ),
            namespace=settings.namespace,
            mode_cap=settings.mode_cap,
            faults=FaultPoints.from_environment(),
            claim_signals=self._claim_signals,
        )

    def _agent_changed(self, node: str) -> None:
        if self._leading is not None:
            self._leading.agent_changed(node)

    def _higher_epoch(self, _seen: int) -> None:
        """The agent's view carries the epoch; the failover step rises above it before it decides."""
        if self._leading is not None:
            self._leading.wake(Loop.FAILOVER)

    def _count_request(self, record: RequestRecord) -> None:
        self._metrics.api.requests.labels(record.verb, record.resource, record.code).inc()

    def _wrong(self) -> list[str]:
        """What the liveness probe complains about."""
        if self._leading is None:
            return []
        for resource, age in self._leading.watching.ages_seconds().items():
            self._metrics.api.watch_age.labels(resource).set(age)
        return self._leading.wrong()


async def _complain(lease: Leadership) -> None:
    """Log why the Lease cannot be read or written, once for each reason."""
    complaints = Complaints()
    known: ApiError | None = None
    while True:
        if lease.last_error is not known:
            known = lease.last_error
            complaints.note("leader Lease", known)
        await asyncio.sleep(_LOOK_SECONDS)


if __name__ == "__main__":
    main()
