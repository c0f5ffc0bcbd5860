"""What streams and neighbours say: observations with their time. Objects of the API are in `kvpool.api`."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kvpool.api.kvnode import UnitPhase
from kvpool.api.supernode import EvidenceClass
from kvpool.model.ids import ObjectKey

HOLDER_UNKNOWN: Final = "unknown"
"""Stands for the holder of a device that nobody can be asked about, or of which kubelet names several."""


@dataclass(frozen=True, slots=True)
class NodeFact:
    """A Kubernetes Node."""

    name: str
    uid: str
    labels: dict[str, str]
    ready: bool | None
    """None when the condition is absent or Unknown."""
    ready_since: float | None
    """Monotonic seconds at which `ready` was first seen as it is."""
    address: str
    allocatable_memory_bytes: int
    boot_id: str = ""


@dataclass(frozen=True, slots=True)
class PodFact:
    """A Pod, as far as kvpool cares."""

    key: ObjectKey
    uid: str
    labels: dict[str, str]
    node: str
    address: str
    phase: str
    ready: bool
    deleting: bool
    memory_request_bytes: int
    owner: str = ""
    """`Kind/name` of the controller."""
    resource_version: str = ""
    created_at: str = ""
    """RFC 3339; empty when unknown."""
    started_at: str = ""
    """RFC 3339 in UTC of the newest start of any of its containers that runs; empty when unknown."""
    has_one_container: bool = False
    """Whether that can be no side-car's start."""
    unschedulable: str = ""
    """Why the scheduler finds no place for it, in its own words; empty when it has one or did not say."""


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """Live evidence about a device; times are this process's monotonic seconds."""

    source: str
    code: str
    declared_class: EvidenceClass
    """The provider's own reading; the Supernode's table overrides it."""
    count: int
    first_seen: float
    last_seen: float
    recent: tuple[float, ...] = ()
    """The newest sightings, oldest first."""


@dataclass(frozen=True, slots=True)
class DeviceView:
    """An accelerator as its agent sees it."""

    id: str
    uuid: str
    holder: str
    """UID of the pod that holds it, its namespace/name where only that is known, or HOLDER_UNKNOWN: none of
    these is free. Empty for nobody."""
    evidence: tuple[EvidenceView, ...]
    observed: bool
    """False when the provider could not be asked: nothing is known."""
    holder_pods: tuple[ObjectKey, ...] = ()
    """The pods that kubelet names as holders; `holder` is made of them."""


@dataclass(frozen=True, slots=True)
class SourceView:
    """A medium that units can be bound from."""

    key: str
    tier: str
    backend: str
    numa_node: int
    capacity_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class UnitView:
    """A unit as its agent sees it."""

    name: str
    generation: int
    phase: UnitPhase
    size_bytes: int
    resident_bytes: int
    used_bytes: int | None
    placement: dict[int, int]
    placement_verified: bool
    segment: str
    findings: tuple[tuple[str, str], ...] = ()
    message: str = ""


class SeatPhase(StrEnum):
    """How an engine stands to a seat."""

    WAITING = "Waiting"
    ATTACHED = "Attached"
    STOPPING = "Stopping"
    RELEASED = "Released"


@dataclass(frozen=True, slots=True)
class SeatView:
    """A slot's seat as its agent sees it."""

    slot: ObjectKey
    epoch: int
    phase: SeatPhase
    pod_uid: str
    pod_name: str
    endpoint: str
    fence_level: str
    """Released: how surely the engine is out. Before: what the node's own guard enforces at the deadline
    (Process for a guarded engine, else ContentOnly)."""


@dataclass(frozen=True, slots=True)
class EngineView:
    """An engine known to an agent's local API."""

    pod_uid: str
    pod_name: str
    endpoint: str
    devices: tuple[str, ...]
    standby: bool
    readiness: str
    slot: str
    requests_running: int
    hbm_kv_bytes: int


@dataclass(frozen=True, slots=True)
class PeerWord:
    """What one agent says about one peer's host."""

    peer: str
    reached: bool
    at: float
    lease_lost: bool | None
    """The peer's own word on its lease; None when its agent did not answer."""


@dataclass(frozen=True, slots=True)
class LeaseView:
    """The operator's side of a node's lease; monotonic seconds of this process."""

    granted_at: float | None
    """When the newest Grant was sent; None before the first."""
    duration_seconds: float
    max_skew_seconds: float

    @property
    def expires_at(self) -> float | None:
        """When the node surely holds no lease any more."""
        if self.granted_at is None:
            return None
        return self.granted_at + self.duration_seconds + self.max_skew_seconds


@dataclass(frozen=True, slots=True)
class AgentView:
    """All that is known of one node's agent. Absent from the snapshot: it never said Hello to this leader."""

    node: str
    boot_id: str
    incarnation: int
    agent_version: str
    pod_uid: str
    connected: bool
    hello_at: float
    reported_at: float
    """When the oldest figure of the newest report was taken."""
    leaving_until: float | None
    lease: LeaseView
    applied_revision: int
    highest_operator_epoch: int
    roster_revision: int
    plan_revision: int = 0
    """Of the newest plan made for the node, sent or about to be; `applied_revision` equals it when the
    agent works under that plan. 0: none made on this stream, so an absent seat proves nothing."""
    plan_releases: frozenset[tuple[str, int]] = frozenset()
    """Name and generation of each unit that this plan tells the agent to give back."""
    units: tuple[UnitView, ...] = ()
    seats: tuple[SeatView, ...] = ()
    devices: tuple[DeviceView, ...] = ()
    holders_at: float | None = None
    """When kubelet last said which pods hold devices (monotonic seconds); None when it did not."""
    sources: tuple[SourceView, ...] = ()
    engines: tuple[EngineView, ...] = ()
    peers: tuple[PeerWord, ...] = ()
    peer_address: str = ""
    loop_age_seconds: dict[str, float] = field(default_factory=dict)
    retired: bool = False
    """Whether it keeps nothing on its host any more."""
    booted_anew: bool = False
    """Whether its stream is the first of another boot than the one that this leader knew before."""


@dataclass(frozen=True, slots=True)
class SegmentView:
    """One segment name of a store."""

    name: str
    capacity_bytes: int
    used_bytes: int
    host: str
    """Address part of the name."""


@dataclass(frozen=True, slots=True)
class StoreView:
    """A pool's store as its master says."""

    pool: ObjectKey
    reachable: bool
    asked_at: float
    rpc_address: str = ""
    """address:port of the master's RPC, from the pool's serviceRef or address; empty when unknown."""
    admin_address: str = ""
    """address:port of the master's admin HTTP surface."""
    segments: tuple[SegmentView, ...] = ()
    key_count: int | None = None
    keys_lost_at: float | None = None
    """When the key count was last seen to fall to nothing while segments stayed: the master was restarted."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class OutputAck:
    """Which weights an output is known to carry."""

    group: ObjectKey
    output: str
    revision: int
    observed: bool
    """True: read back from the router. False: a stated floor passed."""
    at: float
    written_at: float
    weights: dict[str, int] = field(default_factory=dict)
    """Slot name to weight, of that revision."""
