"""The requests around each fault: how many were sent, which failed, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from demo.load import NOT_SENT, SentRequest, classify


@dataclass(frozen=True)
class Window:
    """From one fault to the next one (or the end): monotonic seconds.

    A request belongs to the window in which it ended: what was in flight at a fault may fail by it.
    """

    injected_at: float
    zero_at: float
    """When weight 0 was acknowledged."""
    ends_at: float

    def holds(self, request: SentRequest) -> bool:
        """Whether the request belongs here."""
        return self.injected_at < request.finished_at <= self.ends_at


@dataclass(frozen=True)
class WindowCounts:
    """Requests of one window."""

    sent: int
    failed_before_zero: int
    failed_after_zero: int


def count(requests: Sequence[SentRequest], window: Window) -> WindowCounts:
    """Count a window's requests; those in flight at weight 0 were sent before it."""
    inside = [one for one in requests if window.holds(one)]
    told = classify(inside, instant=window.zero_at)
    return WindowCounts(len(inside), told.failed_before, told.failed_after)


def failures_after_zero(requests: Sequence[SentRequest], window: Window) -> list[str]:
    """Describe the failures among requests sent after weight 0: there should be none."""
    return [
        f"request {one.number}, sent {one.sent_at - window.zero_at:.4f} s after weight 0: {one.status} "
        f"{one.engine} {one.error}"
        for one in requests
        if window.holds(one) and one.sent_at >= window.zero_at and not one.succeeded
    ]


def failed(requests: Sequence[SentRequest]) -> int:
    """Count the requests that brought no completion."""
    return sum(not request.succeeded for request in requests)


def achieved_rate(requests: Sequence[SentRequest]) -> float:
    """Requests a second that were really sent, from the first one to the last; 0 for fewer than two."""
    sent_at = [request.sent_at for request in requests if request.status != NOT_SENT]
    took_seconds = max(sent_at, default=0.0) - min(sent_at, default=0.0)
    return (len(sent_at) - 1) / took_seconds if took_seconds else 0.0
