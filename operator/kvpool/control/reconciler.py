"""Runs planning steps: takes keys from the queue, gives each step a deadline, counts, and backs off."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import structlog

from kvpool.cluster.errors import ApiError
from kvpool.control.metrics import OperatorMetrics
from kvpool.control.work_queue import DueQueue, Lane

STEP_DEADLINE_SECONDS: Final = 30.0
STUCK_SECONDS: Final = 60.0
"""A ready loop that waits longer, or one that has only faulted for longer, is a matter for a restart."""
_BACKOFF_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
_MOVED_SECONDS: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0)
"""Pauses after a step that met a moved object: the watch wakes the loop sooner, unless it is stalled."""
_log = structlog.get_logger()


class Loop(StrEnum):
    """The planning loops; they meet only in objects and conditions."""

    FAILOVER = "failover"
    PLANS = "plans"
    CAPACITY = "capacity"
    STATUSES = "statuses"
    STORES = "stores"
    WORKLOADS = "workloads"


LANES: Final[Mapping[Loop, Lane]] = {
    Loop.FAILOVER: Lane.URGENT,
    Loop.PLANS: Lane.URGENT,
    Loop.CAPACITY: Lane.ROUTINE,
    Loop.STATUSES: Lane.ROUTINE,
    Loop.STORES: Lane.ROUTINE,
    Loop.WORKLOADS: Lane.ROUTINE,
}
_SETTLE_SECONDS: Final[Mapping[Loop, float]] = {
    Loop.CAPACITY: 0.1,
    Loop.STATUSES: 0.5,
    Loop.WORKLOADS: 0.2,
    Loop.STORES: 0.1,
}
"""Routine loops let a burst of changes settle first."""

Step = Callable[[], Awaitable[float | None]]
"""One planning step; returns the moment (monotonic seconds) at which it wants to run again by time alone."""


class MovedOn(Exception):  # noqa: N818 - says what happened
    """Something had moved since the step's plan was made: plan again, on newer facts."""


class Reconciler:
    """One worker for each loop, all fed by one queue: an urgent loop never waits behind a routine one."""

    def __init__(
        self, steps: Mapping[Loop, Step], resync_seconds: Mapping[Loop, float], metrics: OperatorMetrics
    ) -> None:
        self._steps = steps
        self._resync = resync_seconds
        self._metrics = metrics
        self._queue: DueQueue[Loop] = DueQueue()
        self._wake = asyncio.Event()
        self._failures: dict[Loop, int] = {}
        self._faulty_since: dict[Loop, float] = {}
        self._running: set[asyncio.Task[None]] = set()

    def wake(self, *loops: Loop) -> None:
        """Run these loops soon: urgent ones now, routine ones after a moment to settle."""
        now = time.monotonic()
        for loop in loops:
            settle = _SETTLE_SECONDS.get(loop, 0.0)
            if settle:
                self._queue.add_at(loop, LANES[loop], now + settle)
            else:
                self._queue.add(loop, LANES[loop], now)
        self._wake.set()

    def stuck(self, now: float) -> list[str]:
        """What is wrong, for the liveness probe, at `now` (monotonic seconds).

        An API that does not answer is no fault of ours: only steps that raise what nobody expected count. Nor
        does a routine loop: a restart would not mend it, and would stop the failover that still works.
        """
        waiting = self._queue.oldest_age_seconds(now)
        late = [f"the oldest ready loop has waited {waiting:.0f} s"] if waiting > STUCK_SECONDS else []
        return late + [
            f"loop {loop} has only faulted for {now - since:.0f} s"
            for loop, since in self._faulty_since.items()
            if LANES[loop] is Lane.URGENT and now - since > STUCK_SECONDS
        ]

    async def run(self) -> None:
        """Work until cancelled. An error in a step is counted, logged and retried; it never ends the loop."""
        self.wake(*self._steps)
        try:
            while True:
                self._start_due()
                self._observe_queue()
                due = self._queue.next_due()
                timeout = 1.0 if due is None else max(0.0, min(1.0, due - time.monotonic()))
                self._wake.clear()
                try:
                    await asyncio.wait_for(self._wake.wait(), timeout)
                except TimeoutError:
                    continue
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    def _start_due(self) -> None:
        while (loop := self._queue.take(time.monotonic())) is not None:
            task = asyncio.create_task(self._step(loop), name=f"step {loop}")
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def _observe_queue(self) -> None:
        self._metrics.loops.queue_depth.set(self._queue.depth())
        self._metrics.loops.queue_oldest.set(self._queue.oldest_age_seconds(time.monotonic()))

    async def _step(self, loop: Loop) -> None:
        started = time.monotonic()
        result = "success"
        try:
            async with asyncio.timeout(STEP_DEADLINE_SECONDS):
                again = await self._steps[loop]()
            self._failures.pop(loop, None)
            self._faulty_since.pop(loop, None)
            self._metrics.loops.last_success.labels(loop).set_to_current_time()
        except asyncio.CancelledError:
            raise
        except MovedOn:
            result, again = "moved", self._back_off(loop, _MOVED_SECONDS)
        except (ApiError, TimeoutError) as error:
            result, again = "error", self._back_off(loop, _BACKOFF_SECONDS)
            _log.warning("step failed", loop=loop, error=str(error) or type(error).__name__)
        except Exception:  # noqa: BLE001 - the worker boundary: a fault in one step must not end the loop
            result, again = "fault", self._back_off(loop, _BACKOFF_SECONDS)
            self._faulty_since.setdefault(loop, started)
            _log.exception("step raised", loop=loop)
        finally:
            self._queue.done(loop, time.monotonic())
            self._wake.set()
        self._metrics.loops.total.labels(loop, result).inc()
        self._metrics.loops.seconds.labels(loop).observe(time.monotonic() - started)
        resync = time.monotonic() + self._resync[loop]
        self._queue.add_at(loop, LANES[loop], resync if again is None else min(again, resync))

    def _back_off(self, loop: Loop, pauses: Sequence[float]) -> float:
        failures = self._failures.get(loop, 0)
        self._failures[loop] = failures + 1
        return time.monotonic() + pauses[min(failures, len(pauses) - 1)]
