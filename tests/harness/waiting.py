"""Polling with a deadline, instead of sleeping for a fixed time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
POLL_SECONDS = 0.05


class DeadlineMissedError(AssertionError):
    """Something did not come true in time; the message says what, how long, and what was seen last."""

    def __init__(self, what: str, deadline_seconds: float, last: object) -> None:
        super().__init__(f"waited {deadline_seconds:g} s for {what}; last seen: {last!r}")


def wait_until(
    predicate: Callable[[], T],
    deadline_seconds: float,
    what: str,
    tolerate: tuple[type[Exception], ...] = (),
    poll_seconds: float = POLL_SECONDS,
) -> T:
    """Poll until `predicate` returns something true, and return that.

    Errors of the types in `tolerate` count as "not yet", any other passes through. Raises
    DeadlineMissedError.
    """
    end = time.monotonic() + deadline_seconds
    while True:
        last: object
        try:
            value = predicate()
            if value:
                return value
            last = value
        except tolerate as error:
            last = error
        if time.monotonic() > end:
            raise DeadlineMissedError(what, deadline_seconds, last)
        time.sleep(poll_seconds)


async def wait_until_async(
    predicate: Callable[[], Awaitable[T]],
    deadline_seconds: float,
    what: str,
    tolerate: tuple[type[Exception], ...] = (),
    poll_seconds: float = POLL_SECONDS,
) -> T:
    """`wait_until` for an event loop."""
    end = time.monotonic() + deadline_seconds
    while True:
        last: object
        try:
            value = await predicate()
            if value:
                return value
            last = value
        except tolerate as error:
            last = error
        if time.monotonic() > end:
            raise DeadlineMissedError(what, deadline_seconds, last)
        await asyncio.sleep(poll_seconds)
