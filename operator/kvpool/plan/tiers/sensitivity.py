"""What becomes of a plan when one constant is half or twice what was believed.

One constant at a time, the others as they are; the factors are kvpool's own choice.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from kvpool.plan.tiers.cost import Cost, cost_of
from kvpool.plan.tiers.planner import TierPlan, plan_tiers
from kvpool.plan.tiers.stack import Demand, Stack
from kvpool.plan.timing.model import TimingModel

FACTORS: Final = (0.5, 2.0)

_Change = Callable[[Stack, Demand, float], tuple[Stack, Demand]]


@dataclass(frozen=True, slots=True)
class Sway:
    """One constant, at half and at twice its value."""

    constant: str
    plans: tuple[TierPlan, TierPlan]
    costs: tuple[Cost, Cost]


def sensitivity(stack: Stack, demand: Demand) -> tuple[Sway, ...]:
    """Return every constant of a plan with what half and twice of it lead to."""
    swayed = []
    for name, change in _changes(stack, demand):
        changed = [change(stack, demand, factor) for factor in FACTORS]
        plans = [plan_tiers(*pair) for pair in changed]
        costs = [cost_of(pair[0], plan) for pair, plan in zip(changed, plans, strict=True)]
        swayed.append(Sway(name, (plans[0], plans[1]), (costs[0], costs[1])))
    return tuple(swayed)


def _changes(stack: Stack, demand: Demand) -> list[tuple[str, _Change]]:
    found: list[tuple[str, _Change]] = [
        ("bytes of a session", _session_bytes),
        ("time between returns", _return_seconds),
    ]
    if demand.timing is not None:
        found.append(("prefill time", _prefill))
    found.extend((f"rate of {link.name}", _rate_of(link.name)) for link in stack.links)
    for tier in stack.tiers:
        if tier.price:
            found.append((f"price of {tier.name}", _price_of(tier.name)))
        if tier.write_bytes_per_day is not None:
            found.append((f"endurance of {tier.name}", _endurance_of(tier.name)))
    return found


def _session_bytes(stack: Stack, demand: Demand, factor: float) -> tuple[Stack, Demand]:
    return stack, replace(
        demand,
        session_bytes=max(1, round(demand.session_bytes * factor)),
        new_bytes=round(demand.new_bytes * factor),
    )


def _return_seconds(stack: Stack, demand: Demand, factor: float) -> tuple[Stack, Demand]:
    return stack, replace(demand, return_seconds=demand.return_seconds * factor)


def _prefill(stack: Stack, demand: Demand, factor: float) -> tuple[Stack, Demand]:
    timing = demand.timing
    assert timing is not None
    return stack, replace(demand, timing=_slower(timing, factor))


def _slower(timing: TimingModel, factor: float) -> TimingModel:
    return replace(
        timing,
        prefill_base_ns=timing.prefill_base_ns * factor,
        prefill_token_ns=timing.prefill_token_ns * factor,
        prefill_square_ns=timing.prefill_square_ns * factor,
    )


def _rate_of(name: str) -> _Change:
    def change(stack: Stack, demand: Demand, factor: float) -> tuple[Stack, Demand]:
        links = tuple(
            replace(link, bytes_per_second=max(1, round(link.bytes_per_second * factor)))
            if link.name == name
            else link
            for link in stack.links
        )
        return replace(stack, links=links), demand

    return change


def _price_of(name: str) -> _Change:
    def change(stack: Stack, demand: Demand, factor: float) -> tuple[Stack, Demand]:
        tiers = tuple(
            replace(tier, price=tier.price * factor) if tier.name == name else tier for tier in stack.tiers
        )
        return replace(stack, tiers=tiers), demand

    return change


def _endurance_of(name: str) -> _Change:
    def change(stack: Stack, demand: Demand, factor: float) -> tuple[Stack, Demand]:
        tiers = tuple(
            replace(tier, write_bytes_per_day=round((tier.write_bytes_per_day or 0) * factor))
            if tier.name == name
            else tier
            for tier in stack.tiers
        )
        return replace(stack, tiers=tiers), demand

    return change
