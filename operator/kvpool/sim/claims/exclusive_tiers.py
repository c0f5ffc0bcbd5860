"""The claim that exclusive tiers find more: HBM and host memory that hold each block once, against copies."""

from collections.abc import Mapping
from typing import Final

from pydantic import Field

from kvpool.plan.placement.orders import Recency
from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.caches.paths import paths_of
from kvpool.sim.caches.recency_stack import recency_hits
from kvpool.sim.claims.experiment import Above, Experiment, Parameters, Whole
from kvpool.sim.claims.row import Claim, ClaimRow, Kind, Reading, Verdict
from kvpool.sim.tiers.accesses import accesses_of
from kvpool.sim.tiers.inclusive import InclusiveTiers
from kvpool.sim.tiers.pair import ExclusivePair
from kvpool.sim.tiers.replay import replay
from kvpool.sim.workloads.request import Workload

LOGS: Final = ("conversation", "synthetic")
GATED: Final = (1.0, 2.0)
"""Times HBM: the sizes of host memory that the gate is for."""
LEAST_PERCENT: Final = 10.0


class HostMemory(Parameters):
    """Blocks in HBM, and how many times as many in host memory."""

    hbm_blocks: tuple[Whole, ...]
    host_ratios: tuple[Above, ...]
    copy_seconds: float = Field(ge=0)
    """Of one copy, in the run that follows every block's state; then it holds a slot on both sides."""
    followed_requests: int = Field(ge=1)
    """At most so many requests of each log are run block by block: for copies that take time, and for host
    memory that does not see what HBM answers."""
    unseen_ratios: tuple[Above, ...]
    """Sizes of host memory for the latter."""


def c13(parameters: HostMemory, workloads: Mapping[str, Workload]) -> ClaimRow:
    """Hold the gain in prefix hits against the gate; both kinds of tiers are under recency."""
    gains: dict[tuple[str, int, float], float] = {}
    unseen: dict[tuple[str, int, float], float] = {}
    figures: dict[str, float] = {}
    for name in LOGS:
        log = workloads[name]
        gains |= {(name, *cell): gain for cell, gain in _gains(parameters, log).items()}
        unseen |= {(name, *cell): gain for cell, gain in _unseen_gains(parameters, log).items()}
        same, most = _followed(parameters, log)
        figures[f"{name}: most blocks in both while they are copied"] = most
        figures[f"{name}: hits with copies that take time, percent of the hits without"] = same
    held = [gain > LEAST_PERCENT for (_, _, ratio), gain in gains.items() if ratio in GATED]
    held += [gain > LEAST_PERCENT for (_, _, ratio), gain in unseen.items() if ratio in GATED]
    for kind, cells in (("", gains), (", host blind to HBM's hits", unseen)):
        for (name, hbm, ratio), gain in cells.items():
            figures[f"{name}, HBM {hbm}, host {ratio:g}x{kind}: percent more hits"] = gain
    return ClaimRow(
        EXCLUSIVE,
        ours=(
            f"prefix hits by host memory over HBM: {_shown(gains)}; against copies in a host that does not "
            f"see what HBM answers: {_shown(unseen)}"
        ),
        band=f"more than +{LEAST_PERCENT:.0f} % with host memory 1 to 2 times HBM, on both logs",
        verdict=Verdict.REPRODUCED if all(held) else Verdict.PARTLY if any(held) else Verdict.NO,
        knob="host_ratios: host memory over HBM; at 8 times HBM it hardly matters",
        figures=figures,
        checksums={workloads[name].source: workloads[name].checksum for name in LOGS},
        seed=parameters.seed,
    )


def _gains(parameters: HostMemory, log: Workload) -> dict[tuple[int, float], float]:
    """Percent more prefix hits, by blocks in HBM and size of the host.

    Under recency an exclusive pair holds what one cache of both sizes holds, and tiers with copies that are
    refreshed together what the larger one holds alone.
    """
    paths = paths_of(log)
    sizes = {
        (hbm, ratio): (hbm + round(hbm * ratio), max(hbm, round(hbm * ratio)))
        for hbm in parameters.hbm_blocks
        for ratio in parameters.host_ratios
    }
    capacities = sorted({size for pair in sizes.values() for size in pair})
    hits = dict(zip(capacities, map(sum, recency_hits(paths, capacities)), strict=True))
    return {cell: _percent(hits[both], hits[larger]) for cell, (both, larger) in sizes.items()}


def _unseen_gains(parameters: HostMemory, log: Workload) -> dict[tuple[int, float], float]:
    """The same against copies in a host that is told only of what HBM did not have."""
    accesses = accesses_of(log)[: parameters.followed_requests]
    paths = paths_of(log)
    found: dict[tuple[int, float], float] = {}
    for hbm in parameters.hbm_blocks:
        for ratio in parameters.unseen_ratios:
            host = round(hbm * ratio)
            copies = replay(InclusiveTiers([hbm, host], Recency(), refresh_below=False), accesses)
            exclusive = sum(recency_hits(paths, [hbm + host])[0][: len(accesses)])
            found[hbm, ratio] = _percent(exclusive, copies.prefix)
    return found


def _followed(parameters: HostMemory, log: Workload) -> tuple[float, int]:
    """Run requests state by state: hits over those with copies at once, in percent, and the worst double
    use."""
    hbm = parameters.hbm_blocks[0]
    pair = ExclusivePair(hbm, hbm, round(parameters.copy_seconds * NS_PER_SECOND))
    accesses = accesses_of(log)[: parameters.followed_requests]
    for access in accesses:
        pair.access(access)
    instant = sum(recency_hits(paths_of(log), [2 * hbm])[0][: len(accesses)])
    return 100 * pair.hits / max(1, instant), pair.most_in_both


def _percent(more: int, less: int) -> float:
    return 100 * (more / max(1, less) - 1)


def _shown(cells: Mapping[tuple[str, int, float], float]) -> str:
    by_ratio: dict[float, list[float]] = {}
    for (_, _, ratio), gain in cells.items():
        by_ratio.setdefault(ratio, []).append(gain)
    return ", ".join(f"{ratio:g}x {min(here):+.0f} to {max(here):+.0f} %" for ratio, here in by_ratio.items())


EXCLUSIVE: Final = Claim(
    number="C13",
    text="Exclusive tiers find more: a host copy is freed once its block is in HBM",
    source="LongCat-2.5 release notes, Meituan (2 Nov 2026); sglang pull requests 33777, 34519, 34046",
    reading=Reading.SECOND_HAND,
    kind=Kind.MEASURED,
)

EXPERIMENTS: Final = (Experiment(EXCLUSIVE, HostMemory, run=c13, traces=LOGS),)
