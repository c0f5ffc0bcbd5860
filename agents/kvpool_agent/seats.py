"""Which engine sits on which seat, and when a seat may be called released. No I/O; time is not needed.

Level-triggered: plan, stand and engines are set as they come, `settle` returns what to tell whom. What must
outlive the agent is in `SeatRecord`s, which the caller puts on the disk before it sends anything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from kvpool.api.supernode import FenceLevel
from kvpool.rules.lease import Stand
from kvpool_agent.devices.base import NOBODY_KNOWS
from kvpool_agent.processes import ProcessId
from kvpool_agent.timing import MOST_RELEASED_SEATS

SeatKey = tuple[str, int]
"""Slot (namespace/name) and epoch."""


@dataclass(frozen=True)
class PlannedSeat:
    """A seat of the plan: claim and slot agree that this node serves the slot under this epoch."""

    slot: str
    epoch: int
    devices: tuple[str, ...]
    pod_uid: str = ""
    """Of the engine that is to sit there; empty lets the devices decide."""


@dataclass(frozen=True)
class Engine:
    """An engine that is connected to the local API."""

    connection: int
    pod_uid: str
    pod_name: str
    endpoint: str
    devices: tuple[str, ...]
    standby: bool
    readiness: str
    guarded: bool
    process: ProcessId | None
    """None when its pid is of a namespace that the agent cannot see: then its end cannot be proven."""


class SeatState(StrEnum):
    """How an engine stands to a seat; see the wire's SeatState."""

    WAITING = "Waiting"
    ATTACHED = "Attached"
    STOPPING = "Stopping"
    RELEASED = "Released"


@dataclass(frozen=True)
class SeatRecord:
    """One slot under one epoch on this node."""

    slot: str
    epoch: Annotated[int, Field(ge=0, le=2**63 - 1)]
    devices: tuple[str, ...]
    state: SeatState = SeatState.WAITING
    told: bool = False
    """Whether an engine was ever told to serve under this epoch and has not confirmed that it stopped."""
    pod_uid: str = ""
    pod_name: str = ""
    endpoint: str = ""
    process: ProcessId | None = None
    reason: str = ""
    held_by: str = ""
    """Released, but this pod holds the seat's devices and never spoke on the local API: it may serve on.
    NOBODY_KNOWS while the devices cannot be asked about.
    """

    @property
    def key(self) -> SeatKey:
        """Slot and epoch."""
        return self.slot, self.epoch

    @property
    def fence_level(self) -> FenceLevel:
        """How surely whoever served is out; see the wire's SeatReport."""
        proven = self.state is SeatState.RELEASED and not self.held_by
        return FenceLevel.PROCESS if proven else FenceLevel.CONTENT_ONLY


class Verb(StrEnum):
    """What an engine is told."""

    SERVE = "Serve"
    STOP = "Stop"


@dataclass(frozen=True)
class Command:
    """One message to one engine."""

    connection: int
    verb: Verb
    slot: str
    epoch: int
    devices: tuple[str, ...] = ()
    reason: str = ""


@dataclass
class SeatBook:
    """All seats of the node. After every change call `settle`."""

    records: dict[SeatKey, SeatRecord] = field(default_factory=dict)
    engines: dict[int, Engine] = field(default_factory=dict)
    holders: Mapping[str, str] | None = field(default_factory=dict)
    """Device to the UID, or namespace/name, of the pod that holds it; None before anybody first said so."""
    unasked: frozenset[str] = frozenset()
    """Devices that nobody can be asked about now."""
    stand: Stand = Stand.SERVING_ON
    hold: bool = True
    _planned: dict[SeatKey, PlannedSeat] | None = None
    """None before the first plan of this agent's life: then nothing is started or stopped for its sake."""
    _sent: set[tuple[int, Verb, str, int]] = field(default_factory=set)
    _strays: set[tuple[int, str, int]] = field(default_factory=set)
    """Connections that serve a seat on which another engine sits, with slot and epoch."""

    @property
    def unplanned(self) -> int:
        """How many seats outside the plan an engine serves or has to stop."""
        return sum(
            record.told and record.key not in (self._planned or {}) for record in self.records.values()
        )

    def plan(self, seats: Iterable[PlannedSeat], *, hold: bool) -> None:
        """Take a new plan."""
        self._planned = {(seat.slot, seat.epoch): seat for seat in seats}
        self.hold = hold
        for key, seat in self._planned.items():
            record = self.records.get(key)
            if record is None:
                self.records[key] = SeatRecord(seat.slot, seat.epoch, seat.devices)
            elif record.state is SeatState.RELEASED:
                # Released was said when the plan had let go of it; named again, it starts from nothing.
                self.records[key] = SeatRecord(seat.slot, seat.epoch, seat.devices)
        self._drop_old_released()

    def register(self, engine: Engine, slot: str, epoch: int) -> None:
        """Take an engine that connected and says what it serves as already (an empty slot for nothing)."""
        for other in [e for e in self.engines.values() if _is_same(e, engine.pod_uid, engine.process)]:
            self.left(other.connection)
        self.engines[engine.connection] = engine
        if not slot:
            self._serves_nothing(engine)
            return
        record = self.records.get((slot, epoch)) or SeatRecord(slot, epoch, engine.devices)
        if record.told and not _is_same(engine, record.pod_uid, record.process):
            self._strays.add((engine.connection, slot, epoch))
            return
        attached = record.state in (SeatState.WAITING, SeatState.ATTACHED)
        self.records[record.key] = _seated(
            record, engine, SeatState.ATTACHED if attached else SeatState.STOPPING
        )

    def attached(self, connection: int, slot: str, epoch: int) -> None:
        """Take an engine's word that it serves."""
        record, engine = self.records.get((slot, epoch)), self.engines.get(connection)
        if record is None or engine is None or not _is_same(engine, record.pod_uid, record.process):
            return
        if record.state is SeatState.WAITING:
            self.records[record.key] = dataclasses.replace(record, state=SeatState.ATTACHED)

    def stopped(self, connection: int, slot: str, epoch: int) -> None:
        """Take an engine's word that it serves nothing under that epoch any more."""
        record, engine = self.records.get((slot, epoch)), self.engines.get(connection)
        self._strays.discard((connection, slot, epoch))
        if record and engine and record.told and _is_same(engine, record.pod_uid, record.process):
            self.records[record.key] = self._ended(record, "the engine confirmed that it stopped")
            if not any(other.told and other.pod_uid == engine.pod_uid for other in self.records.values()):
                # It waits for a seat now, whatever it was when it registered.
                self.engines[connection] = dataclasses.replace(engine, standby=True)
        self._sent = {sent for sent in self._sent if sent[0] != connection or sent[2:] != (slot, epoch)}

    def left(self, connection: int) -> None:
        """An engine's connection ended. It may serve on: nothing is concluded."""
        self.engines.pop(connection, None)
        self._sent = {sent for sent in self._sent if sent[0] != connection}
        self._strays = {stray for stray in self._strays if stray[0] != connection}

    def watched(self) -> dict[SeatKey, ProcessId]:
        """Processes whose end would free a seat: those of engines that are not connected."""
        return {
            key: record.process
            for key, record in self.records.items()
            if record.told and record.process is not None and self._engine_of(record) is None
        }

    def process_gone(self, key: SeatKey) -> None:
        """An engine's process is proven to have ended."""
        self.records[key] = self._ended(self.records[key], "the engine's process ended")

    def settle(self) -> tuple[Command, ...]:
        """Move every record as far as it can go; return what has to be told, each thing once a connection."""
        commands: list[Command] = []
        for key in sorted(self.records):
            record = self._held(self._moved(self.records[key]))
            self.records[key] = record
            command = self._command(record)
            if command is not None and _sent_key(command) not in self._sent:
                self._sent.add(_sent_key(command))
                commands.append(command)
        for connection, slot, epoch in sorted(self._strays):
            stop = Command(connection, Verb.STOP, slot, epoch, reason="another engine sits on this seat")
            if _sent_key(stop) not in self._sent:
                self._sent.add(_sent_key(stop))
                commands.append(stop)
        return tuple(commands)

    def unsent(self, commands: Iterable[Command]) -> None:
        """Take back what `settle` returned but could not be told: it comes again."""
        self._sent.difference_update(map(_sent_key, commands))

    def _moved(self, record: SeatRecord) -> SeatRecord:
        planned = self._is_planned(record)
        if record.state is SeatState.ATTACHED and not (planned and self.stand.serves):
            why = "the node's lease ran out" if planned else "the seat left the plan"
            return dataclasses.replace(record, state=SeatState.STOPPING, reason=why)
        if record.state is SeatState.WAITING and not planned:
            if not record.told:
                return dataclasses.replace(
                    record,
                    state=SeatState.RELEASED,
                    reason="no engine was told to serve under it",
                    held_by=NOBODY_KNOWS,
                )
            return dataclasses.replace(record, state=SeatState.STOPPING, reason="the seat left the plan")
        if record.state is SeatState.WAITING and not record.told and self._may_start():
            engine = self._choose(record)
            return record if engine is None else _seated(record, engine, SeatState.WAITING)
        return record

    def _held(self, record: SeatRecord) -> SeatRecord:
        """Note who may serve on a released seat without having been told on the local API.

        An engine that was told ended the seat itself; one that waits here serves nothing but what it is told.
        """
        if record.state is not SeatState.RELEASED or record.pod_uid or self.holders is None:
            return record
        known = {name for e in self.engines.values() for name in (e.pod_uid, e.pod_name)}
        known |= {name for r in self.records.values() if r.told for name in (r.pod_uid, r.pod_name)}
        holders = {
            NOBODY_KNOWS if device in self.unasked else self.holders.get(device, "")
            for device in record.devices
        } - known
        holders.discard("")
        return dataclasses.replace(record, held_by=min(holders, default=""))

    def _command(self, record: SeatRecord) -> Command | None:
        engine = self._engine_of(record) if record.told else None
        if engine is None:
            return None
        if record.state is SeatState.WAITING and self._may_start():
            return Command(engine.connection, Verb.SERVE, record.slot, record.epoch, record.devices)
        if record.state is SeatState.STOPPING:
            return Command(engine.connection, Verb.STOP, record.slot, record.epoch, reason=record.reason)
        return None

    def _is_planned(self, record: SeatRecord) -> bool:
        """Whether the record may be served; before the first plan, what was served may be."""
        return self._planned is None or record.key in self._planned

    def _may_start(self) -> bool:
        return self._planned is not None and self.stand is Stand.HELD and not self.hold

    def _serves_nothing(self, engine: Engine) -> None:
        """An engine registers without a slot. It may be about to take one, so this proves no stop."""
        for record in list(self.records.values()):
            attached = record.told and record.state is SeatState.ATTACHED
            if attached and _is_same(engine, record.pod_uid, record.process):
                self.records[record.key] = dataclasses.replace(record, state=SeatState.WAITING)

    def _ended(self, record: SeatRecord, reason: str) -> SeatRecord:
        """Whoever served under the record's epoch does not any more."""
        if record.state is SeatState.RELEASED:
            return record
        if self._planned is not None and record.key in self._planned:
            return SeatRecord(record.slot, record.epoch, record.devices, reason=reason)
        if self._planned is None and record.state is not SeatState.STOPPING:
            return SeatRecord(record.slot, record.epoch, record.devices, reason=reason)
        return dataclasses.replace(record, state=SeatState.RELEASED, told=False, reason=reason)

    def _choose(self, record: SeatRecord) -> Engine | None:
        """Pick the engine for a seat: the one the plan names, else the one that holds exactly its devices."""
        assert self._planned is not None
        seat = self._planned[record.key]
        busy = {other.pod_uid for other in self.records.values() if other.told}
        free = [engine for engine in self.engines.values() if engine.pod_uid not in busy]
        if seat.pod_uid:
            return next((engine for engine in free if engine.pod_uid == seat.pod_uid), None)
        wanted = set(seat.devices)
        fitting = [engine for engine in free if wanted and wanted <= self._devices_of(engine)]
        return min(fitting, key=lambda e: (len(self._devices_of(e)), e.pod_uid), default=None)

    def _devices_of(self, engine: Engine) -> set[str]:
        names = {engine.pod_uid, engine.pod_name} - {""}
        held = {device for device, pod in (self.holders or {}).items() if pod in names}
        return held | set(engine.devices)

    def _engine_of(self, record: SeatRecord) -> Engine | None:
        """Return the connected engine that sits on the seat: the same process, not just the same pod."""
        same = (e for e in self.engines.values() if _is_same(e, record.pod_uid, record.process))
        return next(same, None)

    def _drop_old_released(self) -> None:
        """Forget released seats of which a later epoch is planned here, and the oldest beyond the bound."""
        newest: dict[str, int] = {}
        for slot, epoch in self._planned or {}:
            newest[slot] = max(epoch, newest.get(slot, 0))
        released = [r for r in self.records.values() if r.state is SeatState.RELEASED]
        released.sort(key=lambda record: record.epoch)
        surplus = len(released) - MOST_RELEASED_SEATS
        for number, record in enumerate(released):
            if number < surplus or newest.get(record.slot, 0) > record.epoch:
                del self.records[record.key]


def _seated(record: SeatRecord, engine: Engine, state: SeatState) -> SeatRecord:
    return dataclasses.replace(
        record,
        state=state,
        told=True,
        pod_uid=engine.pod_uid,
        pod_name=engine.pod_name,
        endpoint=engine.endpoint,
        process=engine.process,
    )


def _is_same(engine: Engine, pod_uid: str, process: ProcessId | None) -> bool:
    return engine.pod_uid == pod_uid and engine.process == process


def _sent_key(command: Command) -> tuple[int, Verb, str, int]:
    return command.connection, command.verb, command.slot, command.epoch
