"""Sums over the sequences of one instance by the output they still expect, without a walk over them.

All sequences of a batch get one token a step. So the step at which each is expected to end does not move, and
they stay sorted: a sequence enters once and leaves once, and sums over a range of remaining lengths are
differences of running totals. kvpool's own derivation.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

OVERDUE_TOKENS: Final = 1
"""What a sequence that outlived its prediction is taken to need still."""


@dataclass(frozen=True, slots=True)
class _Totals:
    """Running totals over the sequences, nearest end first; entry n is the sum over the first n."""

    weights: list[int]
    ends: list[int]
    weighted_ends: list[int]
    reserved: list[int]


class Pending:
    """The sequences that run on an instance or are on their way to it.

    `steps` is how many tokens every running sequence got since the instance began; who owns the object raises
    it. A sum costs one binary search; entering and leaving cost one shift of a list.
    """

    __slots__ = ("_cached", "_ends", "_objectives", "_reserved", "_weights", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self._ends: list[int] = []
        self._weights: list[int] = []
        self._reserved: list[int] = []
        self._objectives: dict[int, int] = {}
        self._cached: _Totals | None = None

    def __len__(self) -> int:
        return len(self._ends)

    def enter(self, remaining_tokens: int, reserved_tokens: int, weight: int, tpot_ns: int) -> int:
        """Add a sequence. Returns its expected last step, to be told to `leave`.

        A sequence on its way in is entered as if it began now: it gets no tokens before it has arrived, so
        its end is expected too early by the steps of its transfer.
        """
        end = self.steps + max(OVERDUE_TOKENS, remaining_tokens)
        place = bisect_right(self._ends, end)
        self._ends.insert(place, end)
        self._weights.insert(place, weight)
        self._reserved.insert(place, reserved_tokens)
        self._objectives[tpot_ns] = self._objectives.get(tpot_ns, 0) + weight
        self._cached = None
        return end

    def leave(self, end: int, reserved_tokens: int, weight: int, tpot_ns: int) -> None:
        """Take out a sequence, with the figures that it was entered with.

        Raises KeyError when there is none with those figures.
        """
        for place in range(bisect_left(self._ends, end), bisect_right(self._ends, end)):
            if self._reserved[place] == reserved_tokens and self._weights[place] == weight:
                del self._ends[place], self._weights[place], self._reserved[place]
                self._objectives[tpot_ns] -= weight
                self._cached = None
                return
        raise KeyError(end)

    def remaining_tokens(self) -> int:
        """The output that all of them still expect together."""
        totals = self._totals()
        overdue = bisect_right(self._ends, self.steps)
        alive = len(self._ends) - overdue
        return OVERDUE_TOKENS * overdue + totals.ends[-1] - totals.ends[overdue] - self.steps * alive

    def delayed_tokens(self, most_tokens: int) -> int:
        """Sum of weight x min(remaining, `most_tokens`): who a newcomer of that length slows, and how long.

        Percent x tokens. `most_tokens`: at least 1.
        """
        totals = self._totals()
        overdue = bisect_right(self._ends, self.steps)
        inside = bisect_right(self._ends, self.steps + most_tokens)
        alive = totals.weights[inside] - totals.weights[overdue]
        ending = totals.weighted_ends[inside] - totals.weighted_ends[overdue] - self.steps * alive
        staying = most_tokens * (totals.weights[-1] - totals.weights[inside])
        return OVERDUE_TOKENS * totals.weights[overdue] + ending + staying

    def freed_after_tokens(self, wanted_tokens: int) -> int:
        """Steps until sequences that reserve `wanted_tokens` together are expected to have ended.

        The last expected end when all of them reserve less; 0 when nothing is wanted or nobody runs.
        """
        if not self._ends or wanted_tokens <= 0:
            return 0
        place = min(bisect_left(self._totals().reserved, wanted_tokens), len(self._ends))
        return max(OVERDUE_TOKENS, self._ends[place - 1] - self.steps)

    def broken_weight(self, before_ns: int, after_ns: int) -> int:
        """Weight of the sequences whose promised time per token is in [before, after): kept now, broken then.

        Percent.
        """
        return sum(weight for tpot, weight in self._objectives.items() if before_ns <= tpot < after_ns)

    def _totals(self) -> _Totals:
        if self._cached is None:
            weighted = (weight * end for weight, end in zip(self._weights, self._ends, strict=True))
            self._cached = _Totals(
                list(accumulate(self._weights, initial=0)),
                list(accumulate(self._ends, initial=0)),
                list(accumulate(weighted, initial=0)),
                list(accumulate(self._reserved, initial=0)),
            )
        return self._cached
