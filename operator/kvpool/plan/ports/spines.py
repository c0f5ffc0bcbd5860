"""Choosing a flow's spine from the flows that are under way, as far as the chooser can see.

Rule at the start of a flow (ARK's idea of both ends; kvpool's own formulation):

    spine = argmin over s of max(active on source leaf -> s, active on s -> destination leaf)

ties by the sum of the two, then at random. Costs one small message to a coordinator of the group, which pays
for flows of 0.1 s and more and not for short ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import add
from typing import Final

WORTH_CHOOSING_NS: Final = 50_000_000
"""Flows expected to be shorter keep whatever port they have: 50 ms."""

MOST_FLOWS: Final = 1 << 32
"""More than are ever under way at once."""

Below = Callable[[int], int]
"""Draws a number in [0, bound)."""


class View(StrEnum):
    """How much a chooser sees."""

    NONE = "None"
    """A random port, so a random spine: what ECMP does."""
    OWN = "Own"
    """The sender's own flows: it goes round the spines."""
    SOURCE_LEAF = "SourceLeaf"
    """All flows that leave the sender's leaf."""
    BOTH_ENDS = "BothEnds"
    """All flows that leave the sender's leaf, and all that come to the receiver's."""


@dataclass(frozen=True, slots=True)
class ActiveFlow:
    """A flow that was given a spine."""

    source_leaf: int
    destination_leaf: int
    spine: int


class Coordinator:
    """Counts the flows under way between the leaves of one group and its spines, and chooses for the next.

    A choice costs O(spines).
    """

    __slots__ = ("_all", "_down", "_flows", "_lost", "_turns", "_up")

    def __init__(self, leaves: int, spines: int) -> None:
        self._up = [[0] * spines for _ in range(leaves)]
        self._down = [[0] * spines for _ in range(leaves)]
        self._all = range(spines)
        self._lost: set[tuple[int, int]] = set()
        self._turns: dict[int, int] = {}
        self._flows: dict[int, ActiveFlow] = {}

    def active(self, leaf: int) -> tuple[Sequence[int], Sequence[int]]:
        """Flows under way from a leaf to each spine, and from each spine to it."""
        return tuple(self._up[leaf]), tuple(self._down[leaf])

    def choose(self, source_leaf: int, destination_leaf: int, below: Below) -> int | None:
        """The spine for a flow between two leaves, as both ends see it; None when no spine joins them."""
        out, into = self._up[source_leaf], self._down[destination_leaf]
        # One number orders by the worse end, then by the sum, which is never as much as MOST_FLOWS.
        keys = [
            worse * MOST_FLOWS + both
            for worse, both in zip(map(max, out, into), map(add, out, into), strict=True)
        ]
        return least_used(self._joined(source_leaf, destination_leaf), keys, below)

    def choose_by(
        self, view: View, sender: int, source_leaf: int, destination_leaf: int, below: Below
    ) -> int | None:
        """As `choose`, for a chooser that sees `view`; `sender` numbers the host."""
        if view is View.BOTH_ENDS:
            return self.choose(source_leaf, destination_leaf, below)
        usable = self._joined(source_leaf, destination_leaf)
        if not usable:
            return None
        if view is View.SOURCE_LEAF:
            out = self._up[source_leaf]
            return least_used(usable, out, below)
        if view is View.OWN:
            turn = self._turns.get(sender)
            turn = below(len(usable)) if turn is None else turn + 1
            self._turns[sender] = turn
            return usable[turn % len(usable)]
        return usable[below(len(usable))]

    def started(self, flow: int, source_leaf: int, destination_leaf: int, spine: int) -> None:
        """Count a flow that begins.

        Raises:
            ValueError: when the flow is counted already.
        """
        if flow in self._flows:
            raise ValueError(f"flow {flow} is under way already, over spine {self._flows[flow].spine}")
        self._flows[flow] = ActiveFlow(source_leaf, destination_leaf, spine)
        self._up[source_leaf][spine] += 1
        self._down[destination_leaf][spine] += 1

    def ended(self, flow: int) -> None:
        """Count a flow no longer; one that is not known (lost with its link) changes nothing."""
        gone = self._flows.pop(flow, None)
        if gone is not None:
            self._up[gone.source_leaf][gone.spine] -= 1
            self._down[gone.destination_leaf][gone.spine] -= 1

    def link_lost(self, leaf: int, spine: int) -> tuple[int, ...]:
        """Choose the link between a leaf and a spine no longer; returns the flows that it carried.

        Those are no longer counted: the fabric sends them another way, which is not known until they get a
        port again (`kvpool.plan.ports.redraw.may_move`).
        """
        self._lost.add((leaf, spine))
        carried = tuple(
            number
            for number, flow in self._flows.items()
            if flow.spine == spine and leaf in (flow.source_leaf, flow.destination_leaf)
        )
        for number in carried:
            self.ended(number)
        return carried

    def link_back(self, leaf: int, spine: int) -> None:
        """Choose the link between a leaf and a spine again."""
        self._lost.discard((leaf, spine))

    def _joined(self, source_leaf: int, destination_leaf: int) -> Sequence[int]:
        if not self._lost:
            return self._all
        return [
            spine
            for spine in self._all
            if (source_leaf, spine) not in self._lost and (destination_leaf, spine) not in self._lost
        ]


def least_used(usable: Sequence[int], keys: Sequence[int], below: Below) -> int | None:
    """The usable spine with the smallest key; equal ones by lot. None when none is usable."""
    if not usable:
        return None
    least = min(keys) if len(usable) == len(keys) else min(keys[spine] for spine in usable)
    best = [spine for spine in usable if keys[spine] == least]
    return best[0] if len(best) == 1 else best[below(len(best))]


def worth_choosing(expected_ns: int) -> bool:
    """Tell whether a flow is expected to last long enough to ask for a spine."""
    return expected_ns >= WORTH_CHOOSING_NS
