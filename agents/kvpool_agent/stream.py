"""The agent's stream to the leading operator: found among all addresses, dialled anew when silent."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import grpc
import structlog

from kvpool.wire.v1alpha1 import agent_pb2 as wire
from kvpool.wire.v1alpha1 import agent_pb2_grpc
from kvpool_agent.enrolment import Enrolment, Identity, channel_options
from kvpool_agent.timing import (
    DIAL_SECONDS,
    DIAL_SETTLE_SECONDS,
    ENROL_AGAIN_AFTER_FAILED_DIALS,
    LEAVING_MS,
    MOST_EVIDENCE_WAITING,
    MOST_MISSED_GRANTS,
    REDIAL_FIRST_SECONDS,
    REDIAL_MOST_SECONDS,
    REPORT_GAP_SECONDS,
    REPORT_SECONDS,
    RESOLVE_SECONDS,
    STEADY_STREAM_SECONDS,
    WRITE_SECONDS,
)

log = structlog.get_logger()


class StreamOver(Exception):  # noqa: N818 - not an error: a reason to dial anew
    """The stream is of no more use; the message says why."""


class Node(Protocol):
    """What the stream needs of the agent."""

    def hello(self) -> wire.Hello:
        """Say who the agent is and what it holds."""
        ...

    def report(self) -> wire.Report:
        """Say what the agent sees."""
        ...

    def renew(self) -> wire.Renew:
        """Write the next Renew and start to count from now."""
        ...

    def welcomed(self, welcome: wire.Welcome) -> bool:
        """Take the terms; False refuses the operator for its epoch."""
        ...

    def granted(self, grant: wire.Grant) -> None:
        """Extend the lease, unless the epoch is refused."""
        ...

    def planned(self, plan: wire.NodePlan) -> None:
        """Take a plan, unless the epoch is refused or it is malformed."""
        ...

    def ended(self) -> None:
        """Take note that the stream is over."""
        ...

    @property
    def renew_seconds(self) -> float:
        """How often to renew."""
        ...

    @property
    def missed_grants(self) -> int:
        """Renews without Grant."""
        ...


@dataclass(frozen=True)
class Session:
    """A stream whose operator said Welcome."""

    address: str
    channel: grpc.aio.Channel
    call: Any
    """grpc.aio.StreamStreamCall; its stubs have no usable generic type."""


class OperatorStream:
    """Keeps one stream to the leader. `run` never returns by itself."""

    def __init__(
        self, target: str, server_name: str, enrolment: Enrolment, node: Node, beat: Callable[[], None]
    ) -> None:
        self._target = target
        self._server_name = server_name
        self._enrolment = enrolment
        self._node = node
        self._beat = beat
        self._changed = asyncio.Event()
        self._evidence: asyncio.Queue[wire.Evidence] = asyncio.Queue(MOST_EVIDENCE_WAITING)
        self._writing = asyncio.Lock()
        self._session: Session | None = None
        self.dials_failed = 0

    @property
    def connected_to(self) -> str:
        """Address of the leader; empty while there is no stream."""
        return self._session.address if self._session else ""

    def changed(self) -> None:
        """Something that is reported changed: send a Report soon."""
        self._changed.set()

    def push(self, evidence: wire.Evidence) -> None:
        """Send a finding at once. When too many wait, the next Report says it anyway."""
        with contextlib.suppress(asyncio.QueueFull):
            self._evidence.put_nowait(evidence)

    async def run(self) -> None:
        """Dial, follow, dial anew, for ever."""
        wait = REDIAL_FIRST_SECONDS
        failed_in_a_row = 0
        while True:
            self._beat()
            identity = await self._enrolment.identity()
            self._session = await self._dial(identity)
            if self._session is None:
                self.dials_failed += 1
                failed_in_a_row += 1
                if failed_in_a_row % ENROL_AGAIN_AFTER_FAILED_DIALS == 0:
                    self._enrolment.distrust()
                await asyncio.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, no secret
                wait = min(wait * 2, REDIAL_MOST_SECONDS)
                continue
            failed_in_a_row = 0
            began = time.monotonic()
            try:
                await self._follow(self._session)
            finally:
                session, self._session = self._session, None
                self._node.ended()
                await session.channel.close()
            if time.monotonic() - began > STEADY_STREAM_SECONDS:
                wait = REDIAL_FIRST_SECONDS
            else:  # an operator that ends every stream at once must not be dialled without rest
                await asyncio.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, no secret
                wait = min(wait * 2, REDIAL_MOST_SECONDS)

    async def leave(self) -> None:
        """Say that the agent goes down on purpose."""
        if self._session is not None:
            with contextlib.suppress(StreamOver):
                await self._write(self._session, wire.ConnectRequest(leaving=wire.Leaving(for_ms=LEAVING_MS)))
                await self._session.call.done_writing()

    async def _dial(self, identity: Identity) -> Session | None:
        """Try all addresses of the operators at once; the last to say Welcome is taken.

        Several addresses may lead to one operator, which ends a node's older streams: the newest lives.
        """
        try:
            addresses = await _resolve(self._target)
        except OSError as error:
            log.warning("operator's name is not resolved", target=self._target, error=str(error))
            return None
        welcomes: list[Session] = []
        """In the order in which they came."""
        attempts = {asyncio.create_task(self._greet(address, identity, welcomes)) for address in addresses}
        chosen: Session | None = None
        try:
            waiting = attempts
            while waiting and not welcomes:
                _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if waiting:
                await asyncio.wait(waiting, timeout=DIAL_SETTLE_SECONDS)
            for attempt in attempts:
                if attempt.done():
                    attempt.result()  # raises what nobody expected
            chosen = welcomes[-1] if welcomes else None
            return chosen
        finally:
            for attempt in attempts:
                attempt.cancel()
            await asyncio.gather(*attempts, return_exceptions=True)
            for other in welcomes:
                if other is not chosen:
                    await other.channel.close()

    async def _greet(self, address: str, identity: Identity, welcomes: list[Session]) -> None:
        """Say Hello at one address; join `welcomes` when it is a leader that this node accepts."""
        server_name = self._server_name or self._target.rpartition(":")[0]
        channel = grpc.aio.secure_channel(
            address, identity.channel_credentials(), options=channel_options(server_name)
        )
        session = Session(address, channel, agent_pb2_grpc.AgentServiceStub(channel).Connect())
        welcomed = False
        try:
            async with asyncio.timeout(DIAL_SECONDS):
                await session.call.write(wire.ConnectRequest(hello=self._node.hello()))
                first = await session.call.read()
            welcomed = self._is_welcome(address, first)
            if welcomed:
                welcomes.append(session)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, TimeoutError) as error:
            log.info("operator does not answer", address=address, error=_text(error))
        finally:
            if not welcomed:
                await channel.close()

    def _is_welcome(self, address: str, first: wire.ConnectResponse | None) -> bool:
        if not isinstance(first, wire.ConnectResponse):  # grpc.aio.EOF
            log.info("operator ended the stream", address=address)
            return False
        kind = first.WhichOneof("message")
        if kind == "welcome":
            return self._node.welcomed(first.welcome)
        leader = first.not_leader.leader if kind == "not_leader" else ""
        log.info("not the leader", address=address, answer=kind, leader=leader)
        return False

    async def _follow(self, session: Session) -> None:
        """Use a stream until it is over.

        No TaskGroup: before Python 3.13, one that ends just when it is cancelled forgets the latter.
        """
        log.info("connected to the leader", address=session.address)
        self._changed.set()
        uses = (self._read, self._renew, self._report, self._push_evidence)
        tasks = [asyncio.create_task(use(session)) for use in uses]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            try:
                await task
            except StreamOver as over:
                log.info("stream is over", address=session.address, why=str(over))
            except asyncio.CancelledError:  # the call's own: a write that took too long ends its reads too
                log.info("stream is over", address=session.address, why="the call was cancelled")

    async def _read(self, session: Session) -> None:
        while True:
            try:
                message = await session.call.read()
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
                raise StreamOver(_text(error)) from error
            if message is grpc.aio.EOF:
                raise StreamOver("the operator ended it")
            self._beat()
            match message.WhichOneof("message"):
                case "grant":
                    self._node.granted(message.grant)
                case "node_plan":
                    self._node.planned(message.node_plan)
                case "not_leader":
                    raise StreamOver(f"the operator leads no more, {message.not_leader.leader!r} does")
                case "welcome" if not self._node.welcomed(message.welcome):
                    raise StreamOver("the operator's epoch is too low")

    async def _renew(self, session: Session) -> None:
        while True:
            if self._node.missed_grants >= MOST_MISSED_GRANTS:
                raise StreamOver(f"{self._node.missed_grants} grants were missed")
            await self._write(session, wire.ConnectRequest(renew=self._node.renew()))
            await asyncio.sleep(self._node.renew_seconds)

    async def _report(self, session: Session) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPORT_SECONDS):
                    await self._changed.wait()
            self._changed.clear()
            await self._write(session, wire.ConnectRequest(report=self._node.report()))
            await asyncio.sleep(REPORT_GAP_SECONDS)

    async def _push_evidence(self, session: Session) -> None:
        while True:
            evidence = await self._evidence.get()
            await self._write(session, wire.ConnectRequest(evidence=evidence))

    async def _write(self, session: Session, message: wire.ConnectRequest) -> None:
        """Send one message. Raises StreamOver when the stream is broken or does not take it in time."""
        try:
            async with asyncio.timeout(WRITE_SECONDS), self._writing:
                await session.call.write(message)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            raise StreamOver(_text(error)) from error
        except TimeoutError as error:
            raise StreamOver(f"a write took longer than {WRITE_SECONDS:g} s") from error


async def _resolve(target: str) -> tuple[str, ...]:
    """Return every address of HOST:PORT as address:port. Raises OSError."""
    host, _, port = target.rpartition(":")
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except TimeoutError:
        raise OSError(f"{host}: no answer of the resolver within {RESOLVE_SECONDS:g} s") from None
    except ValueError:
        raise OSError(f"{target}: not HOST:PORT") from None
    plain = sorted({entry[4][0] for entry in found})
    return tuple(f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}" for address in plain)


def _text(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"
    return str(error) or type(error).__name__
