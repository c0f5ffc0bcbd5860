"""What completion-time routing gains over simple rules, on which cards, and from which pool size on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import Field

from kvpool.sim.claims.experiment import Above, Experiment, Share
from kvpool.sim.claims.router_settings import (
    CLEVER,
    SIMPLE,
    SOURCE,
    Instances,
    RouterMix,
    Tried,
    best_simple,
    overall,
    try_rules,
)
from kvpool.sim.claims.row import Claim, ClaimRow, Kind, Reading
from kvpool.sim.workloads.generators.bounds import Span
from kvpool.sim.workloads.request import Workload

NOISE: Final = 0.02
"""Goodput by which the same rule differs on logs of other seeds."""
SMALL_POOL: Final = 3


class Goodput(RouterMix):
    """One pool under several loads, with equal and with unequal cards."""

    instances: Instances
    slowest: float = Field(gt=0, le=1)
    """Speed of the slowest of the unequal cards."""
    rates_per_card: tuple[Above, ...]
    """Requests a second for each card of full speed."""
    informative_from: Share
    informative_to: Share
    """Loads at which the clever rule keeps this share of its promises are held against the gate."""


@dataclass(frozen=True, slots=True)
class Load:
    """All rules on one pool under one load."""

    name: str
    slowest: float
    tried: Mapping[str, Tried]

    @property
    def clever(self) -> Tried:
        """Completion time."""
        return self.tried[CLEVER]

    @property
    def gain(self) -> float:
        """Over the best simple rule, points."""
        return 100 * (self.clever.mean - best_simple(self.tried).mean)

    def figures(self) -> Iterator[tuple[str, float]]:
        """Goodput and 99th percentile of every rule."""
        for rule, one in self.tried.items():
            for what, value in one.figures():
                yield f"{self.name}, {rule}: {what}", value


def loads(parameters: Goodput) -> list[Load]:
    """Try every rule at every load, on equal cards and on unequal ones."""
    return [
        _load(parameters, parameters.instances, slowest, rate, (*SIMPLE, CLEVER))
        for slowest in (1.0, parameters.slowest)
        for rate in parameters.rates_per_card
    ]


def _load(
    parameters: RouterMix,
    count: int,
    slowest: float,
    rate: float,
    rules: Sequence[str],
    *,
    equal_requests: bool = False,
) -> Load:
    pool = parameters.pool(count, slowest)
    mixed = parameters.mix(rate * pool.full_cards, equal=equal_requests)
    cards = "equal cards" if slowest == 1.0 else f"cards 1..{slowest:g}"
    requests = "equal requests, " if equal_requests else ""
    name = f"{count} {cards}, {requests}{rate:g}/s a card"
    return Load(name, slowest, try_rules(parameters, pool, mixed, rules))


def c8(parameters: Goodput, _: Mapping[str, Workload]) -> ClaimRow:
    """Hold every informative load against the gate."""
    results = loads(parameters)
    low, high = parameters.informative_from, parameters.informative_to
    gated = [one for one in results if low <= one.clever.mean <= high]
    return ClaimRow(
        GOODPUT,
        ours="; ".join(
            f"{one.name}: {one.clever.mean:.3f} against "
            + ", ".join(f"{one.tried[rule].mean:.3f} {rule}" for rule in SIMPLE)
            for one in gated
        ),
        band=(
            f"where it is {low:g}-{high:g}: best mean over {parameters.logs} logs; above round robin and "
            f"length on each log; the smallest spread over logs, or within {NOISE:g} of it"
        ),
        verdict=overall([held for one in gated for held in _parts(one)]),
        knob=(
            "load, and how unequal cards are: unequal ones gain most, and there round robin is the steadiest "
            "rule, as it fails on every log"
        ),
        figures={name: value for one in results for name, value in one.figures()},
        seed=parameters.seed,
    )


def _parts(one: Load) -> tuple[bool, bool, bool]:
    """Whether each part of the gate held: above two rules on each log, steady, the best mean."""
    tried, clever = one.tried, one.clever
    others = [tried[rule] for rule in SIMPLE]
    beaten = all(
        mine > theirs
        for rule in ("RoundRobin", "LengthAware")
        for mine, theirs in zip(clever.goodput, tried[rule].goodput, strict=True)
    )
    steady = clever.spread <= min(other.spread for other in others) + NOISE
    return beaten, steady, all(clever.mean >= other.mean for other in others)


class PoolSizes(RouterMix):
    """Pools of several sizes under the same load for each card."""

    log_seconds: Span
    sizes: tuple[Instances, ...]
    slowest: float = Field(gt=0, le=1)
    rate_per_card: float = Field(gt=0)
    equal_rate_per_card: float = Field(gt=0)
    """For requests that are all alike."""


def c10(parameters: PoolSizes, _: Mapping[str, Workload]) -> ClaimRow:
    """Hold small pools of equal cards against the gate; say what unequal cards gain."""
    rules = (*SIMPLE, CLEVER)

    def sized(slowest: float, *, equal_requests: bool) -> list[tuple[int, Load]]:
        rate = parameters.equal_rate_per_card if equal_requests else parameters.rate_per_card
        return [
            (size, _load(parameters, size, slowest, rate, rules, equal_requests=equal_requests))
            for size in parameters.sizes
        ]

    alike, mixed = sized(1.0, equal_requests=True), sized(1.0, equal_requests=False)
    unequal = sized(parameters.slowest, equal_requests=False)
    small = [one for size, one in (*alike, *mixed) if size <= SMALL_POOL]
    grows = mixed[-1][1].gain > max(one.gain for size, one in mixed if size <= SMALL_POOL)
    return ClaimRow(
        SMALL_POOLS,
        ours=(
            f"points over the best simple rule at {', '.join(map(str, parameters.sizes))} instances: equal "
            f"requests {_gains(alike)}; mixed {_gains(mixed)}; cards 1..{parameters.slowest:g} "
            f"{_gains(unequal)}"
        ),
        band="equal cards, up to 3 instances: less than 1 point either way; more at the largest pool",
        verdict=overall([*(abs(one.gain) < 1 for one in small), grows]),
        knob="how unequal cards are: unequal ones gain in small pools too",
        figures={
            name: value
            for _, one in (*alike, *mixed, *unequal)
            for name, value in (*one.figures(), (f"{one.name}: gain points", round(one.gain, 2)))
        },
        seed=parameters.seed,
    )


def _gains(results: Sequence[tuple[int, Load]]) -> str:
    return ", ".join(f"{one.gain:+.1f}" for _, one in results)


class FewerCards(RouterMix):
    """A pool with the clever rule against one with a card more, the slowest, and round robin."""

    fewer: Instances
    more: Instances
    slowest: float = Field(gt=0, le=1)
    """Of the larger pool; speeds fall evenly to it."""
    rates_per_second: tuple[Above, ...]
    equal_rates_per_second: tuple[Above, ...]


def c12(parameters: FewerCards, _: Mapping[str, Workload]) -> ClaimRow:
    """Hold unequal cards against the gate at every load; equal ones are shown."""
    figures: dict[str, float] = {}
    rates = parameters.rates_per_second
    unequal = [_fewer(parameters, parameters.slowest, rate, figures) for rate in rates]
    spread = [_fewer(parameters, parameters.slowest, rate, figures, spread=True) for rate in rates]
    equal = [_fewer(parameters, 1.0, rate, figures) for rate in parameters.equal_rates_per_second]
    failed = [
        f"{rate:g}/s with cards {less}"
        for less, pairs in (("without the slowest", unequal), ("of the same range", spread))
        for rate, (clever, plain) in zip(rates, pairs, strict=True)
        if clever < plain
    ]

    def told(pairs: Sequence[tuple[float, float]]) -> str:
        return ", ".join(f"{clever:.3f} against {plain:.3f}" for clever, plain in pairs)

    return ClaimRow(
        FEWER,
        ours=(
            f"cards 1..{parameters.slowest:g}, without the slowest: {told(unequal)}; fewer cards of the same "
            f"range: {told(spread)}; equal cards: {told(equal)}"
        ),
        band=(
            f"at every load of unequal cards: at least as much on {parameters.fewer} as round robin on "
            f"{parameters.more}, whichever card is the one less"
        ),
        verdict=overall([clever >= plain for clever, plain in (*unequal, *spread)]),
        knob=(
            "load, which card is the one less, and how unequal cards are: "
            f"it fails at {', '.join(failed) or 'no load'}; on equal ones a card more is worth more than any "
            "rule"
        ),
        figures=figures,
        seed=parameters.seed,
    )


def _fewer(
    parameters: FewerCards, slowest: float, rate: float, figures: dict[str, float], *, spread: bool = False
) -> tuple[float, float]:
    """Goodput of the clever rule on fewer cards, and of round robin on more.

    The fewer ones are the larger pool without its slowest card, or, `spread`, of the same range of speeds.
    """
    cards = "equal cards" if slowest == 1.0 else f"cards 1..{slowest:g}"
    larger = parameters.pool(parameters.more, slowest)
    smaller = replace(larger, speeds=larger.speeds[: parameters.fewer])
    if spread:
        cards += " of the same range"
        smaller = parameters.pool(parameters.fewer, slowest)
    mixed = parameters.mix(rate)
    clever = try_rules(parameters, smaller, mixed, [CLEVER])[CLEVER]
    plain = try_rules(parameters, larger, mixed, ["RoundRobin"])["RoundRobin"]
    figures[f"{cards}, {rate:g}/s, {CLEVER} on {parameters.fewer}: goodput"] = round(clever.mean, 4)
    figures[f"{cards}, {rate:g}/s, RoundRobin on {parameters.more}: goodput"] = round(plain.mean, 4)
    return clever.mean, plain.mean


GOODPUT: Final = Claim(
    number="C8",
    text="Goodput 0.864 by completion time against 0.835-0.847 by round robin, least loaded and length",
    source=SOURCE,
    reading=Reading.SECOND_HAND,
    kind=Kind.MEASURED,
)
SMALL_POOLS: Final = Claim(
    number="C10",
    text="The gain vanishes at three instances and grows with the pool and with the mix of requests",
    source=SOURCE,
    reading=Reading.SECOND_HAND,
    kind=Kind.MEASURED,
)
FEWER: Final = Claim(
    number="C12",
    text="Six cards with completion time serve as much as seven with round robin",
    source=SOURCE,
    reading=Reading.SECOND_HAND,
    kind=Kind.MEASURED,
)

EXPERIMENTS: Final = (
    Experiment(GOODPUT, Goodput, run=c8),
    Experiment(SMALL_POOLS, PoolSizes, run=c10),
    Experiment(FEWER, FewerCards, run=c12),
)
