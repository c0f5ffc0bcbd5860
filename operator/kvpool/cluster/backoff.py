"""How long to wait before the next try."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Backoff: TypeAlias = Callable[[int], float]
"""Seconds to wait after the n-th failure in a row, n from 1."""


def jittered(
    draw: Callable[[], float], *, first_seconds: float = 0.5, limit_seconds: float = 30.0
) -> Backoff:
    """Exponential backoff: uniformly between half of and the whole of first * 2^(n-1), at most the limit.

    `draw` gives numbers in [0, 1), `random.random` in production; the jitter keeps many watches from
    returning to a restarted API server in one instant.
    """

    def seconds(failures: int) -> float:
        # Above 2^20 every limit in use is reached; unbounded powers overflow.
        whole = min(limit_seconds, first_seconds * 2.0 ** min(max(failures, 1) - 1, 20))
        return float(whole * (0.5 + 0.5 * draw()))

    return seconds
