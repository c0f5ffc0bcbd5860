"""The local API: engines register, are told to serve or to stop, and say when they did."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import structlog
from pydantic import TypeAdapter, ValidationError

from kvpool.wire import convert_bounds as bounds
from kvpool.wire.v1alpha1 import local_pb2, local_pb2_grpc
from kvpool_agent.front_door import FrontDoor
from kvpool_agent.pod_of_process import pod_mismatch
from kvpool_agent.processes import identify, is_gone
from kvpool_agent.seats import Command, Engine, SeatBook, SeatRecord, Verb
from kvpool_agent.timing import LOCAL_API_OPTIONS, MOST_UNPLANNED_SEATS, MOST_UNSENT, REGISTER_SECONDS
from kvpool_keeper.contract import read_small, replace_whole

log = structlog.get_logger()

_RECORDS = TypeAdapter(tuple[SeatRecord, ...])
STOP_GRACE_SECONDS = 0.5
LONGEST_READINESS, LONGEST_DEVICE = 63, 128


@dataclass
class Connection:
    """One engine's stream."""

    number: int
    unsent: asyncio.Queue[local_pb2.AttachResponse] = field(
        default_factory=lambda: asyncio.Queue(MOST_UNSENT)
    )
    requests_running: int = 0
    hbm_kv_bytes: int = 0
    overflowed: bool = False


class LocalApi(local_pb2_grpc.LocalServiceServicer):
    """Serves the local API and keeps the seat book on disk; all in one event loop.

    `changed` is called after every change of engines or seats.
    """

    def __init__(self, book: SeatBook, door: FrontDoor, seats_file: Path, proc: Path = Path("/proc")) -> None:
        self.book = book
        self._door = door
        self._seats_file = seats_file
        self._keeps = True
        self._proc = proc
        self.changed: Callable[[], None] = lambda: None
        self._connections: dict[int, Connection] = {}
        self._numbers = itertools.count(1)
        self._saved = b""
        self._server: grpc.aio.Server | None = None
        self.refused_messages = 0

    @property
    def turned_away(self) -> int:
        """Connections beyond the bound, since the start."""
        return self._door.turned_away

    async def start(self) -> None:
        """Load the seats, serve, then open the door. Raises OSError."""
        self._load()
        self._server = grpc.aio.server(options=LOCAL_API_OPTIONS)
        local_pb2_grpc.add_LocalServiceServicer_to_server(self, self._server)
        self._server.add_insecure_port(self._door.inner_address)
        await self._server.start()
        await self._door.open()

    async def stop(self) -> None:
        """Close the door and end all streams; the engines go on as they are."""
        await self._door.close()
        if self._server is not None:
            await self._server.stop(STOP_GRACE_SECONDS)

    async def forget(self) -> None:
        """Close the door and remove what is kept on disk; what is connected stays so. Raises OSError."""
        await self._door.close()
        self._keeps = False
        for file in (self._seats_file, self._seats_aside):
            file.unlink(missing_ok=True)

    async def Attach(  # noqa: N802 - the name is the protocol's
        self,
        request_iterator: AsyncIterator[local_pb2.AttachRequest],
        context: grpc.aio.ServicerContext[local_pb2.AttachRequest, local_pb2.AttachResponse],
    ) -> AsyncIterator[local_pb2.AttachResponse]:
        """Serve one engine."""
        caller = self._door.caller(context.peer())
        if caller is None:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "connect to the agent's public socket")
        register = await self._first(request_iterator, context)
        mismatch = pod_mismatch(caller.pid, register.pod_uid, self._proc)
        if mismatch:
            self.refused_messages += 1
            log.warning("engine refused", why=mismatch)
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, mismatch)
        connection = Connection(next(self._numbers))
        self._connections[connection.number] = connection
        engine = Engine(
            connection=connection.number,
            pod_uid=register.pod_uid,
            pod_name=register.pod_name,
            endpoint=register.endpoint,
            devices=tuple(register.devices),
            standby=register.standby,
            readiness=register.readiness,
            guarded=register.guarded,
            process=identify(caller.pid),
        )
        self.book.register(engine, register.slot, register.epoch)
        self.changed()
        log.info(
            "engine registered", pod=engine.pod_name, pid=caller.pid, slot=register.slot, epoch=register.epoch
        )
        self.settle()
        listening = asyncio.create_task(self._listen(connection, request_iterator))
        try:
            async for response in self._outgoing(connection, listening):
                yield response
        finally:
            listening.cancel()
            self._connections.pop(connection.number, None)
            self.book.left(connection.number)
            self.changed()
            log.info("engine left", pod=engine.pod_name)
            self.settle()

    def settle(self) -> None:
        """Save what follows from the last change, then tell the engines.

        What cannot be saved is not told: it would be forgotten by the next agent. It is tried again soon.
        """
        commands = self.book.settle()
        try:
            self._save()
        except OSError as error:
            log.warning(
                "seats cannot be saved, nothing is told", file=str(self._seats_file), error=str(error)
            )
            self.book.unsent(commands)
            return
        for command in commands:
            log.info(
                "engine told", verb=command.verb, slot=command.slot, epoch=command.epoch, why=command.reason
            )
            self._send(command.connection, _response(command))

    def extend_leases(self, ttl_ms: int) -> None:
        """Tell every engine how long the node's lease still runs."""
        for number in list(self._connections):
            self._send(number, local_pb2.AttachResponse(lease=local_pb2.Lease(ttl_ms=ttl_ms)))

    def watch_processes(self) -> None:
        """Free the seats of engines whose process is proven to have ended, and try again what failed."""
        for key, process in self.book.watched().items():
            if is_gone(process):
                self.book.process_gone(key)
        self.settle()

    def figures(self, connection: int) -> tuple[int, int]:
        """Return (requests running, HBM bytes of KV cache) of an engine, as it last said."""
        known = self._connections.get(connection)
        return (0, 0) if known is None else (known.requests_running, known.hbm_kv_bytes)

    async def _first(
        self,
        requests: AsyncIterator[local_pb2.AttachRequest],
        context: grpc.aio.ServicerContext[local_pb2.AttachRequest, local_pb2.AttachResponse],
    ) -> local_pb2.Register:
        """Read the Register that must come first; anything else ends the stream and is counted."""
        problem = f"no Register within {REGISTER_SECONDS:g} s"
        with contextlib.suppress(TimeoutError, StopAsyncIteration):
            async with asyncio.timeout(REGISTER_SECONDS):
                first = await anext(requests)
            problem = f"the first message is {first.WhichOneof('message')}, not register"
            if first.HasField("register"):
                problem = self._problem(first.register)
                if not problem:
                    return first.register
        self.refused_messages += 1
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, problem)
        raise AssertionError("abort raises")

    def _problem(self, register: local_pb2.Register) -> str:
        """Say why a Register is not taken; empty when it is.

        What the operator refuses is refused here: one such engine would cost the node every Report.
        """
        if not register.pod_uid:
            return "register.pod_uid is empty; it must name the engine's pod"
        try:
            bounds.identifier("register.pod_uid", register.pod_uid, bounds.MAX_UID)
            bounds.identifier("register.pod_name", register.pod_name, bounds.MAX_NAMESPACED_NAME)
            bounds.identifier("register.endpoint", register.endpoint)
            bounds.identifier("register.readiness", register.readiness, LONGEST_READINESS)
            for device in bounds.items("register.devices", register.devices):
                bounds.identifier("register.devices", device, LONGEST_DEVICE, required=True)
            bounds.identifier("register.slot", register.slot, bounds.MAX_NAMESPACED_NAME)
            bounds.count("register.epoch", register.epoch)
        except bounds.MalformedError as error:
            return str(error)
        if not register.slot:
            return ""
        if [bool(part) for part in register.slot.split("/")] != [True, True]:
            return f"register.slot: {register.slot!r} is not namespace/name"
        known = (register.slot, register.epoch) in self.book.records
        if not known and self.book.unplanned >= MOST_UNPLANNED_SEATS:
            return f"register.slot: {self.book.unplanned} seats outside the plan are served already"
        return ""

    async def _listen(self, connection: Connection, requests: AsyncIterator[local_pb2.AttachRequest]) -> None:
        async for request in requests:
            match request.WhichOneof("message"):
                case "attached":
                    self.book.attached(connection.number, request.attached.slot, request.attached.epoch)
                    self.settle()
                case "stopped":
                    self.book.stopped(connection.number, request.stopped.slot, request.stopped.epoch)
                    self.settle()
                case "stats":
                    connection.requests_running = min(request.stats.requests_running, bounds.MAX_INTEGER)
                    connection.hbm_kv_bytes = min(request.stats.hbm_kv_bytes, bounds.MAX_INTEGER)
                case _:
                    self.refused_messages += 1

    async def _outgoing(
        self, connection: Connection, listening: asyncio.Task[None]
    ) -> AsyncIterator[local_pb2.AttachResponse]:
        """Yield what is to be told, until the engine hangs up or does not read any more."""
        while not listening.done() and not connection.overflowed:
            following = asyncio.create_task(connection.unsent.get())
            await asyncio.wait({following, listening}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                return
            yield following.result()

    def _send(self, number: int, response: local_pb2.AttachResponse) -> None:
        connection = self._connections.get(number)
        if connection is None:
            return
        try:
            connection.unsent.put_nowait(response)
        except asyncio.QueueFull:
            connection.overflowed = True  # ends the stream; the engine dials anew and hears all again

    @property
    def _seats_aside(self) -> Path:
        return self._seats_file.with_suffix(".unreadable")

    def _load(self) -> None:
        try:
            records = _RECORDS.validate_json(read_small(self._seats_file, follow=False))
        except FileNotFoundError:
            return
        except (OSError, ValidationError) as error:
            aside = self._seats_aside
            self._seats_file.replace(aside)
            log.warning(
                "seats are unreadable and were set aside", kept=str(aside), why=str(error).splitlines()[0]
            )
            return
        self.book.records.update({record.key: record for record in records})

    def _save(self) -> None:
        content = _RECORDS.dump_json(tuple(self.book.records[key] for key in sorted(self.book.records)))
        if content != self._saved:
            if self._keeps:
                replace_whole(self._seats_file, content, durable=True)
            self._saved = content
            self.changed()


def _response(command: Command) -> local_pb2.AttachResponse:
    if command.verb is Verb.SERVE:
        return local_pb2.AttachResponse(
            serve=local_pb2.Serve(slot=command.slot, epoch=command.epoch, devices=command.devices)
        )
    return local_pb2.AttachResponse(
        stop=local_pb2.Stop(slot=command.slot, epoch=command.epoch, reason=command.reason)
    )
