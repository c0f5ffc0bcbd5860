"""Events for people: deduplicated, rate limited, and posted aside, after the status write they tell of.

`record` never waits and never fails; `run` posts. An event is a help for people and no state: when the API
does not take it, it is dropped and counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import uuid4

from kvpool.cluster.errors import ApiError
from kvpool.cluster.lease import utc_now
from kvpool.cluster.resources import EVENTS, Obj
from kvpool.cluster.rest import Rest
from kvpool.cluster.writes import create

NOTE_LIMIT_BYTES = 1024
"""The API refuses longer notes."""
_QUEUE_LIMIT = 1000
_REMEMBERED_NOTES = 10_000
_MANAGER = "kvpool-events"


class Severity(StrEnum):
    """The two types of events that the API knows."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Outcome(StrEnum):
    """What became of an event; for metrics."""

    POSTED = "posted"
    REPEATED = "repeated"
    LIMITED = "limited"
    OVERFLOWED = "overflowed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is posted: the same event once in `repeat_seconds`, `burst` at once, then `per_second`."""

    repeat_seconds: float = 120.0
    burst: int = 50
    per_second: float = 1.0


class EventGate:
    """Which events are posted: pure, time comes in as an argument."""

    def __init__(self, limits: Limits = Limits()) -> None:
        self._limits = limits
        self._posted_at: OrderedDict[tuple[str, ...], float] = OrderedDict()
        self._tokens = float(limits.burst)
        self._filled_at: float | None = None

    def admit(self, identity: tuple[str, ...], now: float) -> Outcome:
        """POSTED when the event may go out at `now` (monotonic seconds), else why it may not."""
        last = self._posted_at.get(identity)
        if last is not None and now - last < self._limits.repeat_seconds:
            return Outcome.REPEATED
        if self._filled_at is not None:
            refill = (now - self._filled_at) * self._limits.per_second
            self._tokens = min(float(self._limits.burst), self._tokens + refill)
        self._filled_at = now
        if self._tokens < 1.0:
            return Outcome.LIMITED
        self._tokens -= 1.0
        self._posted_at[identity] = now
        self._posted_at.move_to_end(identity)
        if len(self._posted_at) > _REMEMBERED_NOTES:
            self._posted_at.popitem(last=False)
        return Outcome.POSTED


class EventRecorder:
    """Posts events about objects under one reporting controller and instance.

    `on_outcome` is called for every event with what became of it; it must neither block nor raise.
    """

    def __init__(
        self,
        rest: Rest,
        *,
        controller: str,
        instance: str,
        limits: Limits = Limits(),
        on_outcome: Callable[[Outcome], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rest = rest
        self._controller = controller
        self._instance = instance
        self._gate = EventGate(limits)
        self._on_outcome = on_outcome
        self._clock = clock
        self._queue: asyncio.Queue[Obj] = asyncio.Queue(maxsize=_QUEUE_LIMIT)

    def record(
        self, about: Mapping[str, Any], severity: Severity, reason: str, note: str, *, action: str
    ) -> Outcome:
        """Queue an event about an object (its apiVersion, kind and metadata); call it after the status write.

        `reason` and `action` are CamelCase words of at most 128 characters, `note` a sentence; what is
        longer than the API takes is cut. Returns POSTED when it was queued, else why it was not.
        """
        metadata = about["metadata"]
        identity = (str(metadata.get("uid") or metadata["name"]), severity, reason, note)
        outcome = self._gate.admit(identity, self._clock())
        if outcome is Outcome.POSTED:
            event = event_about(about, severity, reason, note, action=action, at=utc_now())
            event |= {"reportingController": self._controller, "reportingInstance": self._instance}
            if not self._queue.full():
                self._queue.put_nowait(event)
                return outcome
            outcome = Outcome.OVERFLOWED
        self._tell(outcome)
        return outcome

    async def run(self) -> None:
        """Post what is queued until cancelled."""
        while True:
            event = await self._queue.get()
            try:
                await create(self._rest, EVENTS, event, manager=_MANAGER)
            except ApiError:
                self._tell(Outcome.FAILED)
            else:
                self._tell(Outcome.POSTED)
            finally:
                self._queue.task_done()

    async def drain(self, *, timeout_seconds: float) -> bool:
        """Wait until everything queued was tried, for a clean exit; False when that took too long."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._queue.join()
        except TimeoutError:
            return False
        return True

    def _tell(self, outcome: Outcome) -> None:
        if self._on_outcome is not None:
            self._on_outcome(outcome)


def event_about(
    about: Mapping[str, Any], severity: Severity, reason: str, note: str, *, action: str, at: datetime
) -> Obj:
    """The events.k8s.io/v1 Event without its reporter; events of cluster-scoped objects live in `default`."""
    metadata = about["metadata"]
    named = {name: metadata[name] for name in ("namespace", "name", "uid") if metadata.get(name)}
    regarding = {"apiVersion": about["apiVersion"], "kind": about["kind"], **named}
    return {
        "metadata": {
            # Names are at most 253 characters; the random part keeps two events apart.
            "name": f"{metadata['name'][:200]}.{uuid4().hex[:16]}",
            "namespace": metadata.get("namespace") or "default",
        },
        "eventTime": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": str(severity),
        "reason": reason[:128],
        "action": action[:128],
        "note": cut(note, NOTE_LIMIT_BYTES),
        "regarding": regarding,
    }


def cut(text: str, limit_bytes: int) -> str:
    """The text, or as much of it as fits into `limit_bytes` of UTF-8 with an ellipsis at its end."""
    encoded = text.encode()
    if len(encoded) <= limit_bytes:
        return text
    return encoded[: limit_bytes - 3].decode(errors="ignore") + "…"
