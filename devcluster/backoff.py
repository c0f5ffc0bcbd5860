"""When a container that ended is started again: soon at first, then after ever longer waits."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_SECONDS = 0.2
LONGEST_SECONDS = 5.0
FORGET_SECONDS = 10.0
"""A container that ran for so long starts again as soon as one that ended for the first time."""


@dataclass
class BackOff:
    """The waits of one container. All times are seconds of one monotonic clock."""

    delay_seconds: float = FIRST_SECONDS
    due_at: float | None = None
    """When to start it again; None while nothing is known to have ended."""

    def ended(self, now: float, ran_seconds: float) -> None:
        """Note an end; the first call of several for the same end counts."""
        if self.due_at is None:
            if ran_seconds >= FORGET_SECONDS:
                self.delay_seconds = FIRST_SECONDS
            self.due_at = now + self.delay_seconds
            self.delay_seconds = min(2 * self.delay_seconds, LONGEST_SECONDS)

    def started(self) -> None:
        """Note that it runs again."""
        self.due_at = None

    def is_due(self, now: float) -> bool:
        """Tell whether the wait is over."""
        return self.due_at is not None and now >= self.due_at
