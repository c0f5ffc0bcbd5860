"""What a fleet returns: the outcomes in order of the requests, and what its parts have done."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvpool.sim.serving.outcome import Outcome


@dataclass(frozen=True, slots=True)
class LinkUse:
    """What one link has carried."""

    moved_bytes: int
    busy_ns: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of the whole fleet at one moment."""

    time_ns: int
    running: int
    waiting: int
    used_tokens: int
    """KV of running requests."""
    idle_tokens: int
    """KV kept for whoever comes back."""
    lower_tokens: Mapping[str, int] = field(default_factory=dict)
    """KV in each lower tier."""


@dataclass(frozen=True, slots=True)
class FleetRun:
    """One run of a fleet over a workload."""

    outcomes: tuple[Outcome, ...]
    end_ns: int
    """When the last request had ended."""
    decode_steps: int
    """Steps of all instances, skipped ones included."""
    made_tokens: int
    computed_tokens: int
    """Of prompts, without what was cached."""
    evicted_blocks: int
    capacity_tokens: int
    unique_share: float
    """Distinct prefix blocks over resident ones, all tiers and instances, at the end."""
    demoted_bytes: Mapping[str, int] = field(default_factory=dict)
    """Written to each lower tier by the tier above it."""
    lower_capacity_tokens: Mapping[str, int] = field(default_factory=dict)
    """KV that fits in each lower tier, over all instances."""
    links: Mapping[str, LinkUse] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    events: tuple[tuple[int, str], ...] = ()
    """What happened to instances: time in nanoseconds, and what."""
