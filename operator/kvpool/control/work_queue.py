"""A coalescing queue with deadlines and two lanes; the semantics of client-go's work queue.

Only keys travel through it, never events. A key that is added while it is being worked on runs once more
afterwards. Urgent keys never wait behind routine ones. Its size is bounded by the number of distinct keys.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Lane(IntEnum):
    """Lower goes first."""

    URGENT = 0
    ROUTINE = 1


@dataclass
class DueQueue(Generic[K]):
    """Pure state; time comes in as an argument (monotonic seconds)."""

    _ready: dict[Lane, dict[K, float]] = field(default_factory=lambda: {lane: {} for lane in Lane})
    _later: dict[K, tuple[float, Lane]] = field(default_factory=dict)
    _running: set[K] = field(default_factory=set)
    _again: dict[K, Lane] = field(default_factory=dict)

    def add(self, key: K, lane: Lane, now: float) -> None:
        """Make `key` ready now; in the more urgent lane when it is ready already."""
        if key in self._running:
            self._again[key] = min(lane, self._again.get(key, lane))
            return
        since = now
        for known in Lane:
            if key in self._ready[known]:
                since = self._ready[known].pop(key)
                lane = min(lane, known)
        self._later.pop(key, None)
        self._ready[lane][key] = since

    def add_at(self, key: K, lane: Lane, due: float) -> None:
        """Make `key` ready at `due`, unless an earlier moment is set already."""
        known = self._later.get(key)
        if known is None or due < known[0]:
            self._later[key] = (due, lane)

    def take(self, now: float) -> K | None:
        """Return the next ready key and mark it running; None when nothing is due."""
        for key in [key for key, (due, _) in self._later.items() if due <= now]:
            due, lane = self._later.pop(key)
            self.add(key, lane, due)
        for lane in Lane:
            for key in self._ready[lane]:
                del self._ready[lane][key]
                self._running.add(key)
                return key
        return None

    def done(self, key: K, now: float) -> None:
        """End the work on `key`; it is ready again when it was added meanwhile."""
        self._running.discard(key)
        lane = self._again.pop(key, None)
        if lane is not None:
            self.add(key, lane, now)

    def next_due(self) -> float | None:
        """When a waiting key becomes ready, or None."""
        return min((due for due, _ in self._later.values()), default=None)

    def depth(self) -> int:
        """Ready keys."""
        return sum(len(keys) for keys in self._ready.values())

    def oldest_age_seconds(self, now: float) -> float:
        """How long the oldest ready key has waited; 0 when none waits."""
        return max((now - since for keys in self._ready.values() for since in keys.values()), default=0.0)
