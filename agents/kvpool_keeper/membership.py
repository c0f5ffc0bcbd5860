"""The keeper's side of the store: mounting, looking at used bytes, draining, and noticing lost contents."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from kvpool_keeper.contract import MooncakeMount
from kvpool_keeper.master_admin import (
    DRAIN_RUNS,
    DRAINED,
    AdminError,
    MasterAdmin,
    MasterHangsError,
    Reading,
)
from kvpool_keeper.store import StoreError, StoreMount

SILENT_SECONDS = 2.5
"""Longer than looks are apart, and no longer than one that failed. No sensible client_ttl is shorter."""
REMOUNT_SECONDS = 30.0
"""How long after a silence a remount still tells of it: before it, masters show what they forgot already."""
NANOSECONDS = 1_000_000_000


@dataclass
class Silence:
    """The last time that the master was not heard for long, for as long as that matters."""

    seconds: float = 0.0
    ended_boottime_ns: int = 0

    def lately(self, silent_seconds: float, now_boottime_ns: int) -> float:
        """Return the longest silence that a remount now may be the end of."""
        if silent_seconds > SILENT_SECONDS:
            self.seconds, self.ended_boottime_ns = silent_seconds, now_boottime_ns
        elif now_boottime_ns - self.ended_boottime_ns > REMOUNT_SECONDS * NANOSECONDS:
            return silent_seconds
        return max(silent_seconds, self.seconds)


@dataclass
class Loss:
    """How often, when and why objects in the unit were lost."""

    count: int = 0
    at_boottime_ns: int = 0
    reason: str = ""


class Membership:
    """One mounted segment and what its master says of it. All calls are made from one task."""

    def __init__(self, target: MooncakeMount, address: str) -> None:
        self._mount = StoreMount(target, address)
        self._admin = MasterAdmin(target.admin) if target.admin else None
        self._master = target.master
        self._last = Reading(used_bytes=0, pings=0)
        self._silence = Silence()
        self._job = ""
        self.segment = self._mount.segment
        self.te_endpoint = ""
        self.used_bytes: int | None = None
        self.used_at_boottime_ns = 0
        self.drain_trouble = ""

    async def join(self, path: Path, size_bytes: int) -> None:
        """Mount the file. Raises StoreError.

        A master that hangs is not joined: its client would block this whole process for half a minute.
        """
        if self._admin is not None:
            try:
                await asyncio.to_thread(self._admin.segments)
            except MasterHangsError as error:
                raise StoreError(f"master {self._master} hangs and is not joined: {error}") from error
            except AdminError:
                pass  # a wrong admin address costs the figures alone
        await asyncio.to_thread(self._mount.mount, path, size_bytes)

    async def look(self, now_boottime_ns: int) -> str:
        """Read used bytes; returns why the contents were lost since the last look, empty for "they were not".

        A master that does not answer leaves the last figure with its time. Raises AdminError.
        """
        if self._admin is None:
            return ""
        if not self.te_endpoint:
            rows = await asyncio.to_thread(self._admin.segments)
            self.te_endpoint = next((row.te_endpoint for row in rows if row.name == self.segment), "")
        reading = await asyncio.to_thread(self._admin.read, self.segment)
        silent_seconds = 0.0
        if self.used_at_boottime_ns:
            silent_seconds = self._silence.lately(
                (now_boottime_ns - self.used_at_boottime_ns) / NANOSECONDS, now_boottime_ns
            )
        had_objects = self.used_bytes != 0
        last, self._last = self._last, reading
        self.used_bytes = reading.used_bytes
        self.used_at_boottime_ns = now_boottime_ns
        if not had_objects:
            return ""
        if reading.pings < last.pings:
            return f"master {self._master} was started anew and forgot all objects"
        if is_forgotten(last, reading, silent_seconds):
            if silent_seconds <= SILENT_SECONDS:
                return f"master {self._master} does not know this segment any more, and forgot its objects"
            return (
                f"master {self._master} did not hear this segment for up to {silent_seconds:.0f} s, "
                "longer than its client_ttl, and forgot its objects"
            )
        return ""

    async def start_drain(self) -> bool:
        """Begin to move the objects to other segments; False when that cannot be, see `drain_trouble`."""
        if self._admin is None:
            self.drain_trouble = "the master's admin address is not known"
            return False
        try:
            rows = await asyncio.to_thread(self._admin.segments)
            targets = tuple(row.name for row in rows if row.name != self.segment and row.status == "OK")
            if not targets:
                self.drain_trouble = "the store has no other segment to move objects to"
                return False
            self._job = await asyncio.to_thread(self._admin.start_drain, self.segment, targets)
        except AdminError as error:
            self.drain_trouble = str(error)
            return False
        return True

    async def drain_state(self) -> tuple[bool, bool]:
        """Return (still running, everything moved); a master that does not answer counts as running."""
        if self._admin is None or not self._job:  # no drain was begun: there is none to wait for
            return False, False
        try:
            state = await asyncio.to_thread(self._admin.drain_state, self._job)
        except AdminError as error:
            self.drain_trouble = str(error)
            return True, False
        if state not in DRAIN_RUNS and state != DRAINED:
            self.drain_trouble = f"drain job {self._job} ended as {state}"
        return state in DRAIN_RUNS, state == DRAINED

    async def leave(self, grace_seconds: int) -> None:
        """Unmount, live through the grace, and close."""
        code = await asyncio.to_thread(self._mount.unmount, grace_seconds)
        if code == 0 and grace_seconds:
            await asyncio.sleep(grace_seconds)
        await asyncio.to_thread(self._mount.close)


def is_forgotten(last: Reading, now: Reading, silent_seconds: float) -> bool:
    """Whether the master dropped a segment that held objects, as it does with clients that it cannot hear.

    Either it does not know the segment now, or it was mounted anew since: then clients have remounted, and
    the segment holds less than before a silence. Less without a silence is what eviction and removal do.
    """
    if not last.used_bytes:
        return False
    if now.used_bytes is None:
        return True
    remounted = now.remounts > last.remounts and silent_seconds > SILENT_SECONDS
    return remounted and now.used_bytes < last.used_bytes
