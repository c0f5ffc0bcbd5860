"""Claims about how many sessions tiers hold and what they cost: two of them are arithmetic, and say so."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Final, Self

from pydantic import Field, model_validator

from kvpool.plan.tiers.cost import BYTES_PER_GB, cost_of
from kvpool.plan.tiers.planner import plan_tiers
from kvpool.plan.tiers.stack import Demand, Stack, Tier
from kvpool.sim.claims.experiment import Above, Experiment, Parameters, Whole
from kvpool.sim.claims.row import Claim, ClaimRow, Kind, Reading, Verdict
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.generators.bounds import in_order
from kvpool.sim.workloads.request import Workload

NEVER_SECONDS: Final = 1e12
"""Between returns, where only room is asked for."""

TIERS: Final = ("HBM", "DRAM", "SSD")
_TUMKUR: Final = "Tumkur et al., Where Should the KV Cache Live?, arXiv 2609.16215 (Sep 2026)"


class Ratio(Parameters):
    """Tiers at a ratio, filled with sessions of one size."""

    ratios: tuple[Whole, Whole, Whole]
    least_base_sessions: int = Field(ge=1, le=10_000)
    most_base_sessions: int = Field(ge=1, le=10_000)
    """Sessions that the first tier alone holds: every number from the least on is tried."""
    left_over_percent: int = Field(ge=0, le=99)
    """Of one session, what stays free in the first tier."""
    session_bytes: tuple[Whole, ...]
    drawn_fillings: int = Field(ge=1, le=10_000)
    """Fillings with sizes drawn evenly between the smallest and the largest; their mean is shown."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        in_order(
            "least_base_sessions", self.least_base_sessions, "most_base_sessions", self.most_base_sessions
        )
        return self


class Prices(Parameters):
    """Prices of the tiers, with the sessions of the ratio."""

    ratios: tuple[Whole, Whole, Whole]
    base_sessions: int = Field(ge=1)
    left_over_percent: int = Field(ge=0, le=99)
    session_bytes: int = Field(ge=1)
    price_per_gb: tuple[Above, float, float]
    """Of accelerator memory (the accelerator's price over its memory), host memory and drives."""


def c1(parameters: Ratio, _: Mapping[str, Workload]) -> ClaimRow:
    """Fill the tiers by the plan and one by one; both must agree, and lie in the band."""
    gains, disagreeing = [], 0
    for base in range(parameters.least_base_sessions, parameters.most_base_sessions + 1):
        for size in parameters.session_bytes:
            stack = _stack(parameters.ratios, base, parameters.left_over_percent, size)
            plan = plan_tiers(stack, Demand(size, NEVER_SECONDS))
            disagreeing += plan.sessions != filled_one_by_one(stack, repeat(size))
            gains.append(plan.sessions / plan.base_sessions)
    mixed = _mixed_gain(parameters)
    low, high = min(gains), max(gains)
    widest = sum(parameters.ratios) * (parameters.least_base_sessions + 0.99) / parameters.least_base_sessions
    holds = disagreeing == 0 and 72.5 <= low <= high <= 73.5
    return ClaimRow(
        RATIO_CLAIM,
        ours=(
            f"{low:.3f}x to {high:.3f}x; with sizes drawn from {min(parameters.session_bytes) // 10**6} to "
            f"{max(parameters.session_bytes) // 10**6} MB {mixed:.1f}x; up to {widest:.1f}x when almost a "
            f"session stays free"
        ),
        band="72.5x to 73.5x; the plan and filling one by one agree",
        verdict=Verdict.IDENTITY if holds else Verdict.NO,
        knob="the ratio is the answer: 1 + 8 + 64 = 73; left_over_percent and the base decide the decimals",
        figures={
            "least gain": low,
            "most gain": high,
            "gain with sizes drawn": mixed,
            "fillings that disagree with the plan": disagreeing,
        },
        seed=parameters.seed,
    )


def filled_one_by_one(stack: Stack, sizes: Iterator[int]) -> int:
    """Put sessions into the first tier that has room for them, until one is refused."""
    free = [tier.capacity_bytes for tier in stack.tiers]
    for held, size in enumerate(sizes):
        place = next((index for index, room in enumerate(free) if room >= size), None)
        if place is None:
            return held
        free[place] -= size
    raise ValueError("there were no more sessions before one was refused: give an endless stream of sizes")


def _mixed_gain(parameters: Ratio) -> float:
    """Mean gain with session sizes drawn evenly between the smallest and the largest."""
    low, high = min(parameters.session_bytes), max(parameters.session_bytes)
    base = (parameters.least_base_sessions + parameters.most_base_sessions) // 2
    stack = _stack(parameters.ratios, base, parameters.left_over_percent, (low + high) // 2)
    alone = Stack(stack.tiers[:1])
    stream = Stream(parameters.seed).split("sizes")
    fillings = range(parameters.drawn_fillings)
    every = sum(filled_one_by_one(stack, _drawn(stream.split("all", turn), low, high)) for turn in fillings)
    first = sum(filled_one_by_one(alone, _drawn(stream.split("first", turn), low, high)) for turn in fillings)
    return every / first


def _drawn(stream: Stream, low: int, high: int) -> Iterator[int]:
    while True:
        yield low + stream.below(high - low + 1)


def _stack(
    ratios: Sequence[int], base: int, left_over_percent: int, session_bytes: int, prices: Sequence[float] = ()
) -> Stack:
    first = base * session_bytes + session_bytes * left_over_percent // 100
    each = prices or (0.0,) * len(ratios)
    return Stack(
        tuple(
            Tier(name, first * ratio, price=first * ratio / BYTES_PER_GB * price)
            for name, ratio, price in zip(TIERS, ratios, each, strict=True)
        )
    )


def c2(parameters: Prices, _: Mapping[str, Workload]) -> ClaimRow:
    """Hold the saving with the default prices against the band, and show what other prices do."""
    saving = _saving(parameters, parameters.price_per_gb)
    swayed = {
        f"saving with {name} at {factor}x": _saving(
            parameters,
            tuple(price * factor if other == name else price for other, price in _priced(parameters)),
        )
        for name in TIERS
        for factor in (0.5, 2.0)
    }
    shown = ", ".join(
        f"{name} {swayed[f'saving with {name} at 0.5x']:.1f}x to {swayed[f'saving with {name} at 2.0x']:.1f}x"
        for name in TIERS
    )
    lower = sum(
        ratio * price for ratio, price in zip(parameters.ratios[1:], parameters.price_per_gb[1:], strict=True)
    )
    share = lower / parameters.price_per_gb[0]
    return ClaimRow(
        PRICE_CLAIM,
        ours=f"{saving:.2f}x; with half to twice the price of {shown}",
        band="61x to 63x with the default prices",
        verdict=Verdict.IDENTITY if 61 <= saving <= 63 else Verdict.NO,
        knob=f"price_per_gb: gain / (1 + {share:.3f}), the price of the lower tiers over that of the first",
        figures={"saving": saving, "lower tiers over the first": share, **swayed},
        seed=parameters.seed,
    )


def _priced(parameters: Prices) -> Iterator[tuple[str, float]]:
    return zip(TIERS, parameters.price_per_gb, strict=True)


def _saving(parameters: Prices, prices: Sequence[float]) -> float:
    size = parameters.session_bytes
    stack = _stack(parameters.ratios, parameters.base_sessions, parameters.left_over_percent, size, prices)
    saving = cost_of(stack, plan_tiers(stack, Demand(size, NEVER_SECONDS))).saving
    return math.inf if saving is None else saving


RATIO_CLAIM: Final = Claim(
    number="C1",
    text="73.02 times the sessions with memory at 1 : 8 : 64",
    source=_TUMKUR,
    reading=Reading.SECOND_HAND,
    kind=Kind.IDENTITY,
)
PRICE_CLAIM: Final = Claim(
    number="C2",
    text="A session costs 62.04 times less with memory at 1 : 8 : 64",
    source=_TUMKUR,
    reading=Reading.SECOND_HAND,
    kind=Kind.IDENTITY,
)

EXPERIMENTS: Final = (
    Experiment(RATIO_CLAIM, Ratio, run=c1),
    Experiment(PRICE_CLAIM, Prices, run=c2),
)
