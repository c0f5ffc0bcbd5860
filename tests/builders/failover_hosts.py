"""A model host for failover tests: its agent and its engines, and so the truth about who serves what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kvpool.model.ids import ObjectKey
from kvpool.model.nodeplan import NodePlanData
from kvpool.model.observations import EvidenceView, PodFact, SeatPhase

START = 1000.0
"""Monotonic seconds at which every world begins."""


@dataclass
class Engine:
    """An engine process. It serves while it has a seat."""

    pod: PodFact
    devices: tuple[str, ...]
    seat: tuple[ObjectKey, int] | None = None


@dataclass
class Host:
    """A host, its agent and its engines: the truth."""

    name: str
    board: str
    rack: str
    devices: dict[str, list[EvidenceView]]
    uuids: dict[str, str]
    engines: list[Engine] = field(default_factory=list)
    held_by: dict[str, str] = field(default_factory=dict)
    """Devices to other holders than engines."""
    alive: bool = True
    agent_up: bool = True
    boot: int = 1
    hello_at: float = START
    granted_at: float | None = None
    leaving_until: float | None = None
    plan: NodePlanData | None = None
    plan_revision: int = 0
    applied_revision: int = 0
    seats: dict[tuple[ObjectKey, int], SeatPhase] = field(default_factory=dict)
    highest_operator_epoch: int = 0
    stops: bool = True
    """False: an engine that ignores being told to stop."""

    def serving(self) -> Iterable[tuple[ObjectKey, int]]:
        return [engine.seat for engine in self.engines if self.alive and engine.seat is not None]

    def work(self) -> None:
        """Carry out the newest plan."""
        if not (self.alive and self.agent_up) or self.plan is None:
            return
        wanted = {(seat.slot, seat.epoch): seat for seat in self.plan.seats}
        for engine in self.engines:
            if engine.seat is not None and engine.seat not in wanted:
                if not self.stops:
                    self.seats[engine.seat] = SeatPhase.STOPPING
                    continue
                self.seats[engine.seat] = SeatPhase.RELEASED
                engine.seat = None
        for known, phase in self.seats.items():
            if known not in wanted and phase is SeatPhase.WAITING:
                self.seats[known] = SeatPhase.RELEASED
        for key, seat in wanted.items():
            assert self.seats.get(key) is not SeatPhase.RELEASED, (
                f"{self.name}: {key} was released, and is back"
            )
            if any(engine.seat == key for engine in self.engines):
                continue
            free = [e for e in self.engines if e.seat is None and set(e.devices) == set(seat.devices)]
            self.seats[key] = SeatPhase.ATTACHED if free else SeatPhase.WAITING
            if free:
                free[0].seat = key
        self.applied_revision = self.plan_revision

    def stop_engines(self) -> None:
        """The lease's deadline, or the end of the host: nothing serves until a new plan says so."""
        for engine in self.engines:
            if engine.seat is not None:
                self.seats[engine.seat] = SeatPhase.WAITING
                engine.seat = None
        self.plan = None

    def reboot(self, now: float) -> None:
        self.stop_engines()
        self.alive = self.agent_up = True
        self.boot += 1
        self.hello_at = now
        self.granted_at = None
