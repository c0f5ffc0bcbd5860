"""What a routing rule is: a class of one's own that has these methods plugs in as `module:Class`.

A rule is made once for a run, as `Class(draws)`, with a stream of random numbers that is its own. It may keep
state between calls. It must not look at a clock: the time is told.
"""

from collections.abc import Sequence
from typing import Protocol

from kvpool.plan.routing.views import Ask, Draws, Instance, PrefillInstance


class Router(Protocol):
    """Chooses the decode instance that takes a request."""

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """Return the place of one of `instances`, of which there is at least one.

        They are always the same ones in the same order, unless one failed or came.
        """


class PrefillRouter(Protocol):
    """Chooses the instance that computes a prompt."""

    def choose(self, ask: Ask, instances: Sequence[PrefillInstance], now_ns: int) -> int | None:
        """Return the place of one of `instances`; None when the request is better refused now."""


class RouterFactory(Protocol):
    """Makes a rule for one run: the class itself, as a rule."""

    def __call__(self, draws: Draws) -> Router:
        """Make it; `draws` is its own."""
