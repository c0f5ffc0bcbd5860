"""What is simulated: a model on cards, a fleet with tiers, rules, promises, a workload, and what fails."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from kvpool.api.duration import SecondCount
from kvpool.api.quantity import ByteCount
from kvpool.api.schema import Model
from kvpool.api.token_count import TokenCount
from kvpool.plan.known_name import one_of
from kvpool.plan.placement.policies import NAMES as EVICTIONS
from kvpool.plan.routing.catalogue import PREFILL_ROUTERS, ROUTERS
from kvpool.plan.timing.cards import CARDS, LINKS
from kvpool.plan.timing.kv_memory import ACTIVATION_BYTES, MEMORY_USE
from kvpool.plan.timing.quantisation import QUANTISATIONS
from kvpool.plan.timing.shapes import SHAPES
from kvpool.sim.faults.schedule import What
from kvpool.sim.generators import GENERATORS
from kvpool.sim.prefixes.tier import Tier
from kvpool.sim.serving.design import FirstToken, HandOff

LEAST_INTERVAL_SECONDS = 0.001
"""Between two reports of loads: each is an event of the simulation."""
TIERS = tuple(tier.name for tier in (Tier.DRAM, Tier.CXL, Tier.SSD))


Bytes = Annotated[ByteCount, Field(gt=0)]
"""A quantity (`64Gi`, `512G`) or a whole number of bytes."""
Seconds = Annotated[SecondCount, Field(ge=0, le=1e9)]
"""A duration (`250ms`, `10m`) or a number of seconds."""
Count = Annotated[int, Field(ge=1, le=10_000)]


class Constants(Model):
    """The constants of the timing model, where presets do not fit. Milliseconds."""

    prefill_base: Annotated[float, Field(ge=0.001, le=1e6)]
    prefill_token: Annotated[float, Field(ge=0, le=1e6)]
    """For each prompt token that is computed."""
    prefill_square: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """For each pair of prompt tokens."""
    step_base: Annotated[float, Field(ge=0.001, le=1e6)]
    step_sequence: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """For each running sequence."""
    step_token: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """For each token of context that a step reads."""


class ModelOnCards(Model):
    """Which model, and what one instance of it runs on."""

    preset: Annotated[str, one_of("model", SHAPES)] | None = "Qwen3-8B"
    """Name of a well-known model; null: `constants` and `kvBytesPerToken` say all."""
    accelerator: Annotated[str, one_of("accelerator", CARDS)] = "H200"
    """Name of a known accelerator."""
    cards: Count = 1
    """Accelerators that one instance has, as tensor-parallel ranks."""
    quantisation: Annotated[str, one_of("quantisation", QUANTISATIONS)] = "W16A16"
    kv_bits: Annotated[int, Field(ge=4, le=32)] = 16
    """Bits of one element of KV."""
    memory_use: Annotated[float, Field(gt=0, le=1)] = MEMORY_USE
    """Share of the accelerators' memory that the engine takes."""
    activations: Bytes = ACTIVATION_BYTES
    """Memory of each card for activations and graphs."""
    constants: Constants | None = None
    """Takes the place of what presets say about time."""
    kv_bytes_per_token: Bytes | None = None
    """Takes the place of what the preset says about size."""

    @model_validator(mode="after")
    def _says_all(self) -> Self:
        if self.preset is None and (self.constants is None or self.kv_bytes_per_token is None):
            raise ValueError("without a preset give constants and kvBytesPerToken")
        return self


class LinkSpec(Model):
    """One direction of a link: a known kind, or its figures."""

    preset: Annotated[str, one_of("link", LINKS)] | None = None
    rate: Bytes | None = None
    """Bytes a second."""
    setup_microseconds: Annotated[int, Field(ge=0)] = 0
    """Before the first byte moves; goes with `rate`."""

    @model_validator(mode="after")
    def _has_a_rate(self) -> Self:
        if (self.preset is None) == (self.rate is None):
            raise ValueError("give exactly one of preset and rate")
        return self


class LowerTier(Model):
    """A tier below the memory of the instances that compute prompts."""

    tier: Annotated[str, one_of("tier", TIERS)]
    """`DRAM`, `CXL` or `SSD`; list them nearest first."""
    size: Bytes
    """For each instance, or for all together when it is shared."""
    link: LinkSpec
    """Its way up to the next tier."""
    shared: bool = False
    """One for all instances, which get copies of all that is computed; else each has its own."""


class Fleet(Model):
    """Instances: `instances` that do both, or `prefill` and `decode` ones."""

    instances: Count | None = None
    prefill: Count | None = None
    decode: Count | None = None
    kv_memory: Bytes | None = None
    """For KV in each instance; by default what weights and activations leave."""
    most_running: Count = 256
    """Sequences in one batch."""
    chunk_tokens: Annotated[TokenCount, Field(ge=1)] = 8192
    """Tokens of one step, prompts and answers together; for `instances`."""
    speeds: Annotated[tuple[Annotated[float, Field(ge=0.01, le=100)], ...], Field(min_length=1)] = (1.0,)
    """Speed of each instance relative to the constants, one after the other, repeated as needed."""
    speeds_are_known: bool = True
    """Whether routers know these speeds; else they take every instance for one of speed 1."""
    hand_off: HandOff = HandOff.SOURCE_FIRST
    """Which side has room first; for prefill and decode instances."""
    first_token: FirstToken = FirstToken.DECODE
    """Which side makes the first token."""
    link: LinkSpec = LinkSpec(preset="InfiniBand-400G")
    """Way into each decode instance, shared by all transfers to it."""
    tiers: Annotated[tuple[LowerTier, ...], Field(max_length=3)] = ()
    eviction: Annotated[str, one_of("eviction rule", EVICTIONS)] = "Recency"
    """By which rule prefixes leave a tier."""

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        both = self.prefill is not None and self.decode is not None
        if (self.instances is not None) == both or (self.prefill is None) != (self.decode is None):
            raise ValueError("give either instances, or both prefill and decode")
        names = [tier.tier for tier in self.tiers]
        if names != sorted(set(names), key=TIERS.index):
            raise ValueError(f"tiers {', '.join(names)}: list each once, nearest first: {', '.join(TIERS)}")
        if self.eviction == "Belady":
            raise ValueError("eviction Belady needs the future; `kvpool simulate cache` has it as a bound")
        return self


class Routing(Model):
    """Who gets a request, and what routers know."""

    rule: Annotated[str, one_of("routing rule", ROUTERS)] = "CompletionTime"
    """For decode instances, or for instances that do both."""
    prefill_rule: Annotated[str, one_of("prefill rule", PREFILL_ROUTERS)] = "Earliest"
    """For prefill instances."""
    guarded: bool = False
    """Whether the guards stand before the rule: small pools, scarcity."""
    report_interval: Seconds = 0.0
    """How old loads may be that routers see, a millisecond or more; 0: always new."""
    length_error: Annotated[float, Field(ge=0, le=5)] = 0.0
    """Lognormal error of predicted answer lengths; 0: routers know them."""
    learnt_lengths: bool = False
    """Predict lengths with the planner's own predictor, from answers that have ended."""

    @model_validator(mode="after")
    def _predicts_one_way(self) -> Self:
        if self.learnt_lengths and self.length_error:
            raise ValueError("give lengthError or learntLengths, not both")
        return self

    @model_validator(mode="after")
    def _reports_now_and_then(self) -> Self:
        if 0 < self.report_interval < LEAST_INTERVAL_SECONDS:
            raise ValueError(
                f"reportInterval is {self.report_interval} s: give {LEAST_INTERVAL_SECONDS} or more, or 0, "
                "which is always new"
            )
        return self


class Promise(Model):
    """What one class of service was promised."""

    ttft: Seconds = 3.0
    """Time to the first token."""
    tpot: Seconds = 0.06
    """Mean time between tokens after the first."""
    weight: Annotated[int, Field(ge=1, le=1000)] = 100
    """Percent: how much it counts."""


class Generated(Model):
    """A workload from a named generator."""

    name: Annotated[str, one_of("generator", GENERATORS)]
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Of the generator; those left out have its defaults."""


class Failure(Model):
    """Something that fails under one instance; the operator's own failover core decides what follows."""

    at: Seconds
    what: What = What.DEVICE
    """`Device`: its accelerator, which its agent sees; `Host`: all of it, which falls silent."""
    instance: Annotated[int, Field(ge=0)]
    """Place of the instance that does both, or of the decode instance."""
    repaired_after: Seconds | None = None
    """Until what failed is as new and may be a spare; null: never."""


class Scenario(Model):
    """All that `kvpool simulate` is asked."""

    name: Annotated[str, Field(min_length=1, max_length=100)] = "scenario"
    model: ModelOnCards = ModelOnCards()
    fleet: Fleet
    routing: Routing = Routing()
    promises: dict[str, Promise] = Field(
        default_factory=lambda: {
            "interactive": Promise(),
            "batch": Promise(ttft=6.0, tpot=0.09, weight=50),
        }
    )
    """By class of service."""
    workload: Generated | None = None
    """What is asked of it, unless a trace is given."""
    spares: Annotated[int, Field(ge=0, le=1000)] = 0
    """Hosts with a warm engine that may take the place of a failed one."""
    engine_start: Seconds = 10.0
    """From being given a place to serving there: weights are read, graphs are made."""
    failures: Annotated[tuple[Failure, ...], Field(max_length=1000)] = ()
    timeline_points: Annotated[int, Field(ge=0, le=10_000)] = 200
    """About how many moments the timeline keeps, up to twice as many."""
    seed: int = 0
    """Of everything that is drawn."""

    @model_validator(mode="after")
    def _failures_name_instances(self) -> Self:
        there = self.fleet.instances or self.fleet.decode or 0
        for failure in self.failures:
            if failure.instance >= there:
                raise ValueError(f"failures name instance {failure.instance}; there are 0 to {there - 1}")
        return self
