"""Time to first token of a session that returns to the tier it was parked in.

    TTFT_i = wait_i + lam_i + s / BW_i + prefill(context + new, hit = context)
    recompute = prefill(context + new, 0)

A tier is worth having only if `TTFT_i < recompute`. A transfer over several links runs at the rate of the
slowest and pays every set-up. kvpool's own derivation. Waiting for the accelerator is not in it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kvpool.plan.tiers.stack import Demand, Link, Stack, Tier, crossing_ns
from kvpool.plan.tiers.waiting import wait_quantile_ns
from kvpool.plan.timing.model import NS_PER_SECOND


class Way(NamedTuple):
    """What is fixed about one tier's way to the first tier, for one demand."""

    tier: Tier
    links: tuple[Link, ...]
    busy_ns: tuple[float, ...]
    """How long one session keeps each link busy."""
    load_ns: int
    """To bring a session to the first tier when nobody else does."""


def ways(stack: Stack, demand: Demand) -> tuple[Way, ...]:
    """The way of each tier, the fastest first; equal ones stay in their order."""
    by_name = {link.name: link for link in stack.links}
    found = []
    for tier in stack.tiers:
        links = tuple(by_name[name] for name in tier.path)
        busy = tuple(crossing_ns(link, demand.session_bytes) for link in links)
        found.append(
            Way(tier, links, busy, sum(link.setup_ns for link in links) + math.ceil(max(busy, default=0)))
        )
    return tuple(sorted(found, key=lambda way: way.load_ns))


def turn_ns(demand: Demand) -> int:
    """Time to first token once the session is in the first tier. Nanoseconds; 0 without a timing model."""
    if demand.timing is None:
        return 0
    whole = demand.context_tokens + demand.new_tokens
    return demand.timing.prefill_ns(whole, demand.context_tokens)


def recompute_ns(demand: Demand) -> int | None:
    """Time to first token when nothing was kept. Nanoseconds; None without a timing model."""
    if demand.timing is None:
        return None
    return demand.timing.prefill_ns(demand.context_tokens + demand.new_tokens)


def returns_of(demand: Demand, tiers: Sequence[Way], held: Sequence[int], sessions: int) -> tuple[float, ...]:
    """Returns a second that find their session in each tier."""
    if demand.return_shares is None:
        return tuple(count / demand.return_seconds for count in held)
    shares = demand.return_shares
    return tuple(sessions * shares.get(way.tier.name, 0.0) / demand.return_seconds for way in tiers)


def loads_of(tiers: Sequence[Way], returns: Sequence[float]) -> dict[str, float]:
    """Share of its time that each link is busy with returns, by link."""
    loads: dict[str, float] = {}
    for way, rate in zip(tiers, returns, strict=True):
        for link, busy in zip(way.links, way.busy_ns, strict=True):
            loads[link.name] = loads.get(link.name, 0.0) + rate * busy / NS_PER_SECOND
    return loads


def waiting_ns(way: Way, loads: Mapping[str, float], quantile: float) -> float:
    """The quantile of waiting on the whole way: the links' quantiles added, which is never too little."""
    return sum(
        wait_quantile_ns(busy, loads[link.name], quantile)
        for link, busy in zip(way.links, way.busy_ns, strict=True)
    )
