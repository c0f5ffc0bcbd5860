"""In which order idle blocks leave a memory: the least recent first, or by a rule of the planner."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Protocol

from kvpool.plan.placement.eviction import EvictionRule, Key, Use
from kvpool.plan.placement.residents import Residents


class Now(Protocol):
    """Who knows the time of the simulation."""

    now_ns: int


class LeavingOrder(Protocol):
    """Idle blocks of a memory in the order in which they leave."""

    def add(self, blocks: Sequence[int]) -> None:
        """Blocks became idle; where nothing else tells them apart, the first leaves first."""

    def discard(self, blocks: Sequence[int]) -> None:
        """Idle blocks are used again, or gone."""

    def take(self, count: int) -> list[int]:
        """Take out the blocks that leave first; there are so many at least."""

    def clear(self) -> None:
        """Forget all of them."""

    def __len__(self) -> int: ...


class StoredOrder(LeavingOrder, Protocol):
    """The same of a tier in which all blocks are idle: it is also where they are looked for."""

    def __contains__(self, block: object, /) -> bool: ...

    def __iter__(self) -> Iterator[int]: ...


class RecencyOrder:
    """Blocks in the order in which they became idle."""

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def __contains__(self, block: object) -> bool:
        return block in self._blocks

    def __iter__(self) -> Iterator[int]:
        return iter(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, blocks: Sequence[int]) -> None:
        """Blocks became idle; of these the first leaves first."""
        self._blocks.update(dict.fromkeys(blocks))

    def discard(self, blocks: Sequence[int]) -> None:
        """Idle blocks are used again, or gone."""
        for block in blocks:
            del self._blocks[block]

    def take(self, count: int) -> list[int]:
        """Take out the blocks that have been idle for longest."""
        return [self._blocks.popitem(last=False)[0] for _ in range(count)]

    def clear(self) -> None:
        """Forget all of them."""
        self._blocks.clear()


class UseBook:
    """What one eviction rule knows: of the blocks of one instance, in whichever of its own tiers they are, or
    of those of a tier that instances share."""

    def __init__(self, rule: EvictionRule, clock: Now) -> None:
        self.rule = rule
        self.clock = clock
        self.uses: dict[int, Use] = {}
        self.keys: dict[int, Key] = {}
        self._turn = 0

    def note(self, block: int) -> None:
        """A block was used until now."""
        self._turn += 1
        use = self.uses.get(block)
        if use is None:
            use = self.uses[block] = Use(block, self.clock.now_ns, self._turn)
        else:
            use.again(self.clock.now_ns, self._turn)
        self.keys[block] = self.rule.key(use)


class RuledOrder:
    """Idle blocks of one tier under a rule. At the `top` of a book, becoming idle ends a use; below it is no
    use."""

    def __init__(self, book: UseBook, *, top: bool) -> None:
        self._book = book
        self._top = top
        self._residents = Residents(book.rule)
        self._blocks: dict[int, None] = {}

    def __contains__(self, block: object) -> bool:
        return block in self._blocks

    def __iter__(self) -> Iterator[int]:
        return iter(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, blocks: Sequence[int]) -> None:
        """Blocks became idle; where the rule ranks them alike, the first leaves first."""
        book = self._book
        for block in blocks:
            if self._top or block not in book.keys:
                book.note(block)
            self._blocks[block] = None
            self._residents.add(book.uses[block], book.keys[block])

    def discard(self, blocks: Sequence[int]) -> None:
        """Idle blocks are used again, or gone."""
        for block in blocks:
            del self._blocks[block]
            self._residents.discard(block)

    def take(self, count: int) -> list[int]:
        """Take out the blocks that leave first."""
        taken = [self._residents.pop(self._book.clock.now_ns) for _ in range(count)]
        for block in taken:
            del self._blocks[block]
        return taken

    def clear(self) -> None:
        """Forget all of them."""
        for block in self._blocks:
            self._residents.discard(block)
        self._blocks.clear()
