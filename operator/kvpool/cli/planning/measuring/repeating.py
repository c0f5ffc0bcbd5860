"""Repeats a measurement until its time is over, and says when that is."""

import time
from collections.abc import Callable


class Deadline:
    """A moment on the monotonic clock, so many seconds from now."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def over(self) -> bool:
        """Tell whether it has passed."""
        return time.monotonic() >= self._at


def timed_ns(work: Callable[[], object]) -> int:
    """Do something once; returns how long it took, at least a nanosecond."""
    began = time.perf_counter_ns()
    work()
    return max(1, time.perf_counter_ns() - began)


def repeat(work: Callable[[], object], seconds: float, least: int = 3) -> list[int]:
    """Do something again and again for a while, `least` times at least; returns nanoseconds of each.

    The first time is not counted: it touches memory and opens ways that later ones find ready.
    """
    work()
    deadline = Deadline(seconds)
    spent: list[int] = []
    while len(spent) < least or not deadline.over():
        spent.append(timed_ns(work))
    return spent
