"""A middle value and how sure it is, without assuming how samples are spread.

Source: David and Nagaraja, "Order Statistics", section 7.1: between the k-th smallest and the k-th largest of
n samples lies the median with probability 1 - 2 * P(Bin(n, 1/2) < k).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt
from typing import Final

ONE_IN: Final = 20
"""Intervals that may miss the median."""
EXACT: Final = 100
"""Samples up to which the binomial is summed; beyond it is normal enough."""
NORMAL_975: Final = 1.96


@dataclass(frozen=True, slots=True)
class Spread:
    """A median and its 95 % interval; fewer than six samples give their range instead."""

    median: float
    low: float
    high: float
    samples: int


def spread_of(values: Sequence[float]) -> Spread:
    """Summarise at least one sample."""
    ordered = sorted(values)
    count = len(ordered)
    rank = _rank(count)
    return Spread(quantile(ordered, 0.5), ordered[rank], ordered[count - 1 - rank], count)


def _rank(count: int) -> int:
    """How many samples lie outside the interval at either end."""
    if count > EXACT:
        return int(count / 2 - NORMAL_975 * sqrt(count) / 2)
    below, rank = 1, 0
    while 2 * ONE_IN * (below + comb(count, rank + 1)) <= 1 << count:
        rank += 1
        below += comb(count, rank)
    return rank


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which a share of ascending samples lies, along straight lines between them."""
    place = share * (len(ordered) - 1)
    left = int(place)
    right = min(left + 1, len(ordered) - 1)
    return ordered[left] + (place - left) * (ordered[right] - ordered[left])
