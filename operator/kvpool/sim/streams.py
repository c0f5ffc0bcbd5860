"""Random numbers that do not depend on who drew before: one stream for each entity, split by name.

SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014). The standard
library's generator is not used: results of its methods may change between versions, and it cannot be split.
"""

import hashlib
import math
from typing import Final

MASK: Final = (1 << 64) - 1
GOLDEN: Final = 0x9E3779B97F4A7C15
UNIT: Final = 1.0 / (1 << 53)


class Stream:
    """A stream of random numbers; equal seeds give equal numbers on every machine and version."""

    __slots__ = ("_seed", "_state")

    def __init__(self, seed: int) -> None:
        self._seed = seed & MASK
        self._state = self._seed

    def split(self, *names: str | int) -> "Stream":
        """Return the stream of a named part; it does not depend on what was drawn from this one."""
        text = "\x1f".join(map(str, (self._seed, *names)))
        return Stream(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))

    def bits(self) -> int:
        """64 random bits."""
        self._state = (self._state + GOLDEN) & MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        return mixed ^ (mixed >> 31)

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return (self.bits() >> 11) * UNIT

    def below(self, bound: int) -> int:
        """A whole number in [0, bound), every one equally likely. Bound: 1 to 2^64."""
        limit = (1 << 64) - (1 << 64) % bound
        while (drawn := self.bits()) >= limit:
            pass
        return drawn % bound

    def exponential(self, mean: float) -> float:
        """A number with that mean and no memory."""
        return -mean * math.log(1.0 - self.uniform())

    def normal(self) -> float:
        """A standard normal number (Box and Muller 1958; the second of the pair is left)."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())

    def lognormal(self, median: float, sigma: float) -> float:
        """A number whose logarithm is normal around `log(median)` with deviation `sigma`."""
        return median * math.exp(sigma * self.normal())
