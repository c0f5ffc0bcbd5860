"""Where completion-time routing ends: wrong constants, and memory that is scarce everywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from pydantic import Field

from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.plan.routing.completion_time import CompletionTime
from kvpool.plan.routing.counting import LeastLoaded
from kvpool.plan.routing.guards import Guarded, GuardSettings
from kvpool.plan.routing.router import RouterFactory
from kvpool.plan.routing.views import Ask, Instance
from kvpool.plan.timing.model import LinkModel
from kvpool.sim.claims.experiment import Above, Experiment
from kvpool.sim.claims.router_settings import CLEVER, SOURCE, Instances, RouterMix, Tried, overall, try_rules
from kvpool.sim.claims.row import Claim, ClaimRow, Kind, Reading
from kvpool.sim.serving.views import Belief
from kvpool.sim.workloads.generators.bounds import Span
from kvpool.sim.workloads.request import Workload

WRONG: Final = f"{CLEVER}, wrong constants"
COUNTING: Final = ("LeastOutstanding", "LeastLoaded")
GUARDED: Final = "Guarded"
SPRAY: Final = "Uniform"
ALONE: Final = "LeastLoaded by reports alone"
GREEDY: Final = ("LeastLoaded", CLEVER)
"""They count what they sent themselves since the last report, as routers do that are deployed."""
ENDLESS: Final = 1 << 50
"""Tokens, and bytes a second, that no load uses up."""


class Miscalibrated(RouterMix):
    """A router that takes every card for one that load does not slow, with endless memory and links."""

    instances: int = Field(ge=2, le=1000)
    slowest: float = Field(gt=0, le=1)
    rates_per_second: tuple[Above, ...]
    equal_rates_per_second: tuple[Above, ...]
    believed_step_sequence_ns: float
    """For each running sequence; the constant for each token of context is taken for 0."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """What wrong constants cost, as means over the loads of one pool."""

    right: float
    wrong: float
    queues: Mapping[str, float]
    """What rules keep that count requests, or the memory that is reserved."""
    p99_share_lost: float
    """Of the advantage of the right constants over round robin."""

    @property
    def drop(self) -> float:
        """Points."""
        return 100 * (self.right - self.wrong)

    @property
    def from_queues(self) -> float:
        """Points between wrong constants and the rule that counts reserved memory."""
        return 100 * abs(self.wrong - self.queues["LeastLoaded"])


def c9(parameters: Miscalibrated, _: Mapping[str, Workload]) -> ClaimRow:
    """Hold unequal cards against the gate; equal ones are shown."""
    figures: dict[str, float] = {}
    unequal = _wrong(parameters, parameters.slowest, parameters.rates_per_second, figures)
    equal = _wrong(parameters, 1.0, parameters.equal_rates_per_second, figures)
    return ClaimRow(
        CALIBRATED,
        ours="; ".join(
            f"{name}: {one.right:.3f} to {one.wrong:.3f} ({-one.drop:+.1f} points; "
            + ", ".join(f"{rule} {goodput:.3f}" for rule, goodput in one.queues.items())
            + f"), {one.p99_share_lost:.0%} of the P99 advantage over round robin lost"
            for name, one in ((f"cards 1..{parameters.slowest:g}", unequal), ("equal cards", equal))
        ),
        band=(
            "on unequal cards: more than 2 points and more than 25 % of the P99 advantage lost, and within 1 "
            "point of least loaded"
        ),
        verdict=overall([unequal.drop > 2, unequal.p99_share_lost > 0.25, unequal.from_queues < 1]),
        knob=(
            "how unequal cards are: the constants matter where cards differ; and which rule counts queues: "
            "with wrong constants it is as good as least outstanding"
        ),
        figures=figures,
        seed=parameters.seed,
    )


def _wrong(
    parameters: Miscalibrated, slowest: float, rates: Sequence[float], figures: dict[str, float]
) -> Wrong:
    pool = parameters.pool(parameters.instances, slowest)
    blind = replace(pool, belief=_blind(parameters))
    found: list[Mapping[str, Tried]] = []
    for rate in rates:
        mixed = parameters.mix(rate)
        tried = try_rules(parameters, pool, mixed, ("RoundRobin", *COUNTING, CLEVER))
        tried[WRONG] = try_rules(parameters, blind, mixed, (CLEVER,))[CLEVER]
        found.append(tried)
        cards = "equal cards" if slowest == 1.0 else f"cards 1..{slowest:g}"
        for name, one in tried.items():
            for what, value in one.figures():
                figures[f"{cards}, {rate:g}/s, {name}: {what}"] = value
    means = {rule: fmean(tried[rule].mean for tried in found) for rule in found[0]}
    advantage = sum(tried["RoundRobin"].p99 - tried[CLEVER].p99 for tried in found)
    kept = sum(tried["RoundRobin"].p99 - tried[WRONG].p99 for tried in found)
    return Wrong(
        means[CLEVER],
        means[WRONG],
        {rule: means[rule] for rule in COUNTING},
        1 - kept / advantage if advantage > 0 else 0.0,
    )


def _blind(parameters: Miscalibrated) -> Belief:
    card = parameters.card().timing
    timing = replace(card, step_sequence_ns=parameters.believed_step_sequence_ns, step_token_ns=0.0)
    return Belief(timing, LinkModel(0, ENDLESS), ENDLESS)


class ReportsAlone:
    """Least loaded for a router that does not count what it sent since the last report.

    So does each of many routers that share a pool and see little of what the others send.
    """

    def __init__(self, interval_ns: int) -> None:
        self._interval_ns = interval_ns
        self._due_ns = 0
        self._place = 0

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """The one that was least loaded at the last report."""
        if now_ns >= self._due_ns:
            self._place = LeastLoaded().choose(ask, instances, now_ns)
            self._due_ns = now_ns + self._interval_ns
        return self._place


class Scarce(RouterMix):
    """More than twice what a pool can do, seen through reports of several ages."""

    log_seconds: Span
    instances: Instances
    slowest: float = Field(gt=0, le=1)
    capacity_per_card: float = Field(gt=0)
    """Requests a second that a card of full speed serves with 95 % of promises kept."""
    overload: float = Field(gt=0)
    """Arrivals against that."""
    report_seconds: tuple[float, ...]
    slack_points: float = Field(ge=0)


def c11(parameters: Scarce, _: Mapping[str, Workload]) -> ClaimRow:
    """Hold the guarded rule against spraying, and spraying against greed, at every age of the reports.

    A greedy router that goes by reports alone is shown beside: it is kvpool's own baseline, none that the
    source compares.
    """
    pool = parameters.pool(parameters.instances, parameters.slowest)
    mixed = parameters.mix(parameters.capacity_per_card * parameters.overload * pool.full_cards)
    found = [
        (
            age,
            try_rules(
                parameters, replace(pool, report_interval_ns=round(age * 1e9)), mixed, _greedy_rules(age)
            ),
        )
        for age in parameters.report_seconds
    ]
    safe = [100 * (tried[GUARDED].mean - tried[SPRAY].mean) >= -parameters.slack_points for _, tried in found]
    beaten = [age for age, tried in found if tried[SPRAY].mean > min(tried[rule].mean for rule in GREEDY)]
    blind = [age for age, tried in found if tried[SPRAY].mean > tried[ALONE].mean]
    return ClaimRow(
        SCARCITY,
        ours="; ".join(
            f"reports {age:g} s old: " + ", ".join(f"{name} {one.mean:.3f}" for name, one in tried.items())
            for age, tried in found
        ),
        band=(
            f"with the guard at least spraying less {parameters.slack_points:g} points at every age; "
            "spraying above a greedy rule that counts what it sent itself at one age or more"
        ),
        verdict=overall([*safe, bool(beaten)]),
        knob=(
            "whether a router counts what it sent since the last report: spraying beats one that does "
            f"{_at(beaten)}, and one that goes by reports alone {_at(blind)}"
        ),
        figures={
            f"reports {age:g} s old, {name}: {what}": value
            for age, tried in found
            for name, one in tried.items()
            for what, value in one.figures()
        },
        seed=parameters.seed,
    )


def _at(ages: Sequence[float]) -> str:
    """At which ages of reports, in words."""
    return f"with reports {', '.join(f'{age:g} s' for age in ages)} old" if ages else "at no age of reports"


def _greedy_rules(report_seconds: float) -> dict[str, RouterFactory]:
    return {
        "RoundRobin": ROUTERS["RoundRobin"],
        SPRAY: ROUTERS[SPRAY],
        "LeastLoaded": ROUTERS["LeastLoaded"],
        ALONE: lambda draws: ReportsAlone(round(report_seconds * 1e9)),
        CLEVER: ROUTERS[CLEVER],
        GUARDED: lambda draws: Guarded(CompletionTime(), draws, GuardSettings(small_pool=0)),
    }


CALIBRATED: Final = Claim(
    number="C9",
    text="Wrong constants cost 4.5 points of goodput and 40 % of the tail advantage: no better than queues",
    source=SOURCE,
    reading=Reading.SECOND_HAND,
    kind=Kind.MEASURED,
)
SCARCITY: Final = Claim(
    number="C11",
    text="Under extreme scarcity spraying beats greedy rules",
    source=SOURCE,
    reading=Reading.SECOND_HAND,
    kind=Kind.MEASURED,
)

EXPERIMENTS: Final = (
    Experiment(CALIBRATED, Miscalibrated, run=c9),
    Experiment(SCARCITY, Scarce, run=c11),
)
