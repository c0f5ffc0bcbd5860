"""One link that several transfers share: N of them get 1/N of the bandwidth each (processor sharing).

A virtual clock counts the bytes that every present transfer has been given. A transfer of n bytes that comes
when the clock stands at V ends when it stands at V + n, so an arrival or an end costs O(log N) and touches no
other transfer (virtual time of fair queueing: Demers, Keshav, Shenker, SIGCOMM 1989). All arithmetic is in
integers: times are exact to the nanosecond, rounded up.
"""

from heapq import heappop, heappush
from typing import Final

from kvpool.plan.timing.model import NS_PER_SECOND

_SCALE: Final = 1 << 20
"""Parts of a byte that the virtual clock counts."""


class SharedLink:
    """A link, the transfers on it, and what it has carried."""

    __slots__ = ("_clock", "_ends", "_rate", "_since_ns", "busy_ns", "moved_bytes")

    def __init__(self, bytes_per_second: int) -> None:
        if bytes_per_second <= 0:
            raise ValueError(f"a link needs a bandwidth above 0 bytes/s, not {bytes_per_second}")
        self._rate = bytes_per_second * _SCALE
        self._clock = 0
        self._since_ns = 0
        self._ends: list[tuple[int, int]] = []
        self.moved_bytes = 0
        """Of every transfer that has begun."""
        self.busy_ns = 0
        """Time with at least one transfer, up to the last change."""

    def __len__(self) -> int:
        return len(self._ends)

    def join(self, now_ns: int, ident: int, count_bytes: int) -> None:
        """Begin a transfer. Ids of transfers that are on the link at once differ."""
        self._pass(now_ns)
        heappush(self._ends, (self._clock + count_bytes * _SCALE, ident))
        self.moved_bytes += count_bytes

    def due_ns(self) -> int | None:
        """When the next transfer ends if none comes; None while the link is idle."""
        if not self._ends:
            return None
        left = (self._ends[0][0] - self._clock) * len(self._ends) * NS_PER_SECOND
        return self._since_ns - (-left // self._rate)

    def take(self, now_ns: int) -> list[int]:
        """Return the transfers that have ended by now, in order of their end."""
        ended: list[int] = []
        while (due := self.due_ns()) is not None and due <= now_ns:
            self._pass(due)
            before = self._clock
            while self._ends and self._ends[0][0] <= before:
                ended.append(heappop(self._ends)[1])
        self._pass(now_ns)
        return ended

    def backlog_ns(self, now_ns: int) -> int:
        """Time until all that is on the link has arrived if nothing else comes."""
        if not self._ends:
            return 0
        self._pass(now_ns)
        left = sum(end - self._clock for end, _ in self._ends)
        return -(-max(0, left) * NS_PER_SECOND // self._rate)

    def forget(self) -> None:
        """Drop all transfers: one end of the link died."""
        self._ends.clear()

    def _pass(self, now_ns: int) -> None:
        """Move the virtual clock to now."""
        passed = now_ns - self._since_ns
        if passed <= 0:
            return
        if self._ends:
            self._clock += passed * self._rate // (len(self._ends) * NS_PER_SECOND)
            self.busy_ns += passed
        self._since_ns = now_ns
