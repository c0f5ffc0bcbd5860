"""The eviction orders: by recency, frequency, aged frequency, predicted return, and the true next use."""

import math
from dataclasses import dataclass
from typing import Final

from kvpool.plan.placement.eviction import NEVER, Key, Use

HALF_LIFE_NS: Final = 600_000_000_000
"""10 minutes: 80 % of the reuse in a consumer service comes within it (arXiv 2506.02634, section 3)."""


@dataclass(frozen=True, slots=True)
class Recency:
    """The least recently used object leaves. LRU (Belady 1966, section "Replacement algorithms")."""

    def key(self, use: Use) -> Key:
        """Key: the latest use."""
        return (use.turn,)


Predicted = Recency
"""A trained predictor of the next use came out byte for byte as recency (Tumkur et al., arXiv 2609.16215,
read second hand). It is kept as a name for the same rule."""


@dataclass(frozen=True, slots=True)
class Frequency:
    """The least often used object leaves, of those the least recent one. LFU over the whole life of an
    object."""

    def key(self, use: Use) -> Key:
        """Key: number of uses, then the latest one."""
        return (use.uses, use.turn)


@dataclass(frozen=True, slots=True)
class Aged:
    """Frequency that halves with each half-life without use: `uses * 2^(-(now - last) / half_life)`.

    All objects fade alike, so the order is that of `log2(uses) + last / half_life`, which needs no clock.
    LRFU's family (Lee et al., IEEE ToC 2001); this form is kvpool's own derivation.
    """

    half_life_ns: int = HALF_LIFE_NS

    def key(self, use: Use) -> Key:
        """Key: the binary logarithm of the faded count, up to what all objects share."""
        return (math.log2(use.uses) + use.last_ns / self.half_life_ns, use.turn)


@dataclass(frozen=True, slots=True)
class Ewma:
    """The object whose next use is expected last leaves: latest use plus its smoothed gap.

    Objects used once have no gap: they leave before all others, the least recent one first.
    """

    def key(self, use: Use) -> Key:
        """Key: the expected next use, later is smaller."""
        if use.gap_ns < 0:
            return (0, use.turn, 0)
        return (1, -(use.last_ns + use.gap_ns), use.turn)


@dataclass(frozen=True, slots=True)
class Belady:
    """The object whose true next use is farthest leaves: the bound that no rule beats on misses.

    MIN (Belady, IBM Systems Journal 1966). It needs to know the future, so it is an oracle for simulations.
    """

    def key(self, use: Use) -> Key:
        """Key: the true next use, later is smaller; never again is smallest."""
        return (-min(use.next_ns, NEVER), use.turn)
