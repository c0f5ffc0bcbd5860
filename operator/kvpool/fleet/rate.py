"""A token bucket: how often something may happen. Time is handed in."""

from __future__ import annotations


class RateLimit:
    """At most `burst` at once and `per_second` in the long run."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._left = float(burst)
        self._at: float | None = None

    def take(self, now: float) -> bool:
        """Use up one; False when there is none left at `now` (monotonic seconds)."""
        if self._at is not None:
            self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._per_second)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
