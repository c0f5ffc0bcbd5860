"""What sessions cost, in money and watts, and up to which price a tier pays.

    cost per session   Q = (P_1 + sum of P_i) / N
    saving             Q(first tier alone) / Q(all) = gain / (1 + P_lower / P_1)
    break-even price   of tier i: P_i = Q(without i) * (N - N(without i)), so that having it changes nothing

kvpool's own derivation. P_1 is the price of the accelerators. Gigabytes are 10^9 bytes.
"""

from dataclasses import dataclass, replace
from typing import Final

from kvpool.plan.tiers.planner import TierPlan, plan_tiers
from kvpool.plan.tiers.stack import Demand, Stack

BYTES_PER_GB: Final = 10**9


@dataclass(frozen=True, slots=True)
class Cost:
    """Money and watts of one plan. What nobody is served for has no cost per session: None."""

    price: float
    watts: float
    price_per_session: float | None
    watts_per_session: float | None
    saving: float | None
    """How many times cheaper a session is than in the first tier alone; None without its price."""


def cost_of(stack: Stack, plan: TierPlan) -> Cost:
    """Return what the sessions of a plan cost."""
    price = sum(tier.price for tier in stack.tiers)
    watts = sum(tier.watts for tier in stack.tiers)
    each = price / plan.sessions if plan.sessions else None
    alone = stack.tiers[0].price / plan.base_sessions if plan.base_sessions else None
    return Cost(
        price=price,
        watts=watts,
        price_per_session=each,
        watts_per_session=watts / plan.sessions if plan.sessions else None,
        saving=alone / each if alone and each else None,
    )


def break_even_price_per_gb(stack: Stack, demand: Demand, plan: TierPlan, name: str) -> float | None:
    """Return the price per gigabyte up to which a lower tier makes sessions cheaper.

    None when the tier is empty, or nothing is served without it: then any price is right or none.
    """
    tier = next(tier for tier in stack.tiers if tier.name == name)
    without = replace(stack, tiers=tuple(other for other in stack.tiers if other.name != name))
    sessions = plan_tiers(without, demand).sessions
    if not sessions or not tier.capacity_bytes:
        return None
    each = sum(other.price for other in without.tiers) / sessions
    return each * (plan.sessions - sessions) / (tier.capacity_bytes / BYTES_PER_GB)
