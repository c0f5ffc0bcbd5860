"""The order in which idle blocks of a device leave when the least recent goes first, in few operations."""

from collections import deque
from collections.abc import Iterator, Sequence

_SLACK = 1024


class RecencyQueue:
    """A queue in which a block that is used again leaves a stale entry, to be passed over at the front.

    Adding many blocks at once, and taking many, are single operations of the interpreter.
    """

    __slots__ = ("_queue", "_stale", "_stale_entries")

    def __init__(self) -> None:
        self._queue: deque[int] = deque()
        self._stale: dict[int, int] = {}
        """Of each block, how many of its entries, the foremost, do not count."""
        self._stale_entries = 0

    def __len__(self) -> int:
        return len(self._queue) - self._stale_entries

    @property
    def entries(self) -> int:
        """Valid and stale ones: what it costs in memory."""
        return len(self._queue)

    def add(self, blocks: Sequence[int]) -> None:
        """Blocks became idle; of these the first leaves first."""
        self._queue.extend(blocks)

    def discard(self, blocks: Sequence[int]) -> None:
        """Idle blocks are used again."""
        stale = self._stale
        for block in blocks:
            stale[block] = stale.get(block, 0) + 1
        self._stale_entries += len(blocks)
        if self._stale_entries > _SLACK + len(self._queue) // 2:
            self._queue = deque(self._valid())
            self._stale.clear()
            self._stale_entries = 0

    def take(self, count: int) -> list[int]:
        """Take out the blocks that have been idle for longest."""
        stale, pop = self._stale, self._queue.popleft
        if not stale:
            return [pop() for _ in range(count)]
        taken: list[int] = []
        while len(taken) < count:
            block = pop()
            if block in stale:
                self._stale_entries -= 1
                if stale[block] == 1:
                    del stale[block]
                else:
                    stale[block] -= 1
            else:
                taken.append(block)
        return taken

    def clear(self) -> None:
        """Forget all of them."""
        self._queue.clear()
        self._stale.clear()
        self._stale_entries = 0

    def _valid(self) -> Iterator[int]:
        left = dict(self._stale)
        for block in self._queue:
            if left.get(block):
                left[block] -= 1
            else:
                yield block
