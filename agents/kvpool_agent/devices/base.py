"""What a device provider is, and what it says of a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kvpool.api.supernode import EvidenceClass

NOBODY_KNOWS = "unknown"
"""Stands for the holder of a device that nobody can be asked about."""


@dataclass(frozen=True)
class Fault:
    """A live finding about a device. Times are wall clock seconds; only their ages leave the node."""

    source: str
    code: str
    evidence_class: EvidenceClass
    seen_at_seconds: tuple[float, ...]
    """Every sighting that is remembered, oldest first; at least one."""


@dataclass(frozen=True)
class Device:
    """One accelerator."""

    id: str
    uuid: str
    holder_pod_uid: str = ""
    faults: tuple[Fault, ...] = ()
    observed: bool = True
    """False when the provider could not be asked: nothing is known of the device now."""
    holder_pods: tuple[str, ...] = ()
    """namespace/name of the pods that hold it, as kubelet last said; they go before the UID."""
    holder_known: bool = True
    """False when kubelet cannot be asked who holds it, and nobody is known to."""

    @property
    def holder(self) -> str:
        """Who holds it: a pod's UID or namespace/name, NOBODY_KNOWS, or empty for nobody."""
        if not self.holder_known or len(self.holder_pods) > 1:
            return NOBODY_KNOWS
        return self.holder_pods[0] if self.holder_pods else self.holder_pod_uid


class DeviceProvider(Protocol):
    """Asks about the node's accelerators."""

    @property
    def trouble(self) -> str:
        """Why the devices cannot be asked about now; empty when they can."""
        ...

    def poll(self, now_seconds: float) -> tuple[Device, ...] | None:
        """Return all devices if anything changed since the last poll, else None. Never raises."""
        ...
