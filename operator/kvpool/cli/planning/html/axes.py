"""Scales from values to places on a drawing, and round numbers to mark on them."""

import math
from dataclasses import dataclass
from typing import Final

STEPS: Final = (1.0, 2.0, 5.0, 10.0)
LOG_FROM_RATIO: Final = 8.0
"""Largest over smallest value from which on a logarithmic scale shows more than a linear one."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high`, drawn from `start` to `stop`."""

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False
    """Values have to be above 0."""

    def at(self, value: float) -> float:
        """Where a value is drawn; what lies outside is drawn at the end."""
        low, high, place = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, place = math.log(low), math.log(high), math.log(place)
        share = (place - low) / (high - low) if high > low else 0.0
        return self.start + share * (self.stop - self.start)


def round_ticks(high: float, most: int) -> list[float]:
    """Return round numbers from 0 on, the last at or above `high`: at most `most` steps.

    A step is 1, 2 or 5 x 10^n.
    """
    if high <= 0:
        return [0.0, 1.0]
    raw = high / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in STEPS if factor * power >= raw * (1 - 1e-9))
    count = math.ceil(high / step - 1e-9)
    return [place * step for place in range(count + 1)]


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Return 1, 2 and 5 x 10^n that enclose `low` to `high`; powers of ten when those are too many."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    fine = [factor * 10.0**power for power in range(first, last + 1) for factor in STEPS[:3]]
    inside = [tick for tick in fine if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9)]
    below = [tick for tick in fine if tick * (1 + 1e-9) < low][-1:]
    above = [tick for tick in fine if tick > high * (1 + 1e-9)][:1]
    ticks = below + inside + above
    if len(ticks) <= most:
        return ticks
    every = math.ceil((last - first) / (most - 1))
    return [10.0**power for power in range(first, last + every, every)]


def amount_scale(values: list[float], start: float, stop: float, most: int) -> tuple[Scale, list[float]]:
    """Return a scale for amounts above 0, with its ticks: logarithmic when they differ much."""
    low, high = (min(values), max(values)) if values else (1.0, 1.0)
    if high / low < LOG_FROM_RATIO:
        ticks = round_ticks(high, most)
        return Scale(0.0, ticks[-1], start, stop), ticks
    ticks = log_ticks(low, high, most)
    return Scale(ticks[0], ticks[-1], start, stop, logarithmic=True), ticks
