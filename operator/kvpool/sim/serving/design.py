"""What a fleet is made of, and by which rules it serves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kvpool.plan.placement.eviction import EvictionRule
from kvpool.plan.routing.views import Objective
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.prefixes.tier import Tier
from kvpool.sim.serving.views import Belief


class HandOff(StrEnum):
    """Which side of a hand-off gets room first."""

    SOURCE_FIRST = "SourceFirst"
    """A prompt is computed at once; its KV waits there for room at the destination (vLLM)."""
    DESTINATION_FIRST = "DestinationFirst"
    """A prompt is computed only when the destination has reserved room for it (SGLang)."""


class FirstToken(StrEnum):
    """Who makes the first token of an answer."""

    DECODE = "Decode"
    """The decode instance, with its first step; the answer then takes as many steps as it has tokens."""
    PREFILL = "Prefill"
    """The prefill instance, at the end of the prompt."""


@dataclass(frozen=True, slots=True)
class InstanceSpec:
    """One instance. `belief` is what its router takes it for; None: for what it is."""

    timing: TimingModel
    capacity_tokens: int
    """KV that fits in its memory."""
    link: LinkModel
    """Its way in for KV."""
    most_running: int = 256
    """Sequences in one batch."""
    belief: Belief | None = None

    @property
    def believed(self) -> Belief:
        """What its router takes it for."""
        return self.belief or Belief(self.timing, self.link, self.capacity_tokens)


@dataclass(frozen=True, slots=True)
class TierSpec:
    """One tier below the memory of instances that compute prompts."""

    tier: Tier
    capacity_tokens: int
    """Of each instance, or of all together when it is shared."""
    link: LinkModel
    """Its way up to the next tier."""
    is_shared: bool = False
    """One for all instances, and a copy stays; else each has its own, for what its device does not hold."""


@dataclass(frozen=True, slots=True)
class SplitDesign:
    """A fleet whose prompts are computed on some instances and whose answers are made on others."""

    prefill: tuple[InstanceSpec, ...]
    decode: tuple[InstanceSpec, ...]
    bytes_per_token: int
    """KV of one token."""
    objectives: Mapping[str, Objective]
    """By class of service; every class of the workload has one."""
    hand_off: HandOff = HandOff.SOURCE_FIRST
    first_token: FirstToken = FirstToken.DECODE
    report_interval_ns: int = 0
    """How old the load may be that routers see; 0: it is always new."""
    tiers: tuple[TierSpec, ...] = ()
    """Below the memory of each prefill instance, nearest first."""
    make_eviction: Callable[[], EvictionRule] | None = None
    """Makes the rule by which prefixes leave; None: the least recent first."""


@dataclass(frozen=True, slots=True)
class MixedDesign:
    """A fleet of instances that compute prompts and make answers, both in one batch."""

    instances: tuple[InstanceSpec, ...]
    bytes_per_token: int
    objectives: Mapping[str, Objective]
    chunk_tokens: int = 8192
    """Prompt and answer tokens of one step together (vLLM: `max_num_batched_tokens`)."""
    report_interval_ns: int = 0
    tiers: tuple[TierSpec, ...] = ()
    make_eviction: Callable[[], EvictionRule] | None = None
