"""The prefix blocks in the memory of one instance: pinned by running requests, or idle until evicted.

A block is pinned while any request uses it. When the last one ends it becomes idle, and idle blocks go least
recently used first. A request gives its blocks back from last to first, so a tail always goes before its
head: eviction is leaf-first without a tree (the free queue of vLLM v1 works alike). A visit of a block
costs one operation of a dictionary.
"""

from collections.abc import Callable, Sequence

from kvpool.sim.prefixes.idle import IdleOrder, recency


def no_heir(block: int) -> None:
    """What is evicted is lost."""


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
        "private_tokens",
    )

    def __init__(
        self,
        capacity_tokens: int,
        block_tokens: int,
        heir: Callable[[int], None] = no_heir,
        order: IdleOrder | None = None,
    ) -> None:
        if capacity_tokens < block_tokens:
            raise ValueError(f"{capacity_tokens} tokens of memory do not hold one block of {block_tokens}")
        self.capacity_tokens = capacity_tokens
        self.block_tokens = block_tokens
        self.private_tokens = 0
        self.evicted_blocks = 0
        self._pins: dict[int, int] = {}
        self._idle: IdleOrder = recency() if order is None else order
        self._heir = heir

    @property
    def pinned_blocks(self) -> int:
        """Blocks that a running request uses."""
        return len(self._pins)

    @property
    def idle_blocks(self) -> int:
        """Blocks that nobody uses now."""
        return len(self._idle)

    @property
    def used_tokens(self) -> int:
        """Pinned and private: what cannot be evicted."""
        return self.private_tokens + len(self._pins) * self.block_tokens

    def __contains__(self, block: int) -> bool:
        return block in self._pins or block in self._idle

    def blocks(self) -> list[int]:
        """All blocks that are here."""
        return [*self._pins, *self._idle]

    def match(self, blocks: Sequence[int]) -> int:
        """Return how many leading blocks are here."""
        pins, idle = self._pins, self._idle
        count = 0
        for block in blocks:
            if block not in pins and block not in idle:
                break
            count += 1
        return count

    def acquire(self, blocks: Sequence[int], private_tokens: int) -> bool:
        """Pin a request's blocks and take its private tokens; evicts what is idle where needed.

        Returns False, and changes nothing, when they do not fit beside what is pinned.
        """
        pins, idle = self._pins, self._idle
        free = (self.capacity_tokens - self.used_tokens - private_tokens) // self.block_tokens
        if len(blocks) > free and sum(1 for block in blocks if block not in pins) > free:
            return False
        for block in blocks:
            if block in pins:
                pins[block] += 1
            else:
                pins[block] = 1
                if block in idle:
                    del idle[block]
        self.private_tokens += private_tokens
        self._make_room()
        return True

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
        pins, idle = self._pins, self._idle
        for block in reversed(blocks):
            left = pins[block] - 1
            if left:
                pins[block] = left
            else:
                del pins[block]
                idle[block] = None
        self.private_tokens -= private_tokens

    def forget(self) -> None:
        """Lose everything: the instance died."""
        self._pins.clear()
        self._idle.clear()
        self.private_tokens = 0

    def _make_room(self) -> None:
        idle = self._idle
        room = (self.capacity_tokens - self.private_tokens) // self.block_tokens
        for _ in range(len(self._pins) + len(idle) - room):
            block, _ = idle.popitem(last=False)
            self.evicted_blocks += 1
            self._heir(block)
