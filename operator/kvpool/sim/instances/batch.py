"""A decoding batch that is never walked: whole runs of steps are skipped at once.

Between two changes of the batch its B sequences grow by one token a step each, so the tokens read, K, grow
by B a step, and the times of the steps are an arithmetic series:

    n steps take  n * (base + sequence * B + token * K) + token * B * n * (n - 1) / 2

A sequence is a number in a heap of the step at which it ends, and its context an offset to the count of
steps. kvpool's own derivation; all times are integers in ticks, so skipping gives exactly the times of
single steps.
"""

from heapq import heapify, heappop, heappush
from math import sqrt

from kvpool.sim.instances.pace import Pace, ns_of_ticks


def whole_steps(span: int, first: int, growth: int) -> int:
    """Return how many steps end within `span` when the first takes `first` and each further `growth` more."""
    if span < first:
        return 0
    if growth == 0:
        return span // first
    half = first - growth / 2
    count = int((sqrt(half * half + 2.0 * growth * span) - half) / growth)
    while count * first + growth * (count * (count - 1) // 2) > span:
        count -= 1
    while (count + 1) * first + growth * (count * (count + 1) // 2) <= span:
        count += 1
    return count


class Batch:
    """The sequences that decode together on one instance."""

    __slots__ = (
        "_ends",
        "_offsets",
        "clock",
        "ended",
        "firsts",
        "fresh",
        "kv_tokens",
        "made_tokens",
        "pace",
        "running",
        "steps",
    )

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.clock = 0
        """Ticks: the end of the last step that was done; it may lie ahead while one runs."""
        self.steps = 0
        self.running = 0
        self.kv_tokens = 0
        """Tokens that the next step reads."""
        self.made_tokens = 0
        self.ended: list[tuple[int, int]] = []
        """Sequences that came to their end and were not taken yet: id and time in ticks, oldest first."""
        self.fresh: list[int] = []
        """Sequences whose next token is to be told as their first; the owner adds them."""
        self.firsts: list[tuple[int, int]] = []
        """Those that have made it: id and time in ticks. The owner clears the list."""
        self._ends: list[tuple[int, int]] = []
        self._offsets: dict[int, int] = {}

    def __contains__(self, ident: int) -> bool:
        return ident in self._offsets

    def join(self, ident: int, context_tokens: int, left_tokens: int) -> None:
        """Add a sequence before the next step; it makes at least one token."""
        if left_tokens < 1:
            raise ValueError(f"sequence {ident} joins with {left_tokens} tokens left; it needs at least 1")
        heappush(self._ends, (self.steps + left_tokens, ident))
        self._offsets[ident] = context_tokens - self.steps
        self.running += 1
        self.kv_tokens += context_tokens

    def context_tokens(self, ident: int) -> int:
        """Tokens of a running sequence so far."""
        return self._offsets[ident] + self.steps

    def remove(self, ident: int) -> int:
        """Take a sequence out before its end. Returns the tokens that it had still to make."""
        left = next(end for end, known in self._ends if known == ident) - self.steps
        self._ends = [entry for entry in self._ends if entry[1] != ident]
        heapify(self._ends)
        self.kv_tokens -= self._offsets.pop(ident) + self.steps
        self.running -= 1
        if ident in self.fresh:
            # It goes before its first token: that is told when it is back.
            self.fresh.remove(ident)
        return left

    def idle_until(self, ticks: int) -> None:
        """Move the clock of an empty batch."""
        if self.running == 0 and self.clock < ticks:
            self.clock = ticks

    def step_ticks(self) -> int:
        """Time of the next step."""
        return self.pace.base + self.pace.sequence * self.running + self.pace.token * self.kv_tokens

    def advance(self, until: int) -> None:
        """Do all whole steps that end by `until`."""
        pace = self.pace
        while self.running:
            span = until - self.clock
            first = pace.base + pace.sequence * self.running + pace.token * self.kv_tokens
            if span < first:
                return
            growth = pace.token * self.running
            count = self._ends[0][0] - self.steps
            whole = count * first + growth * (count * (count - 1) // 2)
            if whole > span:
                count = whole_steps(span, first, growth)
                self._pass(count, first, count * first + growth * (count * (count - 1) // 2))
                return
            self._pass(count, first, whole)
            self._retire()

    def step(self, extra_ticks: int = 0) -> None:
        """Do one step now, `extra_ticks` longer than its decoding takes. The clock then stands at its end."""
        ticks = (self.step_ticks() if self.running else 0) + extra_ticks
        self._pass(1, ticks, ticks)
        self._retire()

    def due_ns(self) -> int | None:
        """When the next sequence ends if none joins, or an ended one is to be taken; None when empty."""
        if self.ended:
            return ns_of_ticks(self.ended[0][1])
        if not self.running:
            return None
        return ns_of_ticks(self.clock_after(self._ends[0][0] - self.steps))

    def clock_after(self, count: int) -> int:
        """The clock after `count` more steps of the batch as it is."""
        growth = self.pace.token * self.running
        return self.clock + count * self.step_ticks() + growth * (count * (count - 1) // 2)

    def take(self, until: int) -> list[tuple[int, int]]:
        """Return the sequences that have ended by `until`, oldest first: id and time in ticks."""
        ended = self.ended
        if not ended or ended[-1][1] <= until:
            self.ended = []
            return ended
        self.ended = [entry for entry in ended if entry[1] > until]
        return [entry for entry in ended if entry[1] <= until]

    def _pass(self, count: int, first: int, ticks: int) -> None:
        if self.fresh:
            told = self.clock + first
            self.firsts += [(ident, told) for ident in self.fresh]
            self.fresh.clear()
        self.clock += ticks
        self.steps += count
        self.kv_tokens += count * self.running
        self.made_tokens += count * self.running

    def _retire(self) -> None:
        ends, steps = self._ends, self.steps
        while ends and ends[0][0] <= steps:
            ident = heappop(ends)[1]
            self.kv_tokens -= self._offsets.pop(ident) + steps
            self.running -= 1
            self.ended.append((ident, self.clock))
