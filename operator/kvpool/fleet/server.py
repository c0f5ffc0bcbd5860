"""The two gRPC services: bytes in, bytes out; what they mean is decided in `enrolment` and `sessions`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Final, NoReturn, TypeAlias

from grpc import aio

from kvpool.fleet.enrolment import Enrolment, EnrolmentRequest
from kvpool.fleet.metrics import FleetMetrics
from kvpool.fleet.refusals import Reason, RefusedError
from kvpool.fleet.sessions import Session, Sessions
from kvpool.fleet.tls import peer_node
from kvpool.wire.convert_agent import AgentMessage, HelloData, agent_message_from_wire
from kvpool.wire.convert_bounds import MalformedError
from kvpool.wire.convert_operator import NotLeaderData, operator_message_to_wire
from kvpool.wire.v1alpha1 import agent_pb2 as pb
from kvpool.wire.v1alpha1 import agent_pb2_grpc as rpc

HELLO_SECONDS: Final = 10.0
"""How long a new stream may take to say who it is."""
WRITE_SECONDS: Final = 10.0
"""How long an agent may take to make room for a message."""
ENROL_SECONDS: Final = 9.0
"""Below the patience of agents, so that they hear the reason."""

_EnrolContext: TypeAlias = aio.ServicerContext[pb.EnrollRequest, pb.EnrollResponse]
_StreamContext: TypeAlias = aio.ServicerContext[pb.ConnectRequest, pb.ConnectResponse]

_log = logging.getLogger(__name__)


class EnrolmentService(rpc.EnrolmentServiceServicer):
    """Certificates for tokens, on a port that clients without a certificate can reach."""

    def __init__(self, enrolment: Enrolment, metrics: FleetMetrics) -> None:
        self._enrolment = enrolment
        self._metrics = metrics

    async def Enroll(  # noqa: N802 - named by the protocol
        self, request: pb.EnrollRequest, context: _EnrolContext
    ) -> pb.EnrollResponse:
        """See the protocol."""
        asked = EnrolmentRequest(request.csr_pem, request.token, request.node_name)
        try:
            async with asyncio.timeout(ENROL_SECONDS):
                certificate = await self._enrolment.enrol(asked)
        except TimeoutError:
            text = f"no decision within {ENROL_SECONDS:g} s; try again later"
            await self._refuse(context, RefusedError(Reason.API_UNAVAILABLE, text))
        except RefusedError as refusal:
            await self._refuse(context, refusal)
        self._metrics.enrolled("Issued")
        return pb.EnrollResponse(
            certificate_pem=certificate.certificate_pem,
            ca_pem=self._enrolment.bundle_pem,
            renew_after_seconds=certificate.renew_after_seconds,
        )

    async def _refuse(self, context: _EnrolContext, refusal: RefusedError) -> NoReturn:
        self._metrics.enrolled(refusal.reason.label)
        _log.warning("enrolment of %s refused: %s: %s", context.peer(), refusal.reason.label, refusal)
        await context.abort(refusal.reason.status, str(refusal))


class AgentService(rpc.AgentServiceServicer):
    """Streams of agents. `clock` gives monotonic seconds."""

    def __init__(self, sessions: Sessions, metrics: FleetMetrics, clock: Callable[[], float]) -> None:
        self._sessions = sessions
        self._metrics = metrics
        self._clock = clock

    async def Connect(  # type: ignore[override]  # noqa: N802 - named by the protocol; it writes to the context, so that what goes out is known the moment it does
        self, _requests: AsyncIterator[pb.ConnectRequest], context: _StreamContext
    ) -> None:
        """See the protocol."""
        try:
            await self._serve(context)
        except MalformedError as error:
            await self._refuse(context, RefusedError(Reason.MALFORMED, str(error)))
        except RefusedError as refusal:
            await self._refuse(context, refusal)

    async def _serve(self, context: _StreamContext) -> None:
        node = peer_node(context.auth_context())
        hello = await self._read(context, HELLO_SECONDS)
        if hello is None:
            return
        if not self._sessions.leading:
            await context.write(operator_message_to_wire(self._sessions.not_leader))
            return
        if not isinstance(hello, HelloData):
            raise MalformedError("message", "the first message of a stream has to be a Hello")
        session = self._sessions.open(node, hello, self._clock())
        try:
            await _first_to_end(self._receive(session, context), self._send(session, context))
        finally:
            self._sessions.closed(session)

    async def _receive(self, session: Session, context: _StreamContext) -> None:
        while True:
            message = await self._read(context, self._sessions.idle_seconds(session))
            if message is None:
                return
            self._sessions.receive(session, message, self._clock())

    async def _send(self, session: Session, context: _StreamContext) -> None:
        while True:
            message = await session.outbox.take()
            self._sessions.sending(session, message, self._clock())
            try:
                async with asyncio.timeout(WRITE_SECONDS):
                    await context.write(operator_message_to_wire(message))
            except TimeoutError as error:
                text = f"the agent took no message for {WRITE_SECONDS:g} s"
                raise RefusedError(Reason.SILENT, text) from error
            self._metrics.sent(message.name)
            if isinstance(message, NotLeaderData):
                return

    async def _read(self, context: _StreamContext, seconds: float) -> AgentMessage | None:
        """The next message, None when the agent ended the stream. Raises MalformedError or RefusedError."""
        try:
            async with asyncio.timeout(seconds):
                raw = await context.read()
        except TimeoutError as error:
            text = f"the stream was silent for {seconds:g} s"
            raise RefusedError(Reason.SILENT, text) from error
        if not isinstance(raw, pb.ConnectRequest):
            return None  # grpc's end-of-stream object
        message = agent_message_from_wire(raw, self._clock())
        self._metrics.received(message.name)
        return message

    async def _refuse(self, context: _StreamContext, refusal: RefusedError) -> NoReturn:
        self._metrics.refused(refusal.reason.label)
        _log.warning("stream of %s ended: %s: %s", context.peer(), refusal.reason.label, refusal)
        await context.abort(refusal.reason.status, str(refusal))


async def _first_to_end(*parts: Coroutine[object, object, None]) -> None:
    """Run all until the first ends, end the others, and raise what it raised."""
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
