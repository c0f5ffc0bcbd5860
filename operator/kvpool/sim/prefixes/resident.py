"""The prefix blocks in the memory of one instance: pinned by running requests, or idle until evicted.

A block is pinned while any request uses it. When the last one ends it becomes idle, and idle blocks go least
recently used first. A request gives its blocks back from last to first, so a tail always goes before its
head: eviction is leaf-first without a tree (the free queue of vLLM v1 works alike). A visit of a block
costs one operation of a dictionary.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile

from kvpool.sim.prefixes.idle import LeavingOrder
from kvpool.sim.prefixes.queue import RecencyQueue


class ResidentPrefixes:
    """Blocks of prefixes in one memory, and private KV beside them that nobody can share.

    Private KV (partial blocks, answers) is counted in tokens: engines page it finer than traces name
    prefixes. `heir` is told of each block that is evicted: the next tier, when there is one. `order` says
    which idle block leaves first; None: the least recent one.
    """

    __slots__ = (
        "_heir",
        "_idle",
        "_pins",
        "block_tokens",
        "capacity_tokens",
        "evicted_blocks",
        "pinned_blocks",
        "private_tokens",
    )

    def __init__(
        self,
        capacity_tokens: int,
        block_tokens: int,
        heir: Callable[[int], None] | None = None,
        order: LeavingOrder | None = None,
    ) -> None:
        if capacity_tokens < block_tokens:
            raise ValueError(f"{capacity_tokens} tokens of memory do not hold one block of {block_tokens}")
        self.capacity_tokens = capacity_tokens
        self.block_tokens = block_tokens
        self.private_tokens = 0
        self.pinned_blocks = 0
        """Blocks that a running request uses."""
        self.evicted_blocks = 0
        self._pins: dict[int, int] = {}
        """Of every block that is here, how many requests use it; 0: it is idle."""
        self._idle: LeavingOrder = RecencyQueue() if order is None else order
        self._heir = heir

    @property
    def idle_blocks(self) -> int:
        """Blocks that nobody uses now."""
        return len(self._idle)

    @property
    def used_tokens(self) -> int:
        """Pinned and private: what cannot be evicted."""
        return self.private_tokens + self.pinned_blocks * self.block_tokens

    def __contains__(self, block: int) -> bool:
        return block in self._pins

    def blocks(self) -> list[int]:
        """All blocks that are here."""
        return list(self._pins)

    def match(self, blocks: Sequence[int]) -> int:
        """Return how many leading blocks are here."""
        return len(list(takewhile(self._pins.__contains__, blocks)))

    def acquire(self, blocks: Sequence[int], private_tokens: int, spare_tokens: int = 0) -> bool:
        """Pin a request's blocks and take its private tokens; evicts what is idle where needed.

        Returns False, and changes nothing, when they and `spare_tokens` do not fit beside what is pinned.
        """
        pins, idle = self._pins, self._idle
        left = self.capacity_tokens - self.used_tokens - private_tokens - spare_tokens
        free = left // self.block_tokens
        if len(blocks) > free and sum(1 for block in blocks if not pins.get(block)) > free:
            return False
        here = self.match(blocks)
        again = []
        for block in blocks[:here]:
            users = pins[block]
            pins[block] = users + 1
            if not users:
                again.append(block)
        idle.discard(again)
        self.pinned_blocks += len(again)
        fresh = blocks[here:]
        if pins.keys().isdisjoint(fresh):
            pins.update(dict.fromkeys(fresh, 1))
            self.pinned_blocks += len(fresh)
        else:
            self._pin(fresh)
        self.private_tokens += private_tokens
        self._make_room()
        return True

    def _pin(self, blocks: Sequence[int]) -> None:
        """Pin blocks of which some are here, and not the first."""
        for block in blocks:
            users = self._pins.get(block)
            if users == 0:
                self._idle.discard((block,))
            self._pins[block] = (users or 0) + 1
            self.pinned_blocks += not users

    def grow(self, count_tokens: int) -> None:
        """Take more private tokens for requests that run; idle blocks go for them.

        Raises ValueError when what is pinned leaves no room for them.
        """
        if self.used_tokens + count_tokens > self.capacity_tokens:
            text = f"{count_tokens} tokens more than {self.used_tokens} used exceed {self.capacity_tokens}"
            raise ValueError(text)
        self.private_tokens += count_tokens
        self._make_room()

    def release(self, blocks: Sequence[int], private_tokens: int) -> None:
        """Give a request's blocks back: shared ones stay as idle, private tokens are free."""
        pins = self._pins
        freed: list[int] = []
        for block in reversed(blocks):
            left = pins[block] = pins[block] - 1
            if not left:
                freed.append(block)
        self._idle.add(freed)
        self.pinned_blocks -= len(freed)
        self.private_tokens -= private_tokens

    def forget(self) -> None:
        """Lose everything: the instance died."""
        self._pins.clear()
        self._idle.clear()
        self.private_tokens = self.pinned_blocks = 0

    def _make_room(self) -> None:
        """Evict until all fits; only what is idle goes, so what is pinned must fit."""
        pins, idle = self._pins, self._idle
        excess = len(pins) - (self.capacity_tokens - self.private_tokens) // self.block_tokens
        if excess <= 0:
            return
        self.evicted_blocks += excess
        leaving = idle.take(excess)
        deque(map(pins.__delitem__, leaving), maxlen=0)
        if self._heir is not None:
            for block in leaving:
                self._heir(block)
