"""The same prompts through a real store and through the simulator's tier of the same size."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvpool.cli.planning.validating.store import EVICTION_RATIO, HIGH_WATERMARK, real_store
from kvpool.plan.placement.orders import Recency
from kvpool.sim.tiers.accesses import Access
from kvpool.sim.tiers.exclusive import ExclusiveTiers
from kvpool.sim.workloads.request import Workload

MEAN_FILL: Final = HIGH_WATERMARK - EVICTION_RATIO / 2
"""Mooncake's memory fills to the high watermark, and then loses the eviction ratio at once: the mean of both
ends is what a store that evicts one by one would hold."""


@dataclass(frozen=True, slots=True)
class Hits:
    """Look-ups of blocks, and those that were answered."""

    lookups: int
    found: int
    """Anywhere in a prompt."""
    prefix: int
    """Before the first missing one: what an engine can use."""

    @property
    def rate(self) -> float:
        """Share of look-ups answered, 0 to 1."""
        return self.found / self.lookups if self.lookups else 0.0

    @property
    def prefix_rate(self) -> float:
        """Share of look-ups answered before the first missing block, 0 to 1."""
        return self.prefix / self.lookups if self.lookups else 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """One size of the store's memory."""

    memory_bytes: int
    block_bytes: int
    real: Hits
    simulated: Hits
    wrong_bytes: int
    """Blocks that the store returned with bytes of others."""

    @property
    def error_points(self) -> float:
        """Simulated less real hit rate, in percentage points."""
        return 100 * (self.simulated.rate - self.real.rate)

    @property
    def prefix_error_points(self) -> float:
        """The same for blocks before the first missing one."""
        return 100 * (self.simulated.prefix_rate - self.real.prefix_rate)


def compared(
    workload: Workload, memory_bytes: int, block_bytes: int, advance: Callable[[], object]
) -> Comparison:
    """Run both; `advance` is called after each request to the real store. Raises CliError."""
    found = prefix = 0
    with real_store(memory_bytes, block_bytes) as store:
        for request in workload.requests:
            there = store.request(request.blocks)
            found += there.anywhere
            prefix += there.prefix
            advance()
    lookups = sum(len(request.blocks) for request in workload.requests)
    simulated = simulated_hits(workload, int(MEAN_FILL * memory_bytes / block_bytes))
    return Comparison(memory_bytes, block_bytes, Hits(lookups, found, prefix), simulated, store.wrong_bytes)


def simulated_hits(workload: Workload, capacity_blocks: int) -> Hits:
    """Replay a workload's blocks through one tier that keeps the most recently used."""
    tiers = ExclusiveTiers([capacity_blocks], Recency())
    lookups = prefix = 0
    for request in workload.requests:
        lookups += len(request.blocks)
        for block in request.blocks:
            if tiers.tier_of(block) < 0:
                break
            prefix += 1
        tiers.access(Access(request.arrival_ns, request.blocks))
    return Hits(lookups, tiers.finish().found[0], prefix)
