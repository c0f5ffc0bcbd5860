"""Everything the agent sees, as one value: what a Report is made from."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvpool_agent.devices.base import Device
from kvpool_agent.seats import SeatRecord
from kvpool_agent.units import Source, UnitView


@dataclass(frozen=True)
class EngineView:
    """An engine on the local API, with its figures."""

    pod_uid: str
    pod_name: str
    endpoint: str
    devices: tuple[str, ...]
    standby: bool
    readiness: str
    slot: str
    requests_running: int
    hbm_kv_bytes: int


@dataclass(frozen=True)
class NodeState:
    """What is reported. `observed_at_seconds` is CLOCK_BOOTTIME of the oldest figure."""

    applied_revision: int = 0
    units: tuple[UnitView, ...] = ()
    seats: tuple[SeatRecord, ...] = ()
    devices: tuple[Device, ...] = ()
    holders_at_seconds: float | None = None
    """When kubelet last said who holds devices (wall clock); None when it never did."""
    sources: tuple[Source, ...] = ()
    engines: tuple[EngineView, ...] = ()
    observed_at_seconds: float = 0.0
    refused_epochs: int = 0
    loop_ages: dict[str, float] = field(default_factory=dict)
    retired: bool = False
    """Whether nothing is kept on the host any more, as the operator asked."""
