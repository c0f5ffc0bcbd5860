"""Who may lead, decided from a Lease as it was observed: pure, no clock, no requests.

A remote wall clock is never trusted. A holder's time runs from the moment this process, by its own monotonic
clock, last saw the Lease change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from kvpool.api import labels
from kvpool.cluster.resources import LEASES, Obj

MOST_BELIEVED_EPOCH = 2**41
"""Half of what objects can carry: whatever somebody writes into the annotation leaves room to rise."""
LONGEST_WAIT_SECONDS = 60.0
"""Far beyond the duration that any leader writes."""
_MOST_TRANSITIONS = 2**31 - 1
"""The API counts them in 32 bits."""


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds: how long a Lease holds, how long a leader goes on without renewing, how often either asks.

    Raises ValueError unless retry < renew < duration: the gap between the last two is the time in which a
    leader that cannot renew has to be gone.
    """

    duration_seconds: float = 6.0
    renew_seconds: float = 4.0
    retry_seconds: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_seconds < self.renew_seconds < self.duration_seconds:
            raise ValueError(
                f"lease timing needs 0 < retry < renew < duration, got retry {self.retry_seconds} s, "
                f"renew {self.renew_seconds} s, duration {self.duration_seconds} s"
            )


DEFAULT_TIMING = LeaseTiming()


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease object says. `holder` is "" when it was released; `epoch` is 0 when it names none."""

    holder: str
    renewed: str
    transitions: int
    duration_seconds: float
    epoch: int

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> LeaseRecord:
        """Read a Lease; what is missing or malformed counts as absent."""
        spec = lease.get("spec") or {}
        annotations = lease["metadata"].get("annotations") or {}
        return cls(
            holder=spec.get("holderIdentity") or "",
            renewed=spec.get("renewTime") or "",
            transitions=spec.get("leaseTransitions") or 0,
            duration_seconds=float(spec.get("leaseDurationSeconds") or 0),
            epoch=_epoch(annotations.get(labels.OPERATOR_EPOCH)),
        )


def _epoch(text: str | None) -> int:
    """The epoch that the annotation names; 0 for none, and for one that no leadership can have reached."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > len(str(MOST_BELIEVED_EPOCH)):
        return 0
    epoch = int(text)
    return epoch if epoch <= MOST_BELIEVED_EPOCH else 0


@dataclass(frozen=True, slots=True)
class Observed:
    """A Lease and when, by our own clock, it was first seen saying what it says."""

    record: LeaseRecord
    since: float


def observe(previous: Observed | None, lease: Mapping[str, Any] | None, now: float) -> Observed | None:
    """The observation after reading the Lease at `now`; None when there is no Lease.

    Only a change of what the Lease says starts the holder's time anew; other writes to the object (labels,
    managed fields) do not.
    """
    if lease is None:
        return None
    record = LeaseRecord.of(lease)
    if previous is not None and previous.record == record:
        return previous
    return Observed(record, now)


@dataclass(frozen=True, slots=True)
class Acquire:
    """The Lease is free: try to take it."""


@dataclass(frozen=True, slots=True)
class Renew:
    """The Lease is ours: write it again."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Somebody else holds it, at least until `until` on our clock."""

    until: float


Decision: TypeAlias = Acquire | Renew | Wait


def elect(observed: Observed | None, me: str, now: float, duration_seconds: float) -> Decision:
    """What candidate `me` does about the Lease at `now`.

    A foreign holder is waited for over the longer of its own duration and ours, from when we first saw its
    last change, so that a Lease with a short or missing duration is never taken early; and at most
    `LONGEST_WAIT_SECONDS`, so that a duration of years does not leave the cluster without a leader.
    """
    if observed is None or observed.record.holder == "":
        return Acquire()
    if observed.record.holder == me:
        return Renew()
    theirs = min(observed.record.duration_seconds, LONGEST_WAIT_SECONDS)
    until = observed.since + max(duration_seconds, theirs)
    return Acquire() if now > until else Wait(until)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a candidate or leader writes into the Lease."""

    me: str
    epoch: int
    wall: datetime
    timing: LeaseTiming

    def manifest(self, name: str, namespace: str, current: Obj | None) -> Obj:
        """The Lease to create (`current` None), or to replace `current` with, at its resourceVersion."""
        record = LeaseRecord.of(current) if current is not None else None
        stamp = self.wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: dict[str, Any] = dict((current or {}).get("spec") or {})
        if record is None or record.holder != self.me:
            spec["acquireTime"] = stamp
            spec["leaseTransitions"] = 0 if record is None else min(record.transitions + 1, _MOST_TRANSITIONS)
        spec |= {
            "holderIdentity": self.me,
            # The API knows whole seconds only; rounding up keeps others waiting long enough.
            "leaseDurationSeconds": math.ceil(self.timing.duration_seconds),
            "renewTime": stamp,
        }
        metadata: dict[str, Any] = dict(
            (current or {}).get("metadata") or {"name": name, "namespace": namespace}
        )
        annotations = dict(metadata.get("annotations") or {}) | {labels.OPERATOR_EPOCH: str(self.epoch)}
        metadata["annotations"] = annotations
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}

    def released(self, current: Obj) -> Obj:
        """The Lease given back: without a holder, its epoch kept."""
        manifest = self.manifest(current["metadata"]["name"], current["metadata"]["namespace"], current)
        manifest["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
        return manifest
