"""Which ratio of prefill to decode a group should have, by which objective, and what limits it.

Throughput by rate matching as AIConfigurator 0.12 searches it, formula in `rates` and `split`; times by the
queueing formulas in `latency`. That a better split must be worth a change is kvpool's own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final

from kvpool.plan.ratio.demand import Promise, Shape
from kvpool.plan.ratio.latency import Latencies, Latency
from kvpool.plan.ratio.rates import Impossible, Limit, Rates, Roles, rates
from kvpool.plan.ratio.split import ANY, EQUAL_SHARE, Bounds, Split, best_split, splits

WORTH_A_CHANGE: Final = 1.05
"""A split must be this much better than the one in place before it is recommended."""


class Objective(StrEnum):
    """What a ratio is chosen for."""

    THROUGHPUT = "Throughput"
    """Most requests a second for each card."""
    TTFT = "TTFT"
    TPOT = "TPOT"
    END_TO_END = "EndToEnd"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a ratio is wanted for."""

    shapes: Sequence[Shape]
    """At least one."""
    promise: Promise
    objective: Objective = Objective.THROUGHPUT
    cards: int | None = None
    """To use at most; None: as many as give the best ratio."""
    requests_per_1000_seconds: int | None = None
    """The mean load. None: the most that can be carried; then every objective but throughput has nothing to
    weigh, and throughput decides."""
    bounds: Bounds = ANY


@dataclass(frozen=True, slots=True)
class Recommended:
    """A split, and why."""

    split: Split
    rates: Rates
    carried: float
    """Requests a second that the split carries at most."""
    limited_by: Limit
    text: str


def recommend(roles: Roles, asked: Asked) -> Recommended | Impossible:
    """The best split for an objective, or the limit that no split keeps."""
    per_instance = rates(roles, asked.shapes, asked.promise)
    if isinstance(per_instance, Impossible):
        return per_instance
    best = _chosen(roles, asked, per_instance)
    if isinstance(best, Impossible):
        return best
    return _told(roles, asked, per_instance, best)


def recommend_beside(current: Split, roles: Roles, asked: Asked) -> Recommended | Impossible:
    """As `recommend`, but keep the split in place unless another is at least 5 % better."""
    found = recommend(roles, asked)
    if isinstance(found, Impossible) or found.split == current or not asked.bounds.allow(current):
        return found
    if asked.cards is not None and current.cards(roles.prefill_cards, roles.decode_cards) > asked.cards:
        return found
    value = _worth(roles, asked, found.rates)
    if value(found.split) < WORTH_A_CHANGE * value(current):
        return _told(roles, asked, found.rates, current)
    return found


def _chosen(roles: Roles, asked: Asked, per_instance: Rates) -> Split | Impossible:
    cards = (roles.prefill_cards, roles.decode_cards)
    if asked.objective is Objective.THROUGHPUT or asked.requests_per_1000_seconds is None:
        best = best_split(per_instance.prefill, per_instance.decode, *cards, asked.cards, asked.bounds)
        return best if best is not None else _nothing_fits(roles, asked)
    tried = list(splits(*cards, asked.cards, asked.bounds))
    if not tried:
        return _nothing_fits(roles, asked)
    load = asked.requests_per_1000_seconds / 1000
    able = [split for split in tried if split.rate(per_instance.prefill, per_instance.decode) >= load]
    if not able:
        most = max(split.rate(per_instance.prefill, per_instance.decode) for split in tried)
        return Impossible(
            Limit.CARDS,
            f"{load:.3f} requests a second are {load - most:.3f} more than any split tried carries "
            f"({most:.3f}): more cards, or wider ratio bounds",
        )
    if asked.cards is None:
        fewest = min(split.cards(*cards) for split in able)
        able = [split for split in able if split.cards(*cards) == fewest]
    value = _worth(roles, asked, per_instance)
    enough = EQUAL_SHARE * max(map(value, able))
    return min(
        (split for split in able if value(split) >= enough),
        key=lambda split: (split.cards(*cards), -value(split), split.prefill),
    )


def _worth(roles: Roles, asked: Asked, per_instance: Rates) -> Callable[[Split], float]:
    """More is better: requests a second, for each card when those are free, or one over a latency."""
    load = asked.requests_per_1000_seconds

    def by_rate(split: Split) -> float:
        carried = split.rate(per_instance.prefill, per_instance.decode)
        return carried if asked.cards is not None else carried / split.cards(*cards)

    cards = (roles.prefill_cards, roles.decode_cards)
    if asked.objective is Objective.THROUGHPUT or load is None:
        return by_rate
    latencies = Latencies(roles, asked.shapes, load)

    def by_latency(split: Split) -> float:
        spent = _spent(latencies.of(split), asked.objective)
        return 0.0 if spent == inf else 1 / spent

    return by_latency


def _spent(found: Latency, objective: Objective) -> float:
    if objective is Objective.TTFT:
        return found.ttft_ns
    if objective is Objective.TPOT:
        return found.tpot_ns
    return found.end_to_end_ns


def _nothing_fits(roles: Roles, asked: Asked) -> Impossible:
    least = roles.prefill_cards + roles.decode_cards
    if asked.cards is not None and asked.cards < least:
        return Impossible(
            Limit.CARDS,
            f"one instance of each role takes {least} cards, {least - asked.cards} more than the "
            f"{asked.cards} there are",
        )
    return Impossible(
        Limit.RATIO_BOUNDS,
        f"no split of {asked.cards if asked.cards is not None else 'up to 16 instances a role'} "
        f"keeps the ratio within {_bounds_text(asked.bounds)}: widen the bounds",
    )


def _told(roles: Roles, asked: Asked, per_instance: Rates, split: Split) -> Recommended:
    prefill, decode = split.prefill * per_instance.prefill, split.decode * per_instance.decode
    limit = Limit.PREFILL_RATE if prefill <= decode else per_instance.decode_limit
    text = (
        f"{split}: prefill carries {prefill:.2f} requests a second ({per_instance.prefill:.2f} each), decode "
        f"{decode:.2f} ({per_instance.decode:.2f} each, batch {per_instance.batch}, held by "
        f"{per_instance.decode_limit}); equal at {per_instance.decode / per_instance.prefill:.2f} to 1"
    )
    if _bound_matters(roles, asked, per_instance, split):
        limit = Limit.RATIO_BOUNDS
        text += f"; the bounds {_bounds_text(asked.bounds)} keep it from a better one"
    return Recommended(split, per_instance, min(prefill, decode), limit, text)


def _bound_matters(roles: Roles, asked: Asked, per_instance: Rates, split: Split) -> bool:
    """Tell whether a split outside the bounds would carry noticeably more."""
    if asked.bounds == ANY:
        return False
    cards = (roles.prefill_cards, roles.decode_cards)
    free = best_split(per_instance.prefill, per_instance.decode, *cards, asked.cards)
    if free is None or asked.bounds.allow(free):
        return False

    def worth(one: Split) -> float:
        return one.rate(per_instance.prefill, per_instance.decode) / one.cards(*cards)

    return worth(free) > WORTH_A_CHANGE * worth(split)


def _bounds_text(bounds: Bounds) -> str:
    most = "any" if bounds.most is None else f"{bounds.most.numerator}/{bounds.most.denominator}"
    return f"{bounds.least.numerator}/{bounds.least.denominator} to {most}"
