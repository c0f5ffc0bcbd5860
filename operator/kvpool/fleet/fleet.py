"""The agents of all nodes, as the rest of the operator sees them."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import grpc
from grpc import aio

from kvpool.fleet import ca_store
from kvpool.fleet.access import ClusterAccess
from kvpool.fleet.enrolment import Enrolment
from kvpool.fleet.metrics import FleetMetrics
from kvpool.fleet.server import AgentService, EnrolmentService
from kvpool.fleet.sessions import FleetCallbacks, Sessions
from kvpool.fleet.settings import FleetSettings
from kvpool.fleet.tls import ServerIdentity
from kvpool.model.nodeplan import NodePlanData
from kvpool.model.observations import AgentView
from kvpool.wire import keepalive
from kvpool.wire.v1alpha1 import agent_pb2_grpc as rpc

__all__ = ["Fleet", "FleetCallbacks"]

STOP_SECONDS: Final = 2.0
_MOST_STREAMS: Final = 16_384
_MOST_ENROLMENTS: Final = 1024

_log = logging.getLogger(__name__)


class Fleet:
    """Serves agents. All methods belong to one event loop; times are `time.monotonic()` seconds.

    Every replica enrols and listens; only between `set_leader(epoch)` and `set_leader(None)` do agents
    get more than NotLeader.
    """

    def __init__(
        self,
        settings: FleetSettings,
        access: ClusterAccess,
        callbacks: FleetCallbacks,
        metrics: FleetMetrics,
    ) -> None:
        self._settings = settings
        self._access = access
        self._metrics = metrics
        self._sessions = Sessions(settings.default_lease, callbacks, metrics)
        self._servers: tuple[aio.Server, ...] = ()
        self._agent_port = self._enrolment_port = 0

    async def start(self) -> None:
        """Make or load the authority and listen.

        Raises AuthorityError for a stored authority that cannot be used, OSError (UnavailableError among
        them) for what may work later.
        """
        settings = self._settings
        authority = await ca_store.load_or_create(self._access, settings.ca_secret, _wall())
        await ca_store.publish(self._access, settings.ca_config_map, authority)
        identity = ServerIdentity(authority, settings.server_names, _wall)
        enrolment = Enrolment(self._access, authority, settings.enrolment, time.monotonic, _wall)

        enrolling = aio.server(
            options=keepalive.enrolment_server_options(), maximum_concurrent_rpcs=_MOST_ENROLMENTS
        )
        rpc.add_EnrolmentServiceServicer_to_server(EnrolmentService(enrolment, self._metrics), enrolling)
        streaming = aio.server(
            options=keepalive.agent_server_options(), maximum_concurrent_rpcs=_MOST_STREAMS
        )
        service = AgentService(self._sessions, self._metrics, time.monotonic)
        rpc.add_AgentServiceServicer_to_server(service, streaming)
        self._servers = (enrolling, streaming)
        try:
            credentials = identity.enrolment_credentials()
            self._enrolment_port = self._listen(enrolling, settings.enrolment_port, credentials)
            self._agent_port = self._listen(streaming, settings.agent_port, identity.agent_credentials())
        except OSError:
            await self.stop()  # frees the port that was bound, so that `start` can be tried again
            raise
        for server in self._servers:
            await server.start()
        _log.info("agents: port %d, enrolment: port %d", self._agent_port, self._enrolment_port)

    async def stop(self) -> None:
        """End all streams and stop listening, within a few seconds."""
        self._sessions.stand_by("")
        for server in self._servers:
            await server.stop(STOP_SECONDS)
        self._servers = ()

    @property
    def agent_port(self) -> int:
        """The bound port for agent streams; 0 before `start`."""
        return self._agent_port

    @property
    def enrolment_port(self) -> int:
        """The bound port for enrolment; 0 before `start`."""
        return self._enrolment_port

    def set_leader(self, operator_epoch: int | None, leader: str = "") -> None:
        """Lead under this epoch, step up to a higher one, or (None) stand by; agents are then told `leader`.

        Standing by forgets all views and plans: they belong to one leadership. Raises ValueError for an
        epoch below the present one.
        """
        if operator_epoch is None:
            self._sessions.stand_by(leader)
        else:
            self._sessions.lead(operator_epoch)

    def views(self) -> Mapping[str, AgentView]:
        """All nodes whose agent said Hello to this leader, connected or not; a copy that never changes."""
        return self._sessions.views()

    def set_plan(self, node: str, plan: NodePlanData) -> int:
        """Make this the newest plan of the node, its lease terms included; returns its revision.

        The same content keeps its revision. Raises ValueError while not leading.
        """
        return self._sessions.set_plan(node, plan)

    def forget(self, node: str) -> None:
        """Drop everything known of a node that is no longer one of the cluster; ends its stream."""
        self._sessions.forget(node)

    def _listen(self, server: aio.Server, port: int, credentials: grpc.ServerCredentials) -> int:
        address = f"{self._settings.listen_address}:{port}"
        try:
            bound = server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}: {error}") from error
        if bound == 0:
            raise OSError(f"cannot listen on {address}")
        return bound


def _wall() -> datetime:
    return datetime.now(UTC)
