"""Leading by a Lease: wait for it, renew it, and end the process when it may be lost.

The rules are in `election`; here are the requests and the deadlines. The operator epoch lives in an
annotation of the Lease and rises in the same write that takes the Lease, so that no two leaderships
share one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime

from kvpool.cluster.election import (
    DEFAULT_TIMING,
    Acquire,
    Claim,
    LeaseRecord,
    LeaseTiming,
    Observed,
    Renew,
    Wait,
    elect,
    observe,
)
from kvpool.cluster.errors import ApiError, Conflict, Gone
from kvpool.cluster.hard_exit import DeadlineGuard, hard_exit
from kvpool.cluster.reads import find
from kvpool.cluster.resources import LEASES, Obj
from kvpool.cluster.rest import Rest
from kvpool.cluster.writes import create, replace

_MANAGER = "kvpool-lease"


def boot_clock() -> float:
    """Seconds since boot, time in suspend included: a machine that slept has lost its Lease."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def utc_now() -> datetime:
    """The wall clock, for time stamps that people read; nothing is decided on it."""
    return datetime.now(UTC)


class LeadershipLost(Exception):  # noqa: N818 - says what happened
    """Raised after `on_lost` in the one case that it returns: in tests."""


class Leadership:
    """One candidate for one Lease.

    `acquire` waits until we lead, `hold` renews until cancelled, `release` gives the Lease back on a clean
    exit; once each. `me` must differ for every process, also for two starts of one pod. When the Lease is
    lost, or may be, `on_lost` is called with the reason, from `hold` or from a guard thread; it must end the
    process. The guard thread does so too when `hold` is not running, so whoever stops it has to `release`.
    """

    def __init__(
        self,
        rest: Rest,
        *,
        namespace: str,
        name: str,
        me: str,
        on_lost: Callable[[str], object] = hard_exit,
        timing: LeaseTiming = DEFAULT_TIMING,
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        self.last_error: ApiError | None = None
        self._rest = rest
        self._target = LEASES.at(namespace, name)
        self._namespace, self._name, self._me = namespace, name, me
        self._on_lost = on_lost
        self._timing = timing
        self._clock = clock
        self._observed: Observed | None = None
        self._lease: Obj | None = None
        self._epoch = 0
        self._renewed_at: float | None = None  # when the last successful write was *sent*
        self._lock = asyncio.Lock()
        reason = f"Lease {namespace}/{name}: not renewed in time and the event loop did not end the process"
        self._guard = DeadlineGuard(clock, reason, end=on_lost)

    @property
    def epoch(self) -> int:
        """The operator epoch of this leadership, as written in the Lease; 0 before `acquire`."""
        return self._epoch

    @property
    def holder(self) -> str | None:
        """Who held the Lease when we last looked; "" for nobody, None for unknown or no Lease."""
        if self.holds():
            return self._me
        return self._observed.record.holder if self._observed is not None else None

    def holds(self) -> bool:
        """Whether we certainly lead now: to be asked right before every deciding write."""
        return self._renewed_at is not None and (
            self._clock() - self._renewed_at < self._timing.renew_seconds
        )

    def renewed_seconds_ago(self) -> float | None:
        """Age of the last successful renewal, None when we never led or released."""
        return None if self._renewed_at is None else self._clock() - self._renewed_at

    async def acquire(self) -> None:
        """Return once we lead, with `epoch` above any the Lease has named. API outages are waited out."""
        while True:
            pause = self._timing.retry_seconds
            try:
                lease = await find(self._rest, self._target, timeout_seconds=self._request_seconds())
                now = self._clock()
                self._observed = observe(self._observed, lease, now)
                match elect(self._observed, self._me, now, self._timing.duration_seconds):
                    case Acquire() | Renew():
                        # Renew: an earlier claim of ours was carried out although its answer was lost.
                        await self._claim(lease)
                        return
                    case Wait(until):
                        pause = min(pause, until - now + 0.01)
            except Conflict:
                pass  # another candidate was faster
            except ApiError as error:
                self.last_error = error
            await asyncio.sleep(pause)

    async def hold(self) -> None:
        """Renew every `retry_seconds` until cancelled; calls `on_lost` when the Lease is or may be lost."""
        while True:
            left = self._timing.renew_seconds - (self.renewed_seconds_ago() or 0.0)
            await asyncio.sleep(max(0.0, min(self._timing.retry_seconds, left)))
            for _ in range(2):
                try:
                    await self._renew(self._epoch)
                except Conflict:
                    continue  # still ours, `_renew` has looked, at another resourceVersion: repeat at once
                except ApiError as error:
                    self.last_error = error
                break

    async def step_up(self, seen: int) -> int:
        """Make our epoch higher than `seen`, in the Lease first, and return it.

        For operator epochs found in objects or in an agent's Hello. Does nothing when it is higher already.
        Raises ApiError when the Lease could not be written: the epoch has not changed then, try again.
        """
        while seen >= self._epoch:
            try:
                await self._renew(seen + 1)
            except Conflict:
                continue
        return self._epoch

    async def release(self) -> None:
        """Give the Lease back, for a clean exit after the last write; one try, else it runs out."""
        self._guard.stop()
        async with self._lock:
            held, self._renewed_at = self.holds(), None
            if not held or self._lease is None:
                return
            manifest = self._new_claim(self._epoch).released(self._lease)
            try:
                await self._replace(manifest)
            except ApiError as error:
                self.last_error = error

    async def _claim(self, lease: Obj | None) -> None:
        sent = self._clock()
        known = LeaseRecord.of(lease).epoch if lease is not None else 0
        claim = self._new_claim(max(known, self._epoch) + 1)
        manifest = claim.manifest(self._name, self._namespace, lease)
        if lease is None:
            seconds = self._request_seconds()
            answer = await create(self._rest, LEASES, manifest, manager=_MANAGER, timeout_seconds=seconds)
        else:
            answer = await self._replace(manifest)
        self._written(answer, claim.epoch, sent)

    async def _renew(self, epoch: int) -> None:
        """One renewal. Raises Conflict when it has to be repeated, ApiError when it may be repeated later."""
        async with self._lock:
            sent = self._clock()
            if self._lease is None or self._renewed_at is None or not self.holds():
                age = self.renewed_seconds_ago()
                raise self._lost(f"not renewed for {age or 0.0:.1f} s; last error: {self.last_error}")
            # An earlier write whose answer was lost may have raised the epoch; it never falls.
            claim = self._new_claim(max(epoch, self._epoch, LeaseRecord.of(self._lease).epoch))
            try:
                answer = await self._replace(claim.manifest(self._name, self._namespace, self._lease))
            except Conflict:
                await self._look()
                raise
            except Gone as error:
                raise self._lost("it was deleted") from error
            self._written(answer, claim.epoch, sent)

    async def _look(self) -> None:
        """After a lost compare-and-swap: still our Lease?"""
        lease = await find(self._rest, self._target, timeout_seconds=self._request_seconds())
        holder = LeaseRecord.of(lease).holder if lease is not None else "nobody: it was deleted"
        if lease is None or holder != self._me:
            raise self._lost(f"it is held by {holder or 'nobody'}")
        self._lease = lease

    async def _replace(self, manifest: Obj) -> Obj:
        seconds = self._request_seconds()
        return await replace(self._rest, LEASES, manifest, manager=_MANAGER, timeout_seconds=seconds)

    def _written(self, answer: Obj, epoch: int, sent: float) -> None:
        self._lease, self._epoch, self._renewed_at = answer, epoch, sent
        self.last_error = None
        # Halfway between the time we stop by ourselves and the time another may start.
        self._guard.move(sent + (self._timing.renew_seconds + self._timing.duration_seconds) / 2)

    def _request_seconds(self) -> float:
        """Deadline of one request: half of the time to renew, less when the renewal is overdue."""
        longest = self._timing.renew_seconds / 2
        if self._renewed_at is None:
            return longest
        left = self._renewed_at + self._timing.renew_seconds - self._clock()
        return max(0.001, min(longest, left))

    def _new_claim(self, epoch: int) -> Claim:
        return Claim(self._me, epoch, utc_now(), self._timing)

    def _lost(self, reason: str) -> LeadershipLost:
        self._renewed_at = None
        self._guard.stop()
        text = f"Lease {self._namespace}/{self._name} is lost: {reason}"
        self._on_lost(text)
        return LeadershipLost(text)
