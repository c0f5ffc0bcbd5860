"""The figures of one run, as plain data. Times are integer nanoseconds, sizes bytes or tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvpool.sim.serving.run import Sample


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A set of durations. Quantiles are true members of the set (nearest rank)."""

    count: int
    mean_ns: int
    p50_ns: int
    p95_ns: int
    p99_ns: int
    most_ns: int


@dataclass(frozen=True, slots=True)
class Latencies:
    """How long requests took."""

    ttft: Quantiles
    """From arrival to the first token."""
    tpot: Quantiles
    """Mean time between tokens after the first, of requests with two or more."""
    e2e: Quantiles
    """From arrival to the last token."""


@dataclass(frozen=True, slots=True)
class Alone:
    """What the served requests of a class would take if nothing else ran on the fastest instance.

    The prompt without the tokens that were cached for it, and one sequence in each step: kvpool's own bound.
    """

    least_ttft_ns: int
    least_tpot_ns: int
    """0: none has two tokens."""
    too_slow: int
    """Requests that break a promise even so."""


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """The requests of one class of service."""

    slo_class: str
    requests: int
    refused: int
    met: int
    """Served within both promises, time to first token and time per token."""
    ttft_promise_ns: int
    tpot_promise_ns: int
    latencies: Latencies
    alone: Alone

    @property
    def goodput(self) -> float:
        """Share of all its requests that were served within both promises; 1 when there are none."""
        return self.met / self.requests if self.requests else 1.0


@dataclass(frozen=True, slots=True)
class TierFigures:
    """The requests whose prefix came, at the deepest, from one tier."""

    tier: str
    """`HBM`, `DRAM`, `CXL`, `SSD`; `NEW`: never seen.

    `RECOMPUTE`: nothing was brought up, and some of it had been held and was gone.
    """
    requests: int
    loaded_bytes: int
    """Brought up by these requests, from this tier and those above it."""
    latencies: Latencies


@dataclass(frozen=True, slots=True)
class BoundaryFigures:
    """What crossed between one lower tier and what is above it, over all instances."""

    tier: str
    promoted_bytes: int
    """Upwards, that from deeper tiers included."""
    demoted_bytes: int
    """Written to it."""


@dataclass(frozen=True, slots=True)
class LinkFigures:
    """One link."""

    name: str
    moved_bytes: int
    busy_share: float
    """Of the run, with at least one transfer on it."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Where the constants of one kind of instance are from."""

    instances: str
    """Which ones."""
    provenance: str
    """`Measured`, `Fitted`, `DataSheet`, or `Given` in the scenario."""
    source: str
    worst_error: float | None = None
    """Largest relative error of the fit; None: not fitted."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the run was made from."""

    source: str
    workload_sha256: str
    scenario_sha256: str
    """Of the scenario with all defaults written out."""
    seed: int
    notes: Mapping[str, int] = field(default_factory=dict)
    """What the loader left out or changed."""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """Requests with more KV than the memory of an instance holds; they are refused."""

    requests: int = 0
    most_tokens: int = 0
    """KV of the largest."""
    room_tokens: int = 0
    """The least memory that one of them was refused by."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the run."""

    requests: int
    served: int
    refused: Mapping[str, int]
    """By reason."""
    end_ns: int
    """When the last request had ended."""
    prompt_tokens: int
    output_tokens: int
    hit_tokens: int
    computed_tokens: int
    recomputed_tokens: int
    """After preemptions and failures."""
    preempted: int
    decode_steps: int
    evicted_blocks: int
    unique_share: float
    """Distinct prefix blocks over resident ones, at the end."""
    capacity_tokens: int
    """KV that fits in the accelerators' memory of all instances."""
    lower_capacity_tokens: Mapping[str, int]
    """KV that fits in each lower tier, over all instances."""
    too_large: TooLarge = TooLarge()

    @property
    def hit_share(self) -> float:
        """Of the prompt tokens of served requests, those that were not computed."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def output_tokens_per_second(self) -> float:
        """Over the whole run."""
        return self.output_tokens * 1e9 / self.end_ns if self.end_ns else 0.0


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the fleet and is worth a mark on a timeline."""

    time_ns: int
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """All that one run says."""

    name: str
    inputs: Inputs
    calibration: tuple[Calibration, ...]
    totals: Totals
    classes: tuple[ClassFigures, ...]
    tiers: tuple[TierFigures, ...]
    boundaries: tuple[BoundaryFigures, ...]
    links: tuple[LinkFigures, ...]
    timeline: tuple[Sample, ...]
    events: tuple[Event, ...] = ()

    @property
    def goodput(self) -> float:
        """Share of all requests that were served within their promises; 1 when there are none."""
        met = sum(one.met for one in self.classes)
        return met / self.totals.requests if self.totals.requests else 1.0
