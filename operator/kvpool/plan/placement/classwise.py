"""Eviction by request class: each class has its own chance to come back, and its own time to do so.

Reuse within a class is close to exponential in time while classes differ widely ("KVCache Cache in the Wild",
arXiv 2506.02634, section 4). For a class in which a share `p` of the uses is followed by another one, after
`1 / rate` on average, an object that has waited for `a` comes back within the next `t` with

    P = p * (e^(-rate a) - e^(-rate (a + t))) / (1 - p + p * e^(-rate a))        kvpool's own derivation
"""

import math
from dataclasses import dataclass, field
from typing import Final

from kvpool.plan.placement.eviction import Key, Use

LIFETIME_NS: Final = 600_000_000_000
"""How far to look ahead: about the time that an object stays when nobody uses it."""


@dataclass(slots=True)
class ReuseFit:
    """The exponential of one class, fitted from counts and a sum: the estimate of greatest likelihood."""

    uses: int = 0
    returns: int = 0
    waited_ns: float = 0.0

    def note(self, use: Use) -> None:
        """Take the latest use of an object into the fit."""
        self.uses += 1
        if use.waited_ns >= 0:
            self.returns += 1
            self.waited_ns += use.waited_ns

    def chance(self, age_ns: float, ahead_ns: float) -> float:
        """P(used again within `ahead_ns`), given `age_ns` without use. Between 0 and 1.

        One return and one object left behind are assumed before anything was seen (Laplace's rule), the
        return after `ahead_ns`.
        """
        share = (self.returns + 1) / (self.uses + 2)
        rate = (self.returns + 1) / (self.waited_ns + ahead_ns)
        alive = share * math.exp(-rate * age_ns)
        return alive * -math.expm1(-rate * ahead_ns) / (1.0 - share + alive)


@dataclass(slots=True)
class ClassWise:
    """The object least likely to come back within a lifetime leaves; within a class that is the least
    recent."""

    lifetime_ns: int = LIFETIME_NS
    fits: dict[str, ReuseFit] = field(default_factory=dict)

    def key(self, use: Use) -> Key:
        """Key within the class: the latest use. The use is also taken into the class's fit."""
        self.fits.setdefault(use.group, ReuseFit()).note(use)
        return (use.last_ns, use.turn)

    def standing(self, group: str, key: Key, now_ns: int) -> float:
        """Chance of a return within the lifetime."""
        return self.fits.setdefault(group, ReuseFit()).chance(now_ns - key[0], self.lifetime_ns)
