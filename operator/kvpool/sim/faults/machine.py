"""One host of a simulated domain: its accelerator, its engine and its agent."""

from dataclasses import dataclass, field

from kvpool.api.supernode import EvidenceClass
from kvpool.model.ids import ObjectKey
from kvpool.model.nodeplan import NodePlanData
from kvpool.model.observations import (
    AgentView,
    DeviceView,
    EngineView,
    EvidenceView,
    LeaseView,
    PeerWord,
    PodFact,
    SeatPhase,
    SeatView,
)

DEVICE = "acc-0"
LEASE_SECONDS = 10.0
SKEW_SECONDS = 1.0
FATAL_CODE = "79"
Seat = tuple[ObjectKey, int]


@dataclass
class Machine:
    """What is true of it, whatever the operator has heard. Times are seconds of the operator's clock."""

    name: str
    pod: PodFact
    """Of its engine, which serves when it has a seat and the device works."""
    is_standby: bool
    load_seconds: float
    """From being given a seat to serving it: weights are read, graphs are made."""
    hello_at: float
    granted_at: float
    alive: bool = True
    works: bool = True
    """Whether the accelerator does."""
    boot: int = 1
    evidence: list[EvidenceView] = field(default_factory=list)
    seat: Seat | None = None
    plan: NodePlanData | None = None
    plan_revision: int = 0
    applied_revision: int = 0
    seats: dict[Seat, SeatPhase] = field(default_factory=dict)
    _ready_at: dict[Seat, float] = field(default_factory=dict)

    @property
    def serves(self) -> ObjectKey | None:
        """The slot that its engine serves now."""
        return self.seat[0] if self.alive and self.works and self.seat is not None else None

    def work(self, now: float) -> None:
        """Carry out the newest plan, and renew the lease."""
        if not self.alive:
            if now >= self.granted_at + LEASE_SECONDS:
                self.stop()
            return
        self.granted_at = now
        if self.plan is None:
            return
        wanted = {(seat.slot, seat.epoch) for seat in self.plan.seats}
        if self.seat is not None and self.seat not in wanted:
            self.seats[self.seat] = SeatPhase.RELEASED
            self.seat = None
        for known, phase in self.seats.items():
            if known not in wanted and phase is SeatPhase.WAITING:
                self.seats[known] = SeatPhase.RELEASED
        for key in sorted(wanted):
            if self.seat is not None:
                continue
            ready_at = self._ready_at.setdefault(key, now + self.load_seconds)
            self.seats[key] = SeatPhase.WAITING
            if now >= ready_at and self.works:
                self.seat = key
                self.seats[key] = SeatPhase.ATTACHED
        self.applied_revision = self.plan_revision

    def stop(self) -> None:
        """Whatever ran has ended; nothing is served until a new plan says so."""
        if self.seat is not None:
            self.seats[self.seat] = SeatPhase.WAITING
            self.seat = None
        self.plan = None

    def break_device(self, now: float) -> None:
        """The accelerator dies, and the agent sees it."""
        self.works = False
        self.evidence.append(EvidenceView("simulation", FATAL_CODE, EvidenceClass.FATAL, 1, now, now, (now,)))

    def repair(self, now: float) -> None:
        """Device and host are as new; the host boots."""
        self.stop()
        self.evidence.clear()
        self._ready_at.clear()
        self.works = self.alive = True
        self.boot += 1
        self.hello_at = self.granted_at = now

    def view(self, now: float, revision: int, epoch: int, peers: tuple[PeerWord, ...]) -> AgentView:
        """What its agent reports."""
        engine = EngineView(
            pod_uid=self.pod.uid,
            pod_name=str(self.pod.key),
            endpoint=self.endpoint,
            devices=(DEVICE,),
            standby=self.is_standby,
            readiness="EngineReady",
            slot="",
            requests_running=0,
            hbm_kv_bytes=0,
        )
        return AgentView(
            node=self.name,
            boot_id=f"{self.name}-boot-{self.boot}",
            incarnation=1,
            agent_version="simulation",
            pod_uid=f"uid-agent-{self.name}",
            connected=True,
            hello_at=self.hello_at,
            reported_at=now,
            leaving_until=None,
            lease=LeaseView(self.granted_at, LEASE_SECONDS, SKEW_SECONDS),
            applied_revision=self.applied_revision,
            highest_operator_epoch=epoch,
            roster_revision=1,
            plan_revision=revision,
            seats=tuple(self._seat_view(key, phase) for key, phase in sorted(self.seats.items())),
            devices=(
                DeviceView(DEVICE, f"{self.name}-uuid", self.pod.uid, tuple(self.evidence), observed=True),
            ),
            engines=(engine,) if self.seat is None else (),
            peers=peers,
        )

    @property
    def endpoint(self) -> str:
        """Where its engine is reached."""
        return f"{self.pod.key.name}:8000"

    def _seat_view(self, key: Seat, phase: SeatPhase) -> SeatView:
        serving = self.seat == key
        return SeatView(
            slot=key[0],
            epoch=key[1],
            phase=phase,
            pod_uid=self.pod.uid if serving else "",
            pod_name=str(self.pod.key) if serving else "",
            endpoint=self.endpoint if serving else "",
            fence_level="Process",
        )
