"""When each loop last succeeded: for reports, metrics and /healthz."""

from __future__ import annotations

import time

from kvpool.rules.heartbeats import stale_loops


class Heartbeats:
    """The last success of every loop, by name, on the monotonic clock."""

    def __init__(self, limit_seconds: float) -> None:
        self._limit_seconds = limit_seconds
        self._last: dict[str, float] = {}

    def beat(self, loop: str) -> None:
        """Say that `loop` has just succeeded (or begun)."""
        self._last[loop] = time.monotonic()

    def ages(self) -> dict[str, float]:
        """Return seconds since each loop's last success."""
        now = time.monotonic()
        return {loop: now - last for loop, last in sorted(self._last.items())}

    def stale(self) -> dict[str, float]:
        """Return the ages of the loops that are silent for too long."""
        return stale_loops(self.ages(), self._limit_seconds)
