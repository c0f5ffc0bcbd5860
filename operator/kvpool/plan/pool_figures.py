"""A pool's bytes by tier, and how far its nodes are."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from kvpool.api.kvpool import MOST_FOREIGN_ENTRIES, ForeignBytes, PoolNodes
from kvpool.api.quantity import format_quantity, parse_quantity
from kvpool.api.tierbudget import TierFigures
from kvpool.model.instant import Instant, moment_text
from kvpool.plan.demand import TIER_ORDER, Demand
from kvpool.plan.figures import ForeignSegment, UnitReading, total_used
from kvpool.plan.scene import Scene


def tier_figures(
    name: str,
    declared_bytes: int,
    readings: Sequence[UnitReading],
    foreign: Sequence[ForeignSegment],
    seen: Sequence[float],
    now: Instant,
) -> TierFigures:
    """Add up one tier; `seen` are the moments of further reports behind the figures."""
    moments = [reading.observed_at for reading in readings if reading.observed_at is not None]
    moments += [found.asked_at for found in foreign]
    moments += seen
    return TierFigures(
        name=name,
        declared=format_quantity(declared_bytes),
        admitted=format_quantity(sum(reading.admitted_bytes for reading in readings)),
        bound=format_quantity(sum(reading.bound_bytes for reading in readings)),
        used=format_quantity(total_used(readings)[0]),
        foreign=format_quantity(sum(found.segment.capacity_bytes for found in foreign)),
        unknown=format_quantity(sum(reading.unit.size_bytes for reading in readings if reading.stale)),
        observed_at=moment_text(now.wall_at(min(moments))) if moments else None,
    )


def pool_tiers(scene: Scene, demand: Demand) -> tuple[TierFigures, ...]:
    """Figures of every tier that is asked for or held; segments of others count as DRAM."""
    readings = scene.readings.of_pool(demand.key)
    foreign = scene.readings.foreign_in(demand.key)
    declared = {tier.tier: tier.declared_bytes for tier in demand.tiers}
    heard = _heard(scene, demand)
    return tuple(
        tier_figures(
            tier,
            declared.get(tier, 0),
            [reading for reading in readings if reading.unit.tier == tier],
            foreign if tier == "DRAM" else (),
            heard,
            scene.now,
        )
        for tier in TIER_ORDER
        if tier in declared or (tier == "DRAM" and foreign)
    )


def foreign_bytes(foreign: Iterable[ForeignSegment], now: Instant) -> tuple[ForeignBytes, ...]:
    """Add up the segments of others by node, the most first; only so many nodes are named."""
    by_node: defaultdict[str, list[ForeignSegment]] = defaultdict(list)
    for found in foreign:
        by_node[found.node].append(found)
    sizes = {node: sum(one.segment.capacity_bytes for one in found) for node, found in by_node.items()}
    ordered = sorted(sizes, key=lambda node: (-sizes[node], node))
    return tuple(
        ForeignBytes(
            node=node,
            tier="DRAM",
            size=format_quantity(sizes[node]),
            segments=len(by_node[node]),
            observed_at=moment_text(now.wall_at(min(one.asked_at for one in by_node[node]))),
        )
        for node in ordered[:MOST_FOREIGN_ENTRIES]
    )


def _heard(scene: Scene, demand: Demand) -> list[float]:
    """When the nodes that the pool selects were last heard: an empty pool's figures are as old as that."""
    agents = (scene.grounds[node].agent for node in demand.nodes)
    return [agent.reported_at for agent in agents if agent is not None]


def pool_nodes(readings: Sequence[UnitReading]) -> PoolNodes:
    """Count the nodes whose units are all bound, some not, or unknown."""
    by_node: dict[str, list[UnitReading]] = {}
    for reading in readings:
        by_node.setdefault(reading.node, []).append(reading)
    stale = sum(any(reading.stale for reading in mine) for mine in by_node.values())
    bound = sum(all(reading.is_bound for reading in mine) for mine in by_node.values())
    return PoolNodes(bound=bound, short=len(by_node) - bound - stale, stale=stale)


def broken_order(tiers: Sequence[TierFigures]) -> str | None:
    """Say which step of declared ≥ admitted ≥ bound ≥ used does not hold; None when all do."""
    for tier in tiers:
        steps = (
            ("declared", tier.declared),
            ("admitted", tier.admitted),
            ("bound", tier.bound),
            ("used", tier.used),
        )
        for (more, high), (less, low) in pairwise(steps):
            if parse_quantity(low) > parse_quantity(high):
                return f"{tier.name}: {less} {low} is above {more} {high}"
    return None
