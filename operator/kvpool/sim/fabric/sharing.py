"""Flows over paths of links, sharing them max-min fairly (progressive filling).

Source: Bertsekas and Gallager, "Data Networks", section 6.5.2. Congestion control that converges at once; no
packets, no queues. Rates are worked out anew only for flows that the change can touch: those joined by links
that can be full.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, inf

from kvpool.plan.timing.model import NS_PER_SECOND


@dataclass(slots=True)
class _Flow:
    path: tuple[int, ...]
    most: int
    """Bytes a second it gets at most, alone: the smallest capacity on its path."""
    left_bytes: float
    rate: float = 0.0
    """Bytes a second."""
    since_ns: int = 0
    """When `left_bytes` was true."""
    version: int = 0


class SharedLinks:
    """Links with a capacity each, and the flows under way on them."""

    __slots__ = ("_asked", "_capacities", "_finishes", "_flows", "_members")

    def __init__(self, capacities_bytes_per_second: Sequence[int]) -> None:
        self._capacities = tuple(capacities_bytes_per_second)
        self._members: list[dict[int, _Flow]] = [{} for _ in self._capacities]
        self._asked = [0] * len(self._capacities)
        self._flows: dict[int, _Flow] = {}
        self._finishes: list[tuple[int, int, int]] = []

    def start(self, flow: int, path: Iterable[int], size_bytes: int, now_ns: int) -> None:
        """Begin a flow over links; flows are numbered by the caller and may not repeat while under way."""
        if flow in self._flows:
            raise ValueError(f"flow {flow} is under way already")
        links = tuple(path)
        begun = _Flow(
            links, min(self._capacities[link] for link in links), float(size_bytes), since_ns=now_ns
        )
        self._flows[flow] = begun
        for link in links:
            self._members[link][flow] = begun
            self._asked[link] += begun.most
        self._share(self._touched(begun, {flow: begun}), now_ns)

    def next_finish(self) -> tuple[int, int] | None:
        """When the next flow ends, and which; None when none is under way. Equal times: the lowest number."""
        while self._finishes:
            at_ns, flow, version = self._finishes[0]
            known = self._flows.get(flow)
            if known is not None and known.version == version:
                return at_ns, flow
            heapq.heappop(self._finishes)
        return None

    def end(self, flow: int, now_ns: int) -> float:
        """Take a flow off its links; returns the bytes that it had left (below one byte when it finished)."""
        ended = self._flows[flow]
        _advance(ended, now_ns)
        touched = self._touched(ended, {})
        touched.pop(flow, None)
        del self._flows[flow]
        for link in ended.path:
            del self._members[link][flow]
            self._asked[link] -= ended.most
        self._share(touched, now_ns)
        return ended.left_bytes

    def rate(self, flow: int) -> float:
        """Bytes a second that a flow gets now."""
        return self._flows[flow].rate

    def can_fill(self, link: int) -> bool:
        """Tell whether the flows on a link could ask for more than it has: only then does it join them."""
        return self._asked[link] > self._capacities[link]

    def _touched(self, start: _Flow, found: dict[int, _Flow]) -> dict[int, _Flow]:
        """Every flow whose rate a change of `start` may change, in a fixed order."""
        seen: dict[int, None] = {}
        waiting = [*start.path]
        while waiting:
            link = waiting.pop()
            if link in seen or not self.can_fill(link):
                continue
            seen[link] = None
            for number, flow in self._members[link].items():
                if number not in found:
                    found[number] = flow
                    waiting.extend(flow.path)
        return found

    def _share(self, flows: dict[int, _Flow], now_ns: int) -> None:
        if not flows:
            return
        for number, rate in self._filled(flows).items():
            flow = flows[number]
            if rate == flow.rate:
                continue
            _advance(flow, now_ns)
            flow.rate = rate
            flow.version += 1
            finish_ns = now_ns + ceil(flow.left_bytes * NS_PER_SECOND / rate)
            heapq.heappush(self._finishes, (finish_ns, number, flow.version))

    def _filled(self, flows: dict[int, _Flow]) -> dict[int, float]:
        """Raise all rates together; a flow stops where a link of its path is full, or at its own most."""
        left: dict[int, float] = {}
        waiting: dict[int, int] = {}
        for flow in flows.values():
            for link in flow.path:
                if link in waiting:
                    waiting[link] += 1
                elif self.can_fill(link):
                    left[link] = float(self._capacities[link])
                    waiting[link] = 1
        rates: dict[int, float] = {}
        by_most = sorted(flows, key=lambda number: (flows[number].most, number), reverse=True)
        while len(rates) < len(flows):
            tightest, share = _tightest(left, waiting)
            while by_most and (by_most[-1] in rates or flows[by_most[-1]].most <= share):
                number = by_most.pop()
                if number not in rates:
                    rates[number] = float(flows[number].most)
                    _take(flows[number].path, rates[number], left, waiting)
                    break
            else:
                for number in self._members[tightest]:
                    if number in flows and number not in rates:
                        rates[number] = share
                        _take(flows[number].path, share, left, waiting)
        return rates


def _tightest(left: dict[int, float], waiting: dict[int, int]) -> tuple[int, float]:
    """The link that is full first, and what each of its flows has then. Equal ones: the lowest number."""
    found, least = -1, inf
    for link, count in waiting.items():
        share = left[link] / count
        if share < least or (share == least and link < found):
            found, least = link, share
    return found, max(0.0, least)


def _take(path: Iterable[int], rate: float, left: dict[int, float], waiting: dict[int, int]) -> None:
    """Take a flow's rate off the links that can be full."""
    for link in path:
        if link in waiting:
            left[link] -= rate
            waiting[link] -= 1
            if not waiting[link]:
                del waiting[link]


def _advance(flow: _Flow, now_ns: int) -> None:
    """Count what was sent since the rate last changed."""
    sent = flow.rate * (now_ns - flow.since_ns) / NS_PER_SECOND
    flow.left_bytes = max(0.0, flow.left_bytes - sent)
    flow.since_ns = now_ns
