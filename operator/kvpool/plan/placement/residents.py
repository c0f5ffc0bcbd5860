"""The objects of one tier in the order in which they leave.

A heap for each group of objects, whose stale entries are skipped when they come up; kvpool's own.
"""

import heapq

from kvpool.plan.placement.eviction import EvictionRule, GroupedRule, Key, Use

SLACK = 64


class Residents:
    """Objects that may leave a tier, by a rule. Adding, dropping and asking cost O(log n) on average.

    Objects in use are simply not in it: take them out while a request reads them.
    """

    __slots__ = ("_heaps", "_keys", "_standing")

    def __init__(self, rule: EvictionRule) -> None:
        self._standing = rule.standing if isinstance(rule, GroupedRule) else None
        self._heaps: dict[str, list[tuple[Key, int]]] = {}
        self._keys: dict[int, tuple[Key, str]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, item: int) -> bool:
        return item in self._keys

    def add(self, use: Use, key: Key) -> None:
        """Add an object, or move it to a new place. `key` is what the rule said at its latest use."""
        group = use.group if self._standing is not None else ""
        self._keys[use.item] = (key, group)
        heap = self._heaps.get(group)
        if heap is None:
            heap = self._heaps[group] = []
        heapq.heappush(heap, (key, use.item))
        if len(heap) > SLACK + 2 * len(self._keys):
            self._sweep(group)

    def discard(self, item: int) -> None:
        """Take an object out; nothing happens when it is not there."""
        self._keys.pop(item, None)

    def first(self, now_ns: int) -> int:
        """Return the object that leaves first, without taking it out.

        Raises:
            LookupError: when there is none.
        """
        best: tuple[float, str, int] | None = None
        for group in self._heaps if len(self._heaps) == 1 else sorted(self._heaps):
            top = self._top(group)
            if top is None:
                continue
            key, item = top
            if self._standing is None:
                return item
            standing = self._standing(group, key, now_ns)
            if best is None or (standing, group) < best[:2]:
                best = (standing, group, item)
        if best is None:
            raise LookupError("no object may leave: all are in use, or there is none")
        return best[2]

    def pop(self, now_ns: int) -> int:
        """Take out and return the object that leaves first.

        Raises:
            LookupError: when there is none.
        """
        item = self.first(now_ns)
        del self._keys[item]
        return item

    def _top(self, group: str) -> tuple[Key, int] | None:
        heap = self._heaps[group]
        while heap:
            key, item = heap[0]
            if self._keys.get(item) == (key, group):
                return key, item
            heapq.heappop(heap)
        return None

    def _sweep(self, group: str) -> None:
        alive = [(key, item) for item, (key, belongs) in self._keys.items() if belongs == group]
        heapq.heapify(alive)
        self._heaps[group] = alive
