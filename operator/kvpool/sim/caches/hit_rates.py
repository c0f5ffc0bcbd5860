"""Hit rates by capacity and rule, over the last part of a workload."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvpool.plan.placement.eviction import EvictionRule
from kvpool.plan.placement.orders import Belady, Recency
from kvpool.sim.caches.farthest import farthest_hits, next_uses
from kvpool.sim.caches.first_in import first_in_hits
from kvpool.sim.caches.paths import Paths
from kvpool.sim.caches.recency_stack import recency_hits
from kvpool.sim.caches.ruled import ruled_hits
from kvpool.sim.caches.unbounded import ceiling_hits, nodes_before

MEASURED_SHARE_PERCENT: Final = 50
"""Of the requests: the first half only fills the cache."""


class FirstIn:
    """First in, first out: a cache discipline of its own, for blocks leave whatever their key."""


Policy = EvictionRule | FirstIn


@dataclass(frozen=True, slots=True)
class HitRate:
    """One cell of the table."""

    policy: str
    capacity_blocks: int
    hit_tokens: int
    measured_tokens: int
    filled: bool
    """Whether the cache was full before measuring began; if not, no rule had much to decide."""

    @property
    def rate(self) -> float:
        """Share of the measured prompt tokens that were found, 0 to 1."""
        return self.hit_tokens / self.measured_tokens if self.measured_tokens else 0.0


@dataclass(frozen=True, slots=True)
class Sweep:
    """The whole table, by policy in the order asked, then by capacity ascending."""

    rows: tuple[HitRate, ...]
    ceiling: HitRate
    """A cache that holds every block of the workload."""
    requests: int
    measured_requests: int
    distinct_blocks: int


def hit_rates(paths: Paths, capacities_blocks: Sequence[int], policies: Mapping[str, Policy]) -> Sweep:
    """Return the hit rate of each policy at each capacity. Capacities of 0 hit nothing.

    Hits are a request's blocks from its start to the first missing one, counted in tokens. They are measured
    over the last half of the requests, as kvcache-simulator (release 0.1.3) does.

    Raises:
        ValueError: when a capacity is negative.
    """
    capacities = sorted(dict.fromkeys(capacities_blocks))
    if capacities and capacities[0] < 0:
        raise ValueError(f"a cache cannot hold {capacities[0]} blocks; give 0 or more")
    start = len(paths.nodes) * (100 - MEASURED_SHARE_PERCENT) // 100
    measured_tokens = sum(paths.prompt_tokens[start:])
    warm_blocks = nodes_before(paths, start)

    def row(policy: str, capacity: int, hits: Sequence[int]) -> HitRate:
        tokens = sum(paths.hit_tokens(index, hits[index]) for index in range(start, len(hits)))
        return HitRate(policy, capacity, tokens, measured_tokens, warm_blocks >= capacity)

    rows: list[HitRate] = []
    for name, policy in policies.items():
        found = _hits(paths, policy, capacities)
        rows += [row(name, capacity, hits) for capacity, hits in zip(capacities, found, strict=True)]
    distinct = len(paths.parents)
    return Sweep(
        tuple(rows),
        row("ceiling", distinct, ceiling_hits(paths)),
        len(paths.nodes),
        len(paths.nodes) - start,
        distinct,
    )


def _hits(paths: Paths, policy: Policy, capacities: Sequence[int]) -> Sequence[Sequence[int]]:
    """Return the hits of each request at each capacity; the rules that have a faster way take it."""
    if isinstance(policy, FirstIn):
        return [first_in_hits(paths, capacity) for capacity in capacities]
    if isinstance(policy, Recency):
        return recency_hits(paths, capacities)
    if isinstance(policy, Belady):
        runs = next_uses(paths)
        return [farthest_hits(runs, capacity) for capacity in capacities]
    return [ruled_hits(paths, policy, capacity) for capacity in capacities]
