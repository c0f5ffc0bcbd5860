"""One keeper's life: wait for the spec, allocate, mount, watch, give back. A tick does at most one step."""

from __future__ import annotations

import asyncio
import dataclasses
import fcntl
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import structlog

from kvpool_keeper import contract, deadline
from kvpool_keeper.contract import (
    ContractError,
    KeeperPhase,
    KeeperSpec,
    KeeperStatus,
    LeaseFile,
    Release,
    boottime_ns,
)
from kvpool_keeper.master_admin import AdminError
from kvpool_keeper.membership import Loss, Membership
from kvpool_keeper.segment import Segment, SegmentError, allocate
from kvpool_keeper.store import StoreError

log = structlog.get_logger()

TICK_SECONDS = 0.2
HEARTBEAT_SECONDS = 1.0
LOOK_SECONDS = 1.0
MOUNT_RETRY_SECONDS = 1.0
ALLOCATE_RETRY_SECONDS = 30.0
UNDRAINED_GRACE_SECONDS = 5
NANOSECONDS = 1_000_000_000


class Keeper:
    """Holds the unit of one directory until it is told to give it back, or a signal ends it.

    It never ends because the agent is gone. `run` returns when the unit was given back.
    """

    def __init__(self, unit_directory: Path, address: str, drain_seconds: float) -> None:
        self._directory = unit_directory
        self._address = address
        self._drain_seconds = drain_seconds
        self._boot_id = contract.boot_id()
        self._spec: KeeperSpec | None = None
        self._lease: LeaseFile | None = None
        self._heard = deadline.GroupWords()
        self._segment: Segment | None = None
        self._membership: Membership | None = None
        self._loss = Loss()
        self._phase = KeeperPhase.WAITING
        self._prepared_bytes = 0
        self._error = ""
        self._orders_error = ""
        self._write_trouble = ""
        self._lock: int | None = None
        self._waits = False
        self._next_try_ns: dict[str, int] = {}
        self._drain_until_ns = 0
        self._signals = 0

    def end(self) -> None:
        """Ask for an orderly end; a second time, do not wait for a drain."""
        self._signals += 1

    async def run(self) -> None:
        """Live. A directory that cannot be written never ends the keeper: it holds on and tries again."""
        # It is the agent's to make; made here, it would come back after a release and stay for ever.
        while not self._directory.is_dir():
            if self._signals:
                return
            await asyncio.sleep(TICK_SECONDS)
        while not self._is_the_only_one():
            if self._signals:
                return
            await asyncio.sleep(TICK_SECONDS)
        self._read_previous_life()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._heart()), group.create_task(self._listen())]
            while not await self._tick_on():  # noqa: ASYNC110 - orders are files: no event tells of a change
                await asyncio.sleep(TICK_SECONDS)
            for task in tasks:
                task.cancel()
        self._write_status()

    def _is_the_only_one(self) -> bool:
        """Take the directory: two keepers would show two lives in one status. The lock ends with the process.

        A second keeper waits in silence; the first one's memory is not to be taken twice.
        """
        try:
            if self._lock is None:
                self._lock = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if not os.path.samestat(os.fstat(self._lock), self._directory.stat()):
                os.close(self._lock)  # removed and made anew while this keeper waited
                self._lock = None
                return False
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not self._waits:
                log.warning("another keeper has this unit; waiting for its end")
            self._waits = True
            return False
        except FileNotFoundError:
            return False
        except OSError as error:  # a filesystem without locks: the one on the segment has to do
            log.warning("the unit's directory cannot be locked", error=str(error))
        return True

    @property
    def status(self) -> KeeperStatus:
        """What the keeper holds now."""
        member = self._membership
        return KeeperStatus(
            boot_id=self._boot_id,
            pid=os.getpid(),
            phase=self._phase,
            heartbeat_boottime_ns=boottime_ns(),
            generation=self._spec.generation if self._spec else 0,
            release=self._spec.release if self._spec else Release.NONE,
            prepared_bytes=self._prepared_bytes,
            resident_bytes=self._segment.resident_bytes() if self._segment else 0,
            used_bytes=member.used_bytes if member else None,
            used_at_boottime_ns=member.used_at_boottime_ns if member else 0,
            segment=member.segment if member else "",
            te_endpoint=member.te_endpoint if member else "",
            mounted=member is not None,
            contents_lost_count=self._loss.count,
            contents_lost_boottime_ns=self._loss.at_boottime_ns,
            contents_lost_reason=self._loss.reason,
            error=self._orders_error or self._error,
        )

    def _read_previous_life(self) -> None:
        """Carry on the count of losses; a predecessor that was killed while mounted lost its objects."""
        try:
            previous = contract.read_file(self._directory / contract.STATUS_FILE, KeeperStatus)
        except ContractError as error:
            log.warning("previous status is unreadable", error=str(error))
            return
        if previous is None or previous.boot_id != self._boot_id:
            return
        self._loss = Loss(
            previous.contents_lost_count, previous.contents_lost_boottime_ns, previous.contents_lost_reason
        )
        if previous.mounted and previous.used_bytes != 0:
            self._lose(f"keeper pid {previous.pid} ended without unmounting")

    async def _heart(self) -> None:
        while True:
            self._write_status()
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _listen(self) -> None:
        """Keep the guard group's words fresh while they matter."""
        while True:
            lease, now = self._lease, boottime_ns()
            if self._spec and lease and deadline.must_ask_peers(self._spec, lease, now):
                words = await deadline.hear_peers(lease, now)
                self._heard = self._heard.heard(lease, words, boottime_ns())
            await asyncio.sleep(TICK_SECONDS)

    async def _tick_on(self) -> bool:
        """Tick; what nobody expected is shown and tried again, since a keeper's end costs all objects."""
        try:
            return await self._tick()
        except Exception as error:  # a keeper that ends loses all objects: it is shown, and tried again
            trouble = f"{type(error).__name__}: {error}"
            if trouble != self._error:
                log.exception("tick failed, holding on")
            self._error = trouble
            return False

    async def _tick(self) -> bool:
        """Do the next step; True when there is nothing left to do ever."""
        self._read_orders()
        if self._signals or (self._spec is not None and self._spec.release is not Release.NONE):
            return await self._give_back()
        if self._spec is None:
            return False
        if self._segment is None:
            await self._step("allocate", ALLOCATE_RETRY_SECONDS, self._allocate(self._spec))
            return False
        may_be_mounted = deadline.may_be_mounted(
            self._spec, self._lease, boottime_ns(), self._boot_id, self._heard
        )
        if self._membership is not None and not may_be_mounted:
            await self._leave_at_deadline(self._membership)
        elif self._membership is not None:
            await self._step("look", LOOK_SECONDS, self._look(self._membership))
        elif self._spec.mooncake is not None and may_be_mounted:
            await self._step("mount", MOUNT_RETRY_SECONDS, self._mount(self._segment))
        return False

    async def _step(self, name: str, every_seconds: float, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` unless it ran less than `every_seconds` ago; a change of phase shows at once."""
        if boottime_ns() < self._next_try_ns.get(name, 0):
            work.close()
            return
        before = self._phase
        await work
        self._next_try_ns[name] = boottime_ns() + int(every_seconds * NANOSECONDS)
        if self._phase is not before:
            log.info("phase", phase=self._phase, error=self._error)
            self._write_status()

    def _read_orders(self) -> None:
        """Read spec and lease; an unreadable file keeps the last one, and shows in the status."""
        try:
            spec = contract.read_file(self._directory / contract.SPEC_FILE, KeeperSpec)
            lease = contract.read_file(self._directory / contract.LEASE_FILE, LeaseFile)
        except ContractError as error:
            self._orders_error = str(error)
            return
        self._lease = lease or self._lease
        if spec is not None:
            self._orders_error = self._take(spec)

    def _take(self, spec: KeeperSpec) -> str:
        """Follow the spec as far as it can be followed; returns what is wrong with it."""
        held = self._spec
        if spec.boot_id not in ("", self._boot_id):
            return "the spec is of an earlier boot, its memory is gone; waiting for the agent's new one"
        if held is None or self._segment is None:
            if spec != held:
                self._next_try_ns.pop("allocate", None)
            self._spec = spec
            return ""
        self._spec = dataclasses.replace(
            held, release=spec.release, unmount_at_deadline=spec.unmount_at_deadline
        )
        if self._spec != spec:
            return f"generation {held.generation} is held and cannot change its shape; end this keeper"
        return ""

    async def _allocate(self, spec: KeeperSpec) -> None:
        self._phase, self._error = KeeperPhase.ALLOCATING, ""
        self._write_status()
        path = spec.file_path(self._directory)
        memory = self._directory / contract.MEMORY_FOLDER
        if path.parent == memory and not memory.is_mount():
            self._phase, self._error = KeeperPhase.FAILED, f"{memory}: nothing is mounted there"
            return

        def progress(done_bytes: int) -> None:
            self._prepared_bytes = done_bytes

        try:
            self._segment = await asyncio.to_thread(
                allocate,
                path,
                spec.size_bytes,
                adopt=spec.adopt,
                prefault=spec.prefault,
                progress=progress,
            )
        except SegmentError as error:
            self._phase, self._error, self._prepared_bytes = KeeperPhase.FAILED, str(error), 0
            return
        self._phase = KeeperPhase.READY if spec.mooncake is None else KeeperPhase.MOUNTING

    async def _mount(self, segment: Segment) -> None:
        assert self._spec is not None
        assert self._spec.mooncake is not None
        self._phase = KeeperPhase.MOUNTING
        try:
            member = Membership(self._spec.mooncake, self._address)
            await member.join(segment.path, segment.size_bytes)
        except StoreError as error:
            self._error = str(error)
            return
        self._membership, self._phase, self._error = member, KeeperPhase.READY, ""

    async def _look(self, member: Membership) -> None:
        try:
            lost = await member.look(boottime_ns())
        except AdminError as error:
            self._error = str(error)
            return
        self._error = ""
        if lost:
            self._lose(lost)

    async def _leave_at_deadline(self, member: Membership) -> None:
        """Unmount now: the lease ran out and the guard group does not say that it lost its leases too."""
        self._membership = None
        self._phase = KeeperPhase.MOUNTING
        self._error = "the node's lease ran out: unmounted, to be mounted again under a new lease"
        if member.used_bytes != 0:
            self._lose("unmounted at the lease's deadline")
        await member.leave(0)
        log.warning("unmounted at the deadline")
        self._write_status()

    async def _give_back(self) -> bool:
        """Drain, unmount with grace and close, over several ticks; True when all is done."""
        member, now = self._membership, boottime_ns()
        wants_drain = self._signals == 1 or (
            not self._signals and self._spec is not None and self._spec.release is Release.DRAIN
        )
        if member is not None and wants_drain and not self._drain_until_ns:
            self._drain_until_ns = now + int(self._drain_seconds * NANOSECONDS)
            self._phase = KeeperPhase.DRAINING
            self._write_status()
            if await member.start_drain():
                return False
        if member is not None:
            running, moved = await member.drain_state() if wants_drain else (False, False)
            if running and now < self._drain_until_ns:
                return False
            await self._leave(member, moved=moved, grace=wants_drain)
        if self._segment is not None:
            self._segment.close()
            self._segment = None
        self._phase = KeeperPhase.STOPPED if self._signals else KeeperPhase.RELEASED
        log.info("phase", phase=self._phase)
        return True

    async def _leave(self, member: Membership, *, moved: bool, grace: bool) -> None:
        self._membership = None
        if not moved and member.used_bytes != 0:
            self._lose(
                f"unmounted before all objects were moved: {member.drain_trouble or 'no time to drain'}"
            )
        await member.leave(UNDRAINED_GRACE_SECONDS if grace and not moved and member.used_bytes != 0 else 0)

    def _lose(self, reason: str) -> None:
        self._loss = Loss(self._loss.count + 1, boottime_ns(), reason)
        log.warning("store contents lost", reason=reason)

    def _write_status(self) -> None:
        """Show what is held. On a full disk the heartbeat goes silent, but the memory stays."""
        trouble = ""
        try:
            contract.write_file(self._directory / contract.STATUS_FILE, self.status)
        except OSError as error:
            trouble = str(error)
        if trouble != self._write_trouble:
            self._write_trouble = trouble
            if trouble:
                log.warning("status cannot be written; holding on and trying again", error=trouble)
            else:
                log.info("status is written again")
