"""Noticing that an engine no longer behaves as it was calibrated.

Each window of samples gives the mean of |residual| / measured time; an exponentially weighted mean of those
above 10 % for five windows on end makes the calibration invalid, until it is done again.
Source: kvpool's own.
"""

from dataclasses import dataclass, replace
from typing import Final

SMOOTHING: Final = 0.3
"""Weight of the newest window."""
MOST_ERROR: Final = 0.10
WINDOWS: Final = 5


@dataclass(frozen=True, slots=True)
class Drift:
    """What has been seen so far; begin with `Drift()`."""

    error: float | None = None
    """Smoothed relative error; None before the first window."""
    windows_above: int = 0
    """On end."""
    invalid: bool = False

    def after_window(self, residuals_ns: int, measured_ns: int) -> "Drift":
        """Take in a window: the sum of |measured - expected|, and of the measured times.

        A window without samples (`measured_ns` 0) says nothing. Once invalid, always: calibrate again.
        """
        if measured_ns <= 0:
            return self
        now = residuals_ns / measured_ns
        error = now if self.error is None else SMOOTHING * now + (1 - SMOOTHING) * self.error
        above = self.windows_above + 1 if error > MOST_ERROR else 0
        return replace(self, error=error, windows_above=above, invalid=self.invalid or above >= WINDOWS)
