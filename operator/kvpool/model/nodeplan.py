"""All that one node is to hold, as data: what `kvpool.fleet` numbers by change of content and sends."""

from dataclasses import dataclass
from typing import Literal

from kvpool.model.ids import ObjectKey


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How long the node may act without hearing from the operator."""

    duration_seconds: float
    max_skew_seconds: float
    strict: bool
    """Whether the node stops at its deadline in any case."""


@dataclass(frozen=True, slots=True)
class MooncakeTarget:
    """A Mooncake master to mount segments at."""

    master: str
    """address:port of the master's RPC."""
    admin: str
    """address:port of the master's admin HTTP surface; empty when unknown."""
    metadata_server: str
    protocol: str
    devices: str
    """RDMA devices, comma separated."""


@dataclass(frozen=True, slots=True)
class PlannedUnit:
    """One piece of capacity to hold."""

    name: str
    pool: str
    """namespace/name."""
    tier: str
    size_bytes: int
    numa_node: int
    """-1 when the tier has no NUMA placement."""
    backend: str
    path: str
    generation: int
    reserve_bytes: int
    """Bytes of the medium that are to stay free beside the unit."""
    mooncake: MooncakeTarget | None
    adopt: bool
    release: Literal["None", "Drain", "Now"]
    unmount_at_deadline: bool
    """Whether the keeper takes its segment out of the store when the lease runs out."""


@dataclass(frozen=True, slots=True)
class PlannedSeat:
    """A slot whose seat is on this node: only an engine under this epoch may serve as the slot."""

    slot: ObjectKey
    epoch: int
    devices: tuple[str, ...]
    pod_uid: str
    """The engine pod that is to sit on it; empty: the one that holds the devices."""


@dataclass(frozen=True, slots=True)
class RosterMember:
    """One member of the guard group."""

    node: str
    peer_address: str
    """Where its agent answers probes, address:port; empty before its first Hello."""
    host_address: str
    board: str
    """Innermost failure domain; peers of the same board are no witnesses."""


@dataclass(frozen=True, slots=True)
class NodePlanData:
    """Complete and level-triggered: what is not named is not wanted. Equal content is the same plan.

    `units`, `seats` and `roster` are sorted by name, slot and node.
    """

    node: str
    operator_epoch: int
    units: tuple[PlannedUnit, ...]
    seats: tuple[PlannedSeat, ...]
    roster: tuple[RosterMember, ...]
    lease: LeaseTerms
    hold: bool
    """Whether nothing new may be started."""
    retire: bool = False
    """Whether the agent is to remove all that it keeps on its host; only without units and seats."""
