"""The four limits of a plan, each as the number of sessions that it alone would allow.

    capacity     sessions that find room                                          (`filling`)
    bandwidth    returns of the tiers behind a link: n_i * s / tau <= utilisation * BW
    endurance    writes into a tier: a session that returns from it or from behind it pushes another one in,
    so
                 (n_i + n_i+1 + ...) * s / tau <= budget; inclusive tiers write what each turn adds
    latency      every tier that holds sessions meets the target at its quantile, waiting for links included,
                 and is faster than computing the prefix again                    (`latency`)

kvpool's own derivation. Bandwidth, endurance and latency are asked as if the last tier had no end, so that
each says how far it would carry if there were room.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kvpool.plan.tiers.filling import filled
from kvpool.plan.tiers.latency import Way, loads_of, recompute_ns, returns_of, turn_ns, waiting_ns
from kvpool.plan.tiers.stack import SECONDS_PER_DAY, Demand, Link


class LimitedBy(StrEnum):
    """What keeps a plan from more sessions."""

    CAPACITY = "Capacity"
    BANDWIDTH = "Bandwidth"
    LATENCY = "Latency"
    ENDURANCE = "Endurance"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit."""

    kind: LimitedBy
    where: str
    """The tier, or the link for Bandwidth."""
    sessions: int | None
    """Sessions that it alone would allow; None: any number."""
    one_needs: int
    """What one session asks of it: bytes; bytes a second; nanoseconds; bytes a day."""
    there_is: int
    """What there is, in the same unit."""


def capacity_limit(tiers: Sequence[Way], room: Sequence[int], demand: Demand) -> Limit:
    """Sessions that find room in all tiers together."""
    total = sum(way.tier.capacity_bytes for way in tiers)
    return Limit(LimitedBy.CAPACITY, tiers[-1].tier.name, sum(room), demand.session_bytes, total)


def bandwidth_limit(tiers: Sequence[Way], room: Sequence[int], demand: Demand, link: Link) -> Limit:
    """Sessions whose returns one link carries at the utilisation that is allowed."""
    there_is = math.floor(demand.utilisation * link.bytes_per_second)
    one_needs = math.ceil(demand.session_bytes / demand.return_seconds)
    crossing = [link in way.links for way in tiers]
    budget = there_is * demand.return_seconds / demand.session_bytes
    sessions = _most(tiers, room, demand, crossing, budget)
    return Limit(LimitedBy.BANDWIDTH, link.name, sessions, one_needs, there_is)


def endurance_limit(
    tiers: Sequence[Way], room: Sequence[int], demand: Demand, index: int, *, exclusive: bool
) -> Limit:
    """Sessions whose writes one tier survives until the end of its warranty."""
    way = tiers[index]
    there_is = way.tier.write_bytes_per_day
    written = demand.session_bytes if exclusive else demand.new_bytes
    one_needs = math.ceil(written * SECONDS_PER_DAY / demand.return_seconds)
    sessions: int | None = None
    if there_is is not None and one_needs:
        budget = there_is * demand.return_seconds / (written * SECONDS_PER_DAY)
        crossing = [not exclusive or position >= index for position in range(len(tiers))]
        sessions = _most(tiers, room, demand, crossing, budget)
    return Limit(LimitedBy.ENDURANCE, way.tier.name, sessions, one_needs, there_is or 0)


def latency_limit(tiers: Sequence[Way], room: Sequence[int], demand: Demand) -> Limit:
    """Sessions that meet the target at the quantile in every tier that holds any."""
    turn, target, again = turn_ns(demand), demand.ttft_target_ns, recompute_ns(demand)
    most = _carried(tiers, room, demand)
    for index, way in enumerate(tiers):
        bounds = [target] if target is not None else []
        if index and again is not None:
            bounds.append(again)
        if bounds and way.load_ns + turn > min(bounds) and _share(demand, way) > 0:
            # Even alone a session of this tier is too late: none may be here, so none behind it either.
            reached = 0 if demand.return_shares else sum(room[:index])
            sessions = _meeting(tiers, room, demand, reached if most is None else min(most, reached))
            return Limit(LimitedBy.LATENCY, way.tier.name, sessions, way.load_ns + turn, min(bounds))
    slowest = tiers[-1]
    held = None if target is None or most is None else _meeting(tiers, room, demand, most)
    return Limit(LimitedBy.LATENCY, slowest.tier.name, held, slowest.load_ns + turn, target or again or 0)


def _share(demand: Demand, way: Way) -> float:
    return 1.0 if demand.return_shares is None else demand.return_shares.get(way.tier.name, 0.0)


def _most(
    tiers: Sequence[Way], room: Sequence[int], demand: Demand, counted: Sequence[bool], budget: float
) -> int | None:
    """The most sessions of which no more than `budget` are in the tiers that count; None: any number."""
    if demand.return_shares is not None:
        share = sum(_share(demand, way) for way, counts in zip(tiers, counted, strict=True) if counts)
        most = budget / share if share else math.inf
        return None if math.isinf(most) else math.floor(most)
    left, before = math.floor(budget), 0
    for places, counts in zip(room[:-1], counted[:-1], strict=True):
        if counts and places > left:
            return before + left
        left -= places if counts else 0
        before += places
    return before + left if counted[-1] else None


def _carried(tiers: Sequence[Way], room: Sequence[int], demand: Demand) -> int | None:
    """Sessions at which the first link is busy all the time; None: no link is used."""
    each: dict[str, Link] = {link.name: link for way in tiers for link in way.links}
    found = []
    for link in each.values():
        budget = link.bytes_per_second * demand.return_seconds / demand.session_bytes
        found.append(_most(tiers, room, demand, [link in way.links for way in tiers], budget))
    return min((sessions for sessions in found if sessions is not None), default=None)


def _meeting(tiers: Sequence[Way], room: Sequence[int], demand: Demand, most: int) -> int:
    """The most sessions, up to `most`, at which every tier in use meets the target."""
    target = demand.ttft_target_ns
    if target is None or _meets(tiers, room, demand, most, target):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if _meets(tiers, room, demand, middle, target):
            low = middle
        else:
            high = middle
    return low


def _meets(tiers: Sequence[Way], room: Sequence[int], demand: Demand, sessions: int, target_ns: int) -> bool:
    returns = returns_of(demand, tiers, filled(room, sessions), sessions)
    loads, turn = loads_of(tiers, returns), turn_ns(demand)
    return all(
        waiting_ns(way, loads, demand.quantile) + way.load_ns + turn <= target_ns
        for way, rate in zip(tiers, returns, strict=True)
        if rate
    )
