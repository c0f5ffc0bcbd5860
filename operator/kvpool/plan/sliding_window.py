"""The last n values of something: their mean, their quantiles, and how many were small."""

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from typing import Final

ROUNDING: Final = 1e-9
"""What a product of two floats may be above the whole number that is meant."""


class SlidingWindow:
    """Keeps the last `size` values, sorted as well."""

    def __init__(self, size: int) -> None:
        self._last: deque[float] = deque()
        self._sorted: list[float] = []
        self._size = size

    def __len__(self) -> int:
        return len(self._sorted)

    def add(self, value: float) -> None:
        """Take in one more; the oldest leaves when the window is full."""
        if len(self._last) == self._size:
            del self._sorted[bisect_left(self._sorted, self._last.popleft())]
        self._last.append(value)
        insort(self._sorted, value)

    def mean(self) -> float | None:
        """Mean value; None when there is none."""
        return math.fsum(self._sorted) / len(self._sorted) if self._sorted else None

    def upper(self, alpha: float) -> float | None:
        """The value that a new one is above with a chance of at most `alpha`; None while too few were seen.

        Rank ceil((n + 1) (1 - alpha)), as in split conformal prediction (Vovk et al. 2005): it holds for
        every distribution when values are exchangeable.
        """
        rank = math.ceil((len(self._sorted) + 1) * (1 - alpha) - ROUNDING)
        return self._sorted[rank - 1] if 1 <= rank <= len(self._sorted) else None

    def share_up_to(self, value: float) -> float | None:
        """The share of values that are at most `value`; None when there is none."""
        return bisect_right(self._sorted, value) / len(self._sorted) if self._sorted else None
