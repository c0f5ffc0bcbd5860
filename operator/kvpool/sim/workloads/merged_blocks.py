"""Many small block ids of a session made few: merged, numbered anew, and shared in memory.

Ids of 64 tokens would be 94 million for 710 agent sessions. Merged to 512 tokens they are an eighth; a
request that continues another takes over its numbers, so that each distinct number is one object and a
place in a tuple 8 bytes. Only merged blocks that are full count: a hit is at most one merged block, less a
token, shorter than it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from kvpool.sim.workloads.fields import whole_numbers
from kvpool.sim.workloads.reading import LineError

Ranges = tuple[tuple[int, int], ...]
"""Block ids as inclusive ranges: `((1, 238), (300, 301))` are 1 to 238, 300, 301."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A prompt's ids as they were, and the merged ones."""

    ids: Ranges
    blocks: tuple[int, ...]


NO_BRANCH: Final = Branch((), ())


class Numbers:
    """Block ids of the whole workload: new ones, and those of prefixes that sessions share."""

    def __init__(self) -> None:
        self._next = 0
        self._shared: dict[tuple[int, int, int], int] = {}

    def new(self) -> int:
        """Return an id that was not there before."""
        self._next += 1
        return self._next - 1

    def shared(self, tool_tokens: int, system_tokens: int, place: int) -> int:
        """Return the id of the block at `place` in the prefix of so many tool and system tokens."""
        key = (tool_tokens, system_tokens, place)
        if key not in self._shared:
            self._shared[key] = self.new()
        return self._shared[key]


class SessionBlocks:
    """Merges the ids of one session; the same ids after the same prefix get the same number."""

    def __init__(self, numbers: Numbers, group: int, block_tokens: int) -> None:
        self._numbers = numbers
        self._group = group
        self._block_tokens = block_tokens
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}

    @property
    def distinct(self) -> int:
        """Different blocks so far."""
        return len(self._known)

    def begin(self, ids: Ranges, tool_tokens: int, system_tokens: int) -> Branch:
        """Merge the ids of an agent's first prompt, whose tools and instructions other sessions sent too.

        Blocks inside the tools are shared with all that sent as many tool tokens, blocks after them with
        those that sent as many system tokens besides.
        """
        before = -1
        small = expanded(ids, 0)
        places = min((tool_tokens + system_tokens) // self._block_tokens, len(small) // self._group)
        for place in range(places):
            key = (before, tuple(small[place * self._group : (place + 1) * self._group]))
            if key not in self._known:
                in_tools = (place + 1) * self._block_tokens <= tool_tokens
                self._known[key] = self._numbers.shared(tool_tokens, -1 if in_tools else system_tokens, place)
            before = self._known[key]
        return self.follow(ids, NO_BRANCH)

    def follow(self, ids: Ranges, branch: Branch) -> Branch:
        """Merge the ids of a prompt that perhaps continues another; `branch` only saves time."""
        group, known, numbers = self._group, self._known, self._numbers
        kept = common(ids, branch.ids) // group
        small = expanded(ids, kept * group)
        blocks = list(branch.blocks[:kept])
        before = blocks[-1] if blocks else -1
        for start in range(0, len(small) - group + 1, group):
            key = (before, tuple(small[start : start + group]))
            number = known.get(key)
            if number is None:
                number = known[key] = numbers.new()
            blocks.append(number)
            before = number
        return Branch(ids, tuple(blocks))


def ranges(record: Mapping[str, Any], field: str) -> Ranges:
    """Return a field's ids, written one by one or as inclusive ranges, as ranges."""
    listed = record.get(field)
    if not isinstance(listed, list) or not listed or not isinstance(listed[0], list):
        return _packed(whole_numbers(record, field))
    for pair in listed:
        if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is type(pair[1]) is int):
            raise LineError(f"`{field}` must hold ids, or pairs [first, last]; one of its entries is neither")
        if pair[0] > pair[1]:
            raise LineError(f"`{field}` holds the range [{pair[0]}, {pair[1]}], which ends before it starts")
    return tuple(map(tuple, listed))


def covered(ids: Ranges) -> int:
    """Return how many ids there are."""
    return sum([last - first for first, last in ids]) + len(ids)


def common(one: Ranges, other: Ranges) -> int:
    """Return how many leading ids are equal."""
    count = 0
    for (first, last), (first_there, last_there) in zip(one, other, strict=False):
        if first != first_there:
            break
        count += min(last, last_there) - first + 1
        if last != last_there:
            break
    return count


def expanded(ids: Ranges, start: int) -> list[int]:
    """Return the ids one by one, from the one at `start`."""
    parts: list[range] = []
    for first, last in ids:
        length = last - first + 1
        if start < length:
            parts.append(range(first + start, last + 1))
        start = max(0, start - length)
    return list(chain.from_iterable(parts))


def _packed(ids: list[int]) -> Ranges:
    packed: list[tuple[int, int]] = []
    first = last = None
    for each in ids:
        if first is None or last is None:
            first = last = each
        elif each == last + 1:
            last = each
        else:
            packed.append((first, last))
            first = last = each
    if first is not None and last is not None:
        packed.append((first, last))
    return tuple(packed)
