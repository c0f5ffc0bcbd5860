"""The contract of an eviction rule: what it is told of an object, and what it answers.

A rule of your own is a class with a `key` method; name it as `module:Class` where a policy is asked for. It
is made without arguments. `Recency` in `kvpool.plan.placement.orders` is the smallest one.
"""

from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, runtime_checkable

NEVER: Final = 1 << 62
"""As `next_ns`: the object is not used again, or nobody knows when."""
GAP_WEIGHT: Final = 0.5
"""Share of the newest gap in the smoothed one."""

Key: TypeAlias = tuple[float, ...]


@dataclass(slots=True)
class Use:
    """What is known of one object after its latest use. Times are nanoseconds of the caller's clock."""

    item: int
    last_ns: int
    turn: int
    """Number of the use, counted over all objects: it tells uses of the same moment apart."""
    uses: int = 1
    gap_ns: float = -1.0
    """Time between uses, smoothed exponentially; -1 before the second use."""
    waited_ns: int = -1
    """Time between the latest two uses; -1 before the second use."""
    next_ns: int = NEVER
    """True time of the next use: only an oracle has it."""
    group: str = ""
    """Class of the request that made it; empty: one class."""

    def again(self, now_ns: int, turn: int, next_ns: int = NEVER, gap_weight: float = GAP_WEIGHT) -> None:
        """Note one more use.

        The gap is smoothed as `gap = weight * newest + (1 - weight) * gap`; the first one is taken whole.
        """
        newest = now_ns - self.last_ns
        self.gap_ns = newest if self.gap_ns < 0 else gap_weight * newest + (1.0 - gap_weight) * self.gap_ns
        self.waited_ns = newest
        self.uses += 1
        self.last_ns = now_ns
        self.turn = turn
        self.next_ns = next_ns


@runtime_checkable
class EvictionRule(Protocol):
    """Orders the objects of one tier: the one with the smallest key leaves first."""

    def key(self, use: Use) -> Key:
        """Return the key of an object that was used just now.

        It is asked once for each use and kept until the next one, so it may not depend on the time that
        passes meanwhile. All keys of a rule have to be comparable. Equal keys leave in order of `item`.
        """


@runtime_checkable
class GroupedRule(EvictionRule, Protocol):
    """A rule whose order changes with time between groups, but never within one."""

    def standing(self, group: str, key: Key, now_ns: int) -> float:
        """Return how much the object with this key, the first to leave of its group, is worth now.

        Of the groups' first objects the one with the smallest standing leaves; ties: the first group by name.
        """
