"""The agenda of a simulation: what happens next, and in which order when several things happen at once.

One heap keyed (time, kind, id). Equal times are resolved by kind, equal kinds by id, so results depend
neither on the order in which things were put on the agenda nor on that of any dictionary.
"""

from collections.abc import Iterator
from enum import IntEnum
from heapq import heappop, heappush
from typing import Final

_ID_BITS: Final = 40
_ID_MASK: Final = (1 << _ID_BITS) - 1


class Kind(IntEnum):
    """What happens, in the order in which things at the same nanosecond happen."""

    FAULT = 0
    LINK = 1
    """A transfer ends."""
    SETUP = 2
    """A transfer is set up and begins to move bytes."""
    LOAD = 3
    """Blocks have come up from a lower tier."""
    LOAD_SETUP = 4
    PREFILL = 5
    """A prompt is computed."""
    ARRIVAL = 6
    STEP = 7
    """A batch ends a step after which something changes."""
    REPORT = 8
    """Instances tell routers their load."""
    SAMPLE = 9


class Agenda:
    """Pending events; at most one for each kind and id. A later one takes the place of the earlier."""

    __slots__ = ("_due", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._due: dict[int, int] = {}

    def at(self, time_ns: int, kind: int, ident: int) -> None:
        """Put an event on the agenda, or move the pending one of that kind and id to another time."""
        key = (kind << _ID_BITS) | ident
        if self._due.get(key) != time_ns:
            self._due[key] = time_ns
            heappush(self._heap, (time_ns, key))

    def cancel(self, kind: int, ident: int) -> None:
        """Take an event off the agenda, if it is there."""
        self._due.pop((kind << _ID_BITS) | ident, None)

    def pop(self) -> tuple[int, int, int] | None:
        """Take the next event off: its time, kind and id. None when nothing is left."""
        heap, due = self._heap, self._due
        while heap:
            time_ns, key = heappop(heap)
            if due.get(key) == time_ns:
                del due[key]
                return time_ns, key >> _ID_BITS, key & _ID_MASK
        return None

    def pending(self) -> Iterator[tuple[int, int]]:
        """Kind and id of everything that is on the agenda, in no order that tells anything."""
        return ((key >> _ID_BITS, key & _ID_MASK) for key in self._due)

    def __len__(self) -> int:
        return len(self._due)
