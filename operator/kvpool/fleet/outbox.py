"""What waits to be sent on one stream: the newest message of each kind, so that it never grows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kvpool.fleet.refusals import RefusedError
from kvpool.wire.convert_operator import GrantData, NotLeaderData, OperatorMessage, PlanData, WelcomeData

_ORDER: Final = (WelcomeData, GrantData, PlanData)
"""A Welcome goes before what it allows, a Grant before a plan that may be large."""


class Outbox:
    """One stream's messages. `superseded` is told the name of each message that a newer one replaces."""

    def __init__(self, superseded: Callable[[str], None]) -> None:
        self._superseded = superseded
        self._waiting: dict[type[OperatorMessage], OperatorMessage] = {}
        self._end: NotLeaderData | RefusedError | None = None
        self._changed = asyncio.Event()

    def put(self, message: WelcomeData | GrantData | PlanData) -> None:
        """Send this instead of what waits of its kind."""
        if type(message) in self._waiting:
            self._superseded(message.name)
        self._waiting[type(message)] = message
        self._changed.set()

    def waits(self, kind: type[OperatorMessage]) -> bool:
        """Whether a message of this kind has not been taken yet."""
        return kind in self._waiting

    def end(self, ending: NotLeaderData | RefusedError) -> None:
        """End the stream, before what waits: with a last word, or as refused. The first ending holds."""
        self._end = self._end or ending
        self._changed.set()

    async def take(self) -> OperatorMessage:
        """The next message to send; waits for one. Raises the RefusedError that ends the stream."""
        while True:
            if isinstance(self._end, RefusedError):
                raise self._end
            if self._end is not None:
                return self._end
            for kind in _ORDER:
                if kind in self._waiting:
                    return self._waiting.pop(kind)
            self._changed.clear()
            await self._changed.wait()
