"""The same prompts through a real store and through the simulator's tier of the same size."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvpool.cli.planning.validating.replay import EVICTION_RATIO, HIGH_WATERMARK, Store, replayed
from kvpool.plan.placement.orders import Recency
from kvpool.sim.tiers.accesses import Access
from kvpool.sim.tiers.inclusive import InclusiveTiers
from kvpool.sim.workloads.request import Workload

MEAN_FILL: Final = HIGH_WATERMARK - EVICTION_RATIO / 2
"""Mooncake's memory fills to the high watermark, and then loses the eviction ratio at once: the mean of both
ends is what a store that evicts one by one would hold."""


TIERS: Final = ("memory", "disk")


@dataclass(frozen=True, slots=True)
class Hits:
    """Look-ups of blocks, and those that were answered."""

    lookups: int
    found: tuple[int, ...]
    """By tier, the memory first."""
    prefix: int
    """Before a prompt's first missing block, in any tier: what an engine can use."""

    def rates(self) -> dict[str, float]:
        """Shares of look-ups, 0 to 1: answered by each tier, and as part of a prefix."""
        counts = {**dict(zip(TIERS, self.found, strict=False)), "prefix": self.prefix}
        return {name: count / self.lookups if self.lookups else 0.0 for name, count in counts.items()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One size of the store's memory."""

    memory_bytes: int
    block_bytes: int
    real: Hits
    simulated: Hits
    wrong_bytes: int
    """Blocks that the store returned with bytes of others."""

    def errors_points(self) -> dict[str, float]:
        """Simulated less real hit rates, in percentage points, by tier and for prefixes."""
        real, simulated = self.real.rates(), self.simulated.rates()
        return {name: 100 * (simulated[name] - real[name]) for name in real}


def compared(workload: Workload, store: Store, advance: Callable[[int], object]) -> Comparison:
    """Run both; `advance` is told how many more requests the real store has served. Raises CliError."""
    there = replayed(store, [request.blocks for request in workload.requests], advance)
    found = (there.memory, there.disk) if store.disk else (there.memory,)
    real = Hits(_lookups(workload), found, there.prefix)
    memory_blocks = int(MEAN_FILL * store.memory_bytes / store.block_bytes)
    simulated = simulated_hits(workload, memory_blocks, disk=store.disk)
    return Comparison(store.memory_bytes, store.block_bytes, real, simulated, there.wrong_bytes)


def simulated_hits(workload: Workload, memory_blocks: int, *, disk: bool) -> Hits:
    """Replay a workload's blocks through a tier that keeps those used last, perhaps above one for all."""
    distinct = len({block for request in workload.requests for block in request.blocks})
    tiers = InclusiveTiers([memory_blocks, distinct] if disk else [memory_blocks], Recency())
    for request in workload.requests:
        tiers.access(Access(request.arrival_ns, request.blocks))
    flows = tiers.finish()
    return Hits(_lookups(workload), tuple(flows.found), flows.prefix)


def _lookups(workload: Workload) -> int:
    return sum(len(request.blocks) for request in workload.requests)
