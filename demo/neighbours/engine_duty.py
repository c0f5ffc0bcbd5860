"""What one engine is allowed to do now, and the requests that still run: no I/O beyond waiting."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class State(enum.Enum):
    """Where an engine stands between two seats."""

    STANDBY = "standby"
    ATTACHING = "attaching"
    SERVING = "serving"
    DRAINING = "draining"


class NotServingError(RuntimeError):
    """The engine takes no request now; `args[0]` says why."""


class Duty:
    """Admission of requests under the seat that the engine holds.

    An engine starts in SERVING (epoch 0: nobody gave it a seat) or in STANDBY. At most `most_running`
    requests run at once and at most `most_waiting` wait; more are refused.
    """

    def __init__(self, *, standby: bool, most_running: int, most_waiting: int) -> None:
        self.state = State.STANDBY if standby else State.SERVING
        self.epoch = 0
        self.running = 0
        self._admitted = 0
        self._most_waiting = most_waiting
        self._places = asyncio.Semaphore(most_running)
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """Admitted requests that have no running place yet."""
        return self._admitted - self.running

    @asynccontextmanager
    async def one_request(self) -> AsyncIterator[None]:
        """Hold one of the running places. Raises NotServingError when the engine takes no request."""
        if self.state is not State.SERVING:
            raise NotServingError(f"the engine is {self.state.value}")
        if self.waiting >= self._most_waiting:
            raise NotServingError(f"{self.waiting} requests are waiting already")
        self._admitted += 1
        self._idle.clear()
        try:
            async with self._places:
                self.running += 1
                try:
                    yield
                finally:
                    self.running -= 1
        finally:
            self._admitted -= 1
            if not self._admitted:
                self._idle.set()

    async def take_seat(self, epoch: int, *, attach_seconds: float) -> None:
        """Serve under `epoch`; an engine that serves already only changes its epoch, at once."""
        if self.state is not State.SERVING:
            self.state = State.ATTACHING
            await asyncio.sleep(attach_seconds)
        self.epoch = epoch
        self.state = State.SERVING

    async def leave_seat(self, *, drain_seconds: float) -> bool:
        """Refuse new requests, wait for those admitted, and be a standby.

        Return False when some still ran after `drain_seconds`.
        """
        self.state = State.DRAINING
        drained = True
        try:
            async with asyncio.timeout(drain_seconds):
                await self._idle.wait()
        except TimeoutError:
            drained = False
        self.state = State.STANDBY
        return drained
