"""How many sessions a stack of tiers serves, which limit binds, and by how much.

    N = min(capacity, bandwidth of each link, endurance of each tier, latency)
    gain = N / floor(C_1 / s)

kvpool's own derivation; the forms of the limits are in `limits`.
"""

from dataclasses import dataclass

from kvpool.plan.tiers.filling import filled, places
from kvpool.plan.tiers.latency import Way, loads_of, recompute_ns, returns_of, turn_ns, waiting_ns, ways
from kvpool.plan.tiers.limits import (
    Limit,
    bandwidth_limit,
    capacity_limit,
    endurance_limit,
    latency_limit,
)
from kvpool.plan.tiers.stack import Demand, Stack
from kvpool.plan.timing.model import NS_PER_SECOND


@dataclass(frozen=True, slots=True)
class TierFigures:
    """One tier in a plan."""

    name: str
    room: int
    """Sessions that it adds to those of the tiers before it."""
    sessions: int
    ttft_alone_ns: int
    """Time to first token of a session that was here, when no other returns."""
    ttft_quantile_ns: float
    """The same with all others returning, at the demand's quantile; infinite where a link is always busy."""
    worth_having: bool
    """Whether to load a session from here is faster than to compute it again."""


@dataclass(frozen=True, slots=True)
class TierPlan:
    """The answer for one stack and one demand."""

    sessions: int
    base_sessions: int
    """Sessions that the first tier alone holds."""
    firm_sessions: int
    """Sessions in tiers that nobody can ask back."""
    binding: Limit
    limits: tuple[Limit, ...]
    """All that limit at all, the tightest first; the first one binds."""
    tiers: tuple[TierFigures, ...]
    """The fastest first: that is the order in which they are filled."""
    link_loads: dict[str, float]
    """Share of its time that each link is busy with returns."""
    returns_per_second: float
    prefill_load: float
    """Instances that the prompts of all returns keep busy; above 1, one cannot serve the sessions."""
    recompute_ns: int | None
    """Time to first token when nothing was kept."""

    @property
    def gain(self) -> float | None:
        """Sessions for each one that the first tier alone holds; None when that holds none."""
        return self.sessions / self.base_sessions if self.base_sessions else None

    @property
    def next_limit(self) -> Limit | None:
        """The limit that would bind after this one; None when nothing else would."""
        return self.limits[1] if len(self.limits) > 1 else None


def plan_tiers(stack: Stack, demand: Demand) -> TierPlan:
    """Return how many sessions the stack serves and what keeps it from more. O(tiers * links)."""
    tiers = ways(stack, demand)
    ordered = Stack(tuple(way.tier for way in tiers), stack.links, stack.exclusive)
    room = places(ordered, demand.session_bytes)
    found = [capacity_limit(tiers, room, demand)]
    found += [bandwidth_limit(tiers, room, demand, link) for link in stack.links]
    found.append(latency_limit(tiers, room, demand))
    found += [
        endurance_limit(tiers, room, demand, index, exclusive=stack.exclusive) for index in range(len(tiers))
    ]
    # A stable sort: of equal limits the one that is asked first binds.
    limits = sorted((limit for limit in found if limit.sessions is not None), key=_sessions)
    sessions = _sessions(limits[0])
    held = filled(room, sessions)
    returns = returns_of(demand, tiers, held, sessions)
    loads = loads_of(tiers, returns)
    first = stack.tiers[0]
    return TierPlan(
        sessions=sessions,
        base_sessions=first.capacity_bytes // demand.session_bytes,
        firm_sessions=sum(count for way, count in zip(tiers, held, strict=True) if not way.tier.borrowed),
        binding=limits[0],
        limits=tuple(limits),
        tiers=tuple(
            _figures(way, demand, loads, count, here)
            for way, count, here in zip(tiers, held, room, strict=True)
        ),
        link_loads=loads,
        returns_per_second=sessions / demand.return_seconds,
        prefill_load=sessions / demand.return_seconds * turn_ns(demand) / NS_PER_SECOND,
        recompute_ns=recompute_ns(demand),
    )


def _sessions(limit: Limit) -> int:
    """The sessions of a limit that limits."""
    assert limit.sessions is not None
    return limit.sessions


def _figures(way: Way, demand: Demand, loads: dict[str, float], held: int, room: int) -> TierFigures:
    alone = way.load_ns + turn_ns(demand)
    again = recompute_ns(demand)
    return TierFigures(
        name=way.tier.name,
        room=room,
        sessions=held,
        ttft_alone_ns=alone,
        ttft_quantile_ns=waiting_ns(way, loads, demand.quantile) + alone,
        worth_having=again is None or not way.links or alone < again,
    )
