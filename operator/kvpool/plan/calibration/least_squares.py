"""Recursive least squares with forgetting: each new sample makes all older ones count a little less.

Source: Ljung, "System Identification", section 11.2. It is kept in the form of weighted sums (the information
matrix), which gives the same constants as the textbook's gain, and the quality of the fit besides.
Memory does not grow with samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Final

from kvpool.plan.calibration.small_matrices import condition, inverse, times

FORGETTING: Final = 0.99
"""An old sample counts 0.99 of the next one: half after 69 samples."""
NORMAL_95: Final = 1.96


@dataclass(frozen=True, slots=True)
class Fit:
    """Constants of a linear model, and how far they can be believed."""

    constants: tuple[float, ...]
    half_widths: tuple[float, ...]
    """Of the 95 % intervals. Infinite when samples do not tell the constants apart."""
    r_squared: float
    condition: float
    """Of the normal equations after every column is scaled to length one, so that units do not matter."""
    samples: int
    """All that were seen, forgotten or not."""


class RecursiveLeastSquares:
    """Fits `y = sum of constants * features`."""

    __slots__ = (
        "_count",
        "_forgetting",
        "_products",
        "_squares",
        "_total",
        "_weight",
        "_weight_squares",
        "_with",
    )

    def __init__(self, features: int, forgetting: float = FORGETTING) -> None:
        self._forgetting = forgetting
        self._products = [[0.0] * features for _ in range(features)]
        self._with = [0.0] * features
        self._squares = self._total = self._weight = self._weight_squares = 0.0
        self._count = 0

    def add(self, features: Sequence[float], value: float) -> None:
        """Take in one sample."""
        keep = self._forgetting
        for row, left in enumerate(features):
            products = self._products[row]
            for column, right in enumerate(features):
                products[column] = keep * products[column] + left * right
            self._with[row] = keep * self._with[row] + left * value
        self._squares = keep * self._squares + value * value
        self._total = keep * self._total + value
        self._weight = keep * self._weight + 1.0
        self._weight_squares = keep * keep * self._weight_squares + 1.0
        self._count += 1

    def fit(self) -> Fit:
        """The constants that fit best now."""
        size = len(self._with)
        scales = [sqrt(self._products[row][row]) or 1.0 for row in range(size)]
        scaled = [
            [self._products[row][column] / (scales[row] * scales[column]) for column in range(size)]
            for row in range(size)
        ]
        condition_number = condition(scaled)
        if condition_number == inf:
            return Fit((0.0,) * size, (inf,) * size, 0.0, inf, self._count)
        inverted = inverse(scaled)
        solved = times(inverted, [value / scale for value, scale in zip(self._with, scales, strict=True)])
        constants = tuple(value / scale for value, scale in zip(solved, scales, strict=True))
        residual = max(0.0, self._squares - sum(c * w for c, w in zip(constants, self._with, strict=True)))
        around_mean = max(0.0, self._squares - self._total * self._total / self._weight)
        r_squared = 1 - residual / around_mean if around_mean > 0 else 0.0
        effective = self._weight * self._weight / self._weight_squares
        spread = residual / self._weight * effective / (effective - size) if effective > size else inf
        half_widths = tuple(
            NORMAL_95 * sqrt(spread * inverted[row][row] * self._weight / effective) / scales[row]
            for row in range(size)
        )
        return Fit(constants, half_widths, r_squared, condition_number, self._count)
