"""What admission by memory changes: for programs of many turns, and for answers of unknown length."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from kvpool.plan.known_name import one_of
from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.plan.routing.prediction import LengthPredictor, Prediction, PredictionSettings
from kvpool.plan.timing.model import TimingModel
from kvpool.plan.trajectories.admission import AdmissionSettings
from kvpool.sim.claims.experiment import Above, Experiment, Parameters, Whole
from kvpool.sim.claims.router_settings import RouterMix, overall
from kvpool.sim.claims.row import Claim, ClaimRow, Kind, Reading
from kvpool.sim.pools.pool import Served, serve
from kvpool.sim.serving.lengths import LearntLengths, Lengths
from kvpool.sim.trajectories.run import Engine, TrajectoryReport, run_trajectories, shares_of
from kvpool.sim.workloads.generators.bounds import Factor, Span
from kvpool.sim.workloads.generators.mix import mix
from kvpool.sim.workloads.generators.trajectories import Programs, trajectories
from kvpool.sim.workloads.request import Request, Workload

MOST_RECOMPUTE: Final = 0.10
MOST_FIRST_GROUP: Final = 0.50
MOST_MAKESPAN: Final = 1.02


class Storms(Parameters):
    """Groups of programs on an engine whose memory holds some of them; figures of Qwen3-32B on two H200."""

    runs: int = Field(ge=1, le=1000)
    """Sets of programs, each from its own seed."""
    groups: int = Field(ge=1, le=1000)
    members: int = Field(ge=1, le=1000)
    turns: float = Field(gt=0, le=1000)
    first_prompt_tokens: int = Field(ge=1)
    tool_tokens: float = Field(gt=0)
    output_tokens: float = Field(gt=0)
    tool_seconds: float = Field(gt=0)
    slots: int = Field(ge=1)
    scarce_tokens: tuple[Whole, ...]
    """Memory of both tiers together, a quarter of it in the device."""
    ample_tokens: int = Field(ge=1)
    usual_final_tokens: int = Field(ge=1)
    """What nine of ten such programs end below."""
    growth_share: float = Field(ge=0, le=1)
    age_seconds: float = Field(ge=0)
    prefill_base_ns: float
    prefill_token_ns: float
    prefill_square_ns: float
    step_base_ns: float
    step_sequence_ns: float
    step_token_ns: float

    def engine(self, tokens: int) -> Engine:
        """The engine with that much memory."""
        timing = TimingModel(
            self.prefill_base_ns,
            self.prefill_token_ns,
            self.prefill_square_ns,
            self.step_base_ns,
            self.step_sequence_ns,
            self.step_token_ns,
        )
        device = tokens // 4
        return Engine(timing, self.slots, device, tokens - device, self.usual_final_tokens, round(self.turns))

    def programs(self) -> Programs:
        """The programs."""
        return Programs(
            self.groups,
            self.members,
            self.turns,
            self.first_prompt_tokens,
            self.tool_tokens,
            self.output_tokens,
            self.tool_seconds,
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """First come first served and admission, on the same programs in the same memory."""

    base: TrajectoryReport
    admitted: TrajectoryReport

    @property
    def shares(self) -> Mapping[str, float]:
        """Recomputed tokens, makespan and first group, against first come first served."""
        return shares_of(self.admitted, self.base)


def c14(parameters: Storms, _: Mapping[str, Workload]) -> ClaimRow:
    """Hold every run against the gate; the figures have the makespan too."""
    settings = AdmissionSettings(
        growth_share=parameters.growth_share, age_ns=round(parameters.age_seconds * 1e9)
    )
    found: dict[int, list[Compared]] = {}
    for tokens in (*parameters.scarce_tokens, parameters.ample_tokens):
        for seed in range(parameters.seed, parameters.seed + parameters.runs):
            programs = trajectories(parameters.programs(), seed)
            engine = parameters.engine(tokens)
            compared = Compared(
                run_trajectories(programs, engine, None), run_trajectories(programs, engine, settings)
            )
            found.setdefault(tokens, []).append(compared)
    scarce = [one.shares for tokens in parameters.scarce_tokens for one in found[tokens]]
    ample = [one.shares for one in found[parameters.ample_tokens]]
    return ClaimRow(
        STORMS,
        ours="; ".join(_memory_line(tokens, runs) for tokens, runs in found.items()),
        band=(
            "scarce memory: recomputed tokens -90 %, first group in less than half the time; ample memory: "
            "makespan at most +2 %"
        ),
        verdict=overall(
            [
                *(one["recompute"] <= MOST_RECOMPUTE for one in scarce),
                *(one["first_group"] < MOST_FIRST_GROUP for one in scarce),
                *(one["makespan"] <= MOST_MAKESPAN for one in ample),
            ]
        ),
        knob=(
            "memory: where it holds too few programs to keep the slots busy, the makespan does not gain; "
            "where it holds all, nothing changes"
        ),
        figures={
            f"{tokens} tokens, seed {parameters.seed + run}, {what}": round(value, 3)
            for tokens, runs in found.items()
            for run, one in enumerate(runs)
            for what, value in _storm_figures(one)
        },
        seed=parameters.seed,
    )


def _memory_line(tokens: int, runs: list[Compared]) -> str:
    def between(values: list[float], text: str) -> str:
        low, high = format(min(values), text), format(max(values), text)
        return low if low == high else f"{low} to {high}"

    before = between([one.base.recomputed_tokens / 1e6 for one in runs], ".0f")
    after = between([one.admitted.recomputed_tokens / 1e6 for one in runs], ".1f")
    makespan = between([100 * one.shares["makespan"] - 100 for one in runs], "+.0f")
    first = between([1 / one.shares["first_group"] for one in runs], ".1f")
    return (
        f"{tokens / 1e6:g} M tokens: recomputed {before} -> {after} M, makespan {makespan} %, first group "
        f"{first} times as soon"
    )


def _storm_figures(one: Compared) -> tuple[tuple[str, float], ...]:
    return (
        ("recomputed million tokens, first come", one.base.recomputed_tokens / 1e6),
        ("recomputed million tokens, admission", one.admitted.recomputed_tokens / 1e6),
        ("makespan seconds, first come", one.base.makespan_ns / 1e9),
        ("makespan seconds, admission", one.admitted.makespan_ns / 1e9),
        ("first group seconds, first come", one.base.first_group_ns / 1e9),
        ("first group seconds, admission", one.admitted.first_group_ns / 1e9),
        ("longest wait seconds, admission", one.admitted.longest_wait_ns / 1e9),
    )


class Bounds(RouterMix):
    """Decode instances whose memory is the limit, with several ways to reserve for answers."""

    log_seconds: Span
    burst_factor: Factor
    capacity_tokens: int = Field(ge=1)
    """A fifth of what the card would hold: memory binds before speed does."""
    instances: int = Field(ge=1)
    rates_per_second: tuple[Above, ...]
    coverage: float = Field(gt=0, lt=1)
    most_tokens: int = Field(ge=1)
    """The longest answer that the engine makes."""
    rule: Annotated[str, one_of("routing rule", ROUTERS)]
    """Where requests go: to the instance with the smallest share of memory reserved."""


class Reserving:
    """Predicts as the planner does, and reserves in one of several ways."""

    def __init__(self, parameters: Bounds, reserve: Callable[[Prediction], int]) -> None:
        settings = PredictionSettings(alpha=1 - parameters.coverage, most_tokens=parameters.most_tokens)
        self._learnt = LearntLengths(LengthPredictor(settings))
        self._reserve = reserve

    def predict(self, number: int, request: Request) -> Prediction:
        """The mean as it is, and what is reserved in place of the bound."""
        predicted = self._learnt.predict(number, request)
        return Prediction(predicted.mean_tokens, self._reserve(predicted))

    def learn(self, request: Request) -> None:
        """From answers that ended."""
        self._learnt.learn(request)


def c21(parameters: Bounds, _: Mapping[str, Workload]) -> ClaimRow:
    """Compare bounds with point estimates, with reserving the longest answer and with reserving none."""
    ways: dict[str, Callable[[Prediction], int]] = {
        "bound": lambda predicted: predicted.bound_tokens,
        "point": lambda predicted: predicted.mean_tokens,
        "longest": lambda predicted: parameters.most_tokens,
        "nothing": lambda predicted: 1,
    }
    found = {
        rate: {name: _reserved(parameters, rate, way) for name, way in ways.items()}
        for rate in parameters.rates_per_second
    }
    sooner = [
        better
        for tried in found.values()
        for better in (
            tried["bound"].mean_seconds < tried["point"].mean_seconds,
            tried["bound"].p99_seconds < tried["point"].p99_seconds,
        )
    ]
    return ClaimRow(
        UPPER_BOUNDS,
        ours="; ".join(
            f"{rate:g}/s: bounds {_change(tried, 'point')} against points, {_change(tried, 'longest')} "
            f"against the longest answer, {_change(tried, 'nothing')} against nothing reserved"
            for rate, tried in found.items()
        ),
        band=(
            "direction: mean and P99 end to end lower with bounds than with point estimates, at every load"
        ),
        verdict=overall(sooner),
        knob=(
            "what bounds are compared with: they win by far against reserving the longest answer; against "
            "points they lose, as an answer that is preempted is soon computed again, while memory that is "
            "reserved and not used keeps others waiting. MAPS' order within an instance is not modelled"
        ),
        figures={
            f"{rate:g}/s, {name}: {what}": round(value, 3)
            for rate, tried in found.items()
            for name, one in tried.items()
            for what, value in (
                ("mean end to end seconds", one.mean_seconds),
                ("P99 end to end seconds", one.p99_seconds),
                ("goodput", one.goodput),
                ("preempted", one.preempted),
            )
        },
        seed=parameters.seed,
    )


@dataclass(frozen=True, slots=True)
class Reserved:
    """Means over all logs."""

    goodput: float
    mean_seconds: float
    p99_seconds: float
    preempted: float


def _reserved(parameters: Bounds, rate: float, way: Callable[[Prediction], int]) -> Reserved:
    pool, mixed = parameters.pool(parameters.instances, 1.0), parameters.mix(rate)
    runs: list[Served] = []
    for seed in range(parameters.seed, parameters.seed + parameters.logs):
        lengths: Lengths = Reserving(parameters, way)
        runs.append(serve(pool, mix(mixed, seed), ROUTERS[parameters.rule], seed, lengths))
    count = len(runs)
    return Reserved(
        sum(run.goodput for run in runs) / count,
        sum(run.mean_ns for run in runs) / count / 1e9,
        sum(run.p99_ns for run in runs) / count / 1e9,
        sum(run.preempted for run in runs) / count,
    )


def _change(tried: Mapping[str, Reserved], other: str) -> str:
    mine, theirs = tried["bound"], tried[other]
    mean = 100 * (mine.mean_seconds / theirs.mean_seconds - 1)
    tail = 100 * (mine.p99_seconds / theirs.p99_seconds - 1)
    return f"mean {mean:+.1f} %, P99 {tail:+.1f} %"


STORMS: Final = Claim(
    number="C14",
    text="Admission by the capacity of both tiers, nearest completion first, ends recompute storms",
    source="LongCat-2.5 release notes, Meituan (2 Nov 2026)",
    reading=Reading.SECOND_HAND,
    kind=Kind.DIRECTION,
)
UPPER_BOUNDS: Final = Claim(
    number="C21",
    text="Upper bounds of output length with coverage: mean end-to-end latency -42.6 %, tail up to -84.8 %",
    source="MAPS, arXiv 2609.15359; ICML 2026 poster 64507",
    reading=Reading.ABSTRACT,
    kind=Kind.DIRECTION,
)

EXPERIMENTS: Final = (
    Experiment(STORMS, Storms, run=c14),
    Experiment(UPPER_BOUNDS, Bounds, run=c21),
)
