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
    """How long the master was not heard lately, and what it had said before: that may be forgotten now."""

    seconds: float = 0.0
    ended_boottime_ns: int = 0
    before: Reading | None = None

    def take(self, last: Reading, silent_seconds: float, now_boottime_ns: int) -> None:
        """Note how long it was silent before the look of `now_boottime_ns`; a silence ages out.

        Of silences close to each other the longest counts, and the most that was there before one of them.
        """
        is_over = now_boottime_ns - self.ended_boottime_ns > REMOUNT_SECONDS * NANOSECONDS
        if silent_seconds > SILENT_SECONDS:
            past = None if is_over else self.before
            self.seconds = max(silent_seconds, self.seconds if past else 0.0)
            self.before = last if past is None else most_of(past, last)
            self.ended_boottime_ns = now_boottime_ns
        elif is_over:
            self.forget()

    def forget(self) -> None:
        """What this silence led to was told."""
        self.seconds, self.before = 0.0, None


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
        last, self._last = self._last, reading
        if self.used_at_boottime_ns:
            silent_seconds = (now_boottime_ns - self.used_at_boottime_ns) / NANOSECONDS
            self._silence.take(last, silent_seconds, now_boottime_ns)
        self.used_bytes = reading.used_bytes
        self.used_at_boottime_ns = now_boottime_ns
        why = self._why_forgotten(last, reading)
        if why:
            self._silence.forget()
        return why

    def _why_forgotten(self, last: Reading, reading: Reading) -> str:
        """Compare with the look before, and with the one before the silence: masters show old figures on."""
        looks = [look for look in (self._silence.before, last) if look is not None]
        if reading.pings < last.pings and any(look.used_bytes != 0 for look in looks):
            return f"master {self._master} was started anew and forgot all objects"
        if not any(is_forgotten(look, reading, self._silence.seconds) for look in looks):
            return ""
        if not self._silence.seconds:
            return f"master {self._master} does not know this segment any more, and forgot its objects"
        return (
            f"master {self._master} did not hear this segment for up to {self._silence.seconds:.0f} s, "
            "longer than its client_ttl, and forgot its objects"
        )

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


def most_of(one: Reading, other: Reading) -> Reading:
    """Return the most bytes of two readings of one master, and the fewest remounts."""
    return Reading(
        used_bytes=max(one.used_bytes or 0, other.used_bytes or 0),
        pings=max(one.pings, other.pings),
        remounts=min(one.remounts, other.remounts),
    )


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
