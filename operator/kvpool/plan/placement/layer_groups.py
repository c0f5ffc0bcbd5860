"""Which layers' KV may leave HBM, how much room that gives, and below which hit rate decoding gets slower.

A layer whose read set another layer has computed already (sparse attention that shares its top-k index) can
be kept in host memory with a working cache in HBM: its rows are fetched behind the compute in between. Full
attention reads everything at once and never qualifies. Formulas: kvpool's own derivation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kvpool.plan.timing.model import NS_PER_SECOND

HBM_ONLY: Final = ""


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Layers that are alike."""

    name: str
    layers: int
    token_bytes: int
    """KV of one token in one layer."""
    derivable_from: str = HBM_ONLY
    """The group that computes this group's read set ahead; empty: nobody does, it stays in HBM."""
    working_tokens: int = 0
    """Tokens of each sequence that the working cache in HBM holds, for groups that leave it."""


@dataclass(frozen=True, slots=True)
class Fetching:
    """How one layer of a group that left HBM gets its rows in a decode step."""

    sequences: int
    """B, the batch."""
    rows: int
    """Rows that a layer reads for one sequence, k of top-k."""
    row_bytes: int
    bytes_per_second: int
    """Host to device."""
    layer_ns: int
    """Compute time of the layer behind which the rows are fetched."""
    overlap_percent: int = 100
    """Share of that time in which the link is free for it."""

    @property
    def hidden_ns(self) -> float:
        """Time that costs nothing."""
        return self.layer_ns * self.overlap_percent / 100


def check_groups(groups: Sequence[LayerGroup]) -> None:
    """Hold the groups against each other.

    Raises:
        ValueError: when a group derives from one that is not there, from itself, or from one that left HBM
        too.
    """
    by_name = {group.name: group for group in groups}
    for group in groups:
        if not group.derivable_from:
            continue
        source = by_name.get(group.derivable_from)
        if source is None or source is group:
            raise ValueError(
                f"layer group {group.name!r}: derivableFrom {group.derivable_from!r} has to be another of"
                f" the groups {', '.join(sorted(by_name))}"
            )
        if source.derivable_from:
            raise ValueError(
                f"layer group {group.name!r}: derivableFrom {source.name!r} names a group that itself derives"
                f" from {source.derivable_from!r}; name the one that computes the index"
            )


def capacity_factor(groups: Sequence[LayerGroup], context_tokens: int) -> float:
    """Return how many times more tokens HBM holds: all KV over the KV that stays.

    phi = sum(kappa) / (sum(kappa that stays) + sum(kappa that leaves) * w / L); half of the layers: 2 / (1
    + w/L).
    """
    whole = sum(group.layers * group.token_bytes for group in groups)
    stays = sum(group.layers * group.token_bytes * _share(group, context_tokens) for group in groups)
    return whole / stays if stays else math.inf


def least_hit_rate(fetching: Fetching) -> float:
    """Return the hit rate of the working cache below which a step grows. 0 when none is needed.

    h_min = 1 - overlap * t_layer * BW / (B * k * kappa)
    """
    wanted = fetching.sequences * fetching.rows * fetching.row_bytes
    carried = fetching.hidden_ns * fetching.bytes_per_second / NS_PER_SECOND
    return max(0.0, 1.0 - carried / wanted) if wanted else 0.0


def growth_ns(fetching: Fetching, hit_rate: float) -> float:
    """Return by how much each layer of the group prolongs a decode step, at a hit rate in [0, 1]. 0 or more.

    B * k * (1 - h) * kappa / BW - overlap * t_layer
    """
    missed = fetching.sequences * fetching.rows * fetching.row_bytes * (1.0 - hit_rate)
    return max(0.0, missed * NS_PER_SECOND / fetching.bytes_per_second - fetching.hidden_ns)


def may_leave(group: LayerGroup, read_bytes: int, bytes_per_second: int, known_ahead_ns: int) -> bool:
    """Return whether a group may leave HBM: its read set is known at least `read_bytes / BW` before its
    use."""
    return bool(group.derivable_from) and read_bytes * NS_PER_SECOND <= known_ahead_ns * bytes_per_second


def _share(group: LayerGroup, context_tokens: int) -> float:
    if not group.derivable_from:
        return 1.0
    return min(1.0, group.working_tokens / context_tokens)
