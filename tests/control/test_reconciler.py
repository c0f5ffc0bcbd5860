"""The worker of the planning loops: what a step raises never ends it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from kvpool.cluster.errors import Retryable
from kvpool.control.metrics import OperatorMetrics
from kvpool.control.reconciler import STUCK_SECONDS, Loop, MovedOn, Reconciler, Step
from tests.harness.waiting import wait_until_async


@asynccontextmanager
async def running(
    metrics: OperatorMetrics, steps: dict[Loop, Step], resync_seconds: float = 60.0
) -> AsyncIterator[Reconciler]:
    reconciler = Reconciler(steps, dict.fromkeys(steps, resync_seconds), metrics)
    task = asyncio.create_task(reconciler.run())
    yield reconciler
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def raising(*errors: Exception) -> tuple[list[float], Step]:
    """A step that raises these one after the other and then succeeds, and when it was called."""
    calls: list[float] = []

    async def step() -> float | None:
        calls.append(time.monotonic())
        if len(calls) <= len(errors):
            raise errors[len(calls) - 1]
        return None

    return calls, step


def reaches(calls: list[float], count: int) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return len(calls) >= count

    return look


async def test_a_step_that_faults_is_tried_again_and_the_others_run_on(metrics: OperatorMetrics) -> None:
    failing, fails = raising(ValueError("a bug"), Retryable("GET x", 503, "", "down"))
    fine, works = raising()
    async with running(metrics, {Loop.FAILOVER: fails, Loop.CAPACITY: works}):
        await wait_until_async(reaches(failing, 3), 5, "the third try")
        assert fine


async def test_an_urgent_loop_never_waits_for_a_routine_one(metrics: OperatorMetrics) -> None:
    entered = asyncio.Event()
    urgent, runs = raising()

    async def hangs() -> float | None:
        entered.set()
        await asyncio.Event().wait()
        return None

    async with running(metrics, {Loop.CAPACITY: hangs, Loop.FAILOVER: runs}) as reconciler:
        await asyncio.wait_for(entered.wait(), 5)
        before = len(urgent)
        reconciler.wake(Loop.FAILOVER)
        await wait_until_async(reaches(urgent, before + 1), 5, "the urgent loop")


async def test_a_step_whose_objects_keep_moving_is_tried_at_growing_intervals(
    metrics: OperatorMetrics,
) -> None:
    calls, step = raising(*(MovedOn() for _ in range(5)))
    async with running(metrics, {Loop.FAILOVER: step}):
        await wait_until_async(reaches(calls, 5), 5, "the fifth try")
    pauses = [after - before for before, after in itertools.pairwise(calls)]
    assert all(pause >= least for pause, least in zip(pauses, (0.05, 0.1, 0.2, 0.4), strict=False)), pauses


async def test_only_faults_that_last_are_told_to_the_liveness_probe(metrics: OperatorMetrics) -> None:
    faulty, faults = raising(*(ValueError("a bug") for _ in range(9)))
    down, outage = raising(*(Retryable("GET x", 503, "", "down") for _ in range(9)))
    async with running(metrics, {Loop.FAILOVER: faults, Loop.CAPACITY: outage}) as reconciler:
        await wait_until_async(reaches(faulty, 1), 5, "a fault")
        await wait_until_async(reaches(down, 1), 5, "an outage")
        assert reconciler.stuck(time.monotonic()) == []
        (said,) = reconciler.stuck(time.monotonic() + STUCK_SECONDS + 1)
        assert "failover" in said


async def test_a_success_ends_a_row_of_faults(metrics: OperatorMetrics) -> None:
    calls, step = raising(ValueError("a bug"))
    async with running(metrics, {Loop.FAILOVER: step}) as reconciler:
        await wait_until_async(reaches(calls, 2), 5, "the second try")
        await asyncio.sleep(0)
        assert reconciler.stuck(time.monotonic() + STUCK_SECONDS + 1) == []
