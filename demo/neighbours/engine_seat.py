"""The engine's side of the local API: it registers with its node's agent, and serves or stops as told.

An agent may come and go: the engine keeps its seat, dials again and says under which epoch it serves.
Only a guarded engine stops by itself, when the node's lease runs out.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import grpc

from demo.neighbours.engine_duty import Duty, State
from kvpool.wire.v1alpha1 import local_pb2, local_pb2_grpc

REDIAL_SECONDS = 0.25
STATS_SECONDS = 1.0
LEASE_CHECK_SECONDS = 0.05
MOST_UNSENT = 64
DRAIN_SECONDS = 5.0


@dataclass(frozen=True)
class Identity:
    """What the engine says of itself when it registers."""

    pod_uid: str
    pod_name: str
    endpoint: str
    devices: tuple[str, ...]
    guarded: bool
    readiness: str = "EngineReady"


@dataclass(frozen=True)
class Order:
    """What the agent wants: to serve or to stop as a slot under an epoch."""

    verb: Literal["serve", "stop"]
    slot: str
    epoch: int


class SeatClient:
    """Follows the agent's word for one engine; `run` never returns by itself.

    `attach_seconds` is how long a standby needs to take a seat. `say` gets one line for each change.
    """

    def __init__(
        self,
        socket: Path,
        identity: Identity,
        duty: Duty,
        *,
        attach_seconds: float,
        say: Callable[[str], None],
    ) -> None:
        self._target = f"unix:{socket}"
        self._identity = identity
        self._duty = duty
        self._attach_seconds = attach_seconds
        self._say = say
        self._slot = ""
        self._highest_epoch = 0
        self._lease_end = float("inf")
        self._unsent: asyncio.Queue[local_pb2.AttachRequest] = asyncio.Queue(MOST_UNSENT)
        self._order = Order("stop", "", 0)
        self._change: asyncio.Task[None] | None = None
        self._group: asyncio.TaskGroup

    async def run(self) -> None:
        """Stay connected to the agent and do what it says, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            if self._identity.guarded:
                group.create_task(self._watch_lease())
            while True:
                try:
                    await self._one_stream()
                except grpc.aio.AioRpcError as error:
                    self._say(f"local API: {error.code().name} {error.details()}")
                await asyncio.sleep(REDIAL_SECONDS)

    async def _one_stream(self) -> None:
        """Follow one stream to its end. Raises AioRpcError when the agent goes away."""
        self._unsent = asyncio.Queue(MOST_UNSENT)
        async with grpc.aio.insecure_channel(self._target) as channel:
            stub = local_pb2_grpc.LocalServiceStub(channel)
            call = stub.Attach(self._outgoing(self._unsent))
            async for response in call:
                self._obey(response)

    async def _outgoing(
        self, unsent: asyncio.Queue[local_pb2.AttachRequest]
    ) -> AsyncIterator[local_pb2.AttachRequest]:
        """Register first, then the answers, and figures whenever nothing else was said for a second."""
        yield local_pb2.AttachRequest(register=self._register())
        while True:
            try:
                yield await asyncio.wait_for(unsent.get(), STATS_SECONDS)
            except TimeoutError:
                figures = local_pb2.EngineStats(
                    requests_running=self._duty.running, requests_waiting=self._duty.waiting
                )
                yield local_pb2.AttachRequest(stats=figures)

    def _register(self) -> local_pb2.Register:
        return local_pb2.Register(
            pod_uid=self._identity.pod_uid,
            pod_name=self._identity.pod_name,
            endpoint=self._identity.endpoint,
            devices=self._identity.devices,
            standby=self._duty.state is not State.SERVING,
            readiness=self._identity.readiness,
            slot=self._slot,
            epoch=self._duty.epoch,
            guarded=self._identity.guarded,
        )

    def _obey(self, response: local_pb2.AttachResponse) -> None:
        kind = response.WhichOneof("message")
        if kind == "serve":
            self._begin(response.serve)
        elif kind == "stop":
            self._end(response.stop)
        elif kind == "lease":
            self._lease_end = time.monotonic() + response.lease.ttl_ms / 1000

    def _begin(self, serve: local_pb2.Serve) -> None:
        if serve.epoch < self._highest_epoch:
            self._say(f"refused: serve {serve.slot} under epoch {serve.epoch} after {self._highest_epoch}")
            return
        self._highest_epoch = serve.epoch
        self._turn_to(Order("serve", serve.slot, serve.epoch), lambda: self._take(serve))

    def _end(self, stop: local_pb2.Stop) -> None:
        if stop.epoch < self._duty.epoch:
            # Nothing is served under that older epoch any more: true already, and the seat is kept.
            self._tell(local_pb2.AttachRequest(stopped=local_pb2.Stopped(slot=stop.slot, epoch=stop.epoch)))
            return
        self._highest_epoch = max(self._highest_epoch, stop.epoch)
        order = Order("stop", stop.slot, stop.epoch)
        self._turn_to(order, lambda: self._leave(order, stop.reason))

    def _turn_to(self, order: Order, step: Callable[[], Coroutine[None, None, None]]) -> None:
        """Carry an order out: an attach under way is given up for it, a drain under way is waited for."""
        previous = self._change if self._change is not None and not self._change.done() else None
        if previous is not None and order == self._order:
            return
        if previous is not None and self._order.verb == "serve":
            previous.cancel()
        self._order = order
        self._change = self._group.create_task(_after(previous, step))

    async def _take(self, serve: local_pb2.Serve) -> None:
        if (serve.slot, serve.epoch) != (self._slot, self._duty.epoch):
            await self._duty.take_seat(serve.epoch, attach_seconds=self._attach_seconds)
            self._slot = serve.slot
            self._say(f"serving {serve.slot} under epoch {serve.epoch}")
        attached = local_pb2.Attached(slot=serve.slot, epoch=serve.epoch)
        self._tell(local_pb2.AttachRequest(attached=attached))

    async def _leave(self, order: Order, reason: str) -> None:
        drained = await self._duty.leave_seat(drain_seconds=DRAIN_SECONDS)
        self._slot = ""
        self._duty.epoch = 0
        how = "drained" if drained else f"requests still ran after {DRAIN_SECONDS:g} s"
        self._say(f"stopped {order.slot} under epoch {order.epoch}, {how}: {reason}")
        stopped = local_pb2.Stopped(slot=order.slot, epoch=order.epoch)
        self._tell(local_pb2.AttachRequest(stopped=stopped))

    def _tell(self, message: local_pb2.AttachRequest) -> None:
        """Queue a message; one that finds no stream is not missed, as Register says the same."""
        with contextlib.suppress(asyncio.QueueFull):
            self._unsent.put_nowait(message)

    async def _watch_lease(self) -> None:
        while True:
            await asyncio.sleep(LEASE_CHECK_SECONDS)
            if time.monotonic() > self._lease_end and self._duty.state is State.SERVING:
                order = Order("stop", self._slot, self._duty.epoch)
                self._turn_to(order, partial(self._leave, order, "the node's lease ran out"))


async def _after(
    previous: asyncio.Task[None] | None, step: Callable[[], Coroutine[None, None, None]]
) -> None:
    if previous is not None:
        await asyncio.wait([previous])
    await step()
