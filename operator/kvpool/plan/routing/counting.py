"""Rules that count or draw: the baselines everybody has. Ties go to the instance that stands first.

Round robin, a uniform draw and fewest outstanding requests are common property; the promised share of memory
(`LeastLoaded`) and the tokens still expected (`LengthAware`) are the simple rules that Tumkur et al.,
Calibrate, Then Route, arXiv 2609.16206, compare with, in kvpool's own form.
"""

from collections.abc import Callable, Sequence

from kvpool.plan.routing.views import Ask, Draws, Instance


def lowest(instances: Sequence[Instance], key: Callable[[Instance], tuple[float, ...]]) -> int:
    """Return the place of the instance with the lowest key; of equals the first."""
    return min(range(len(instances)), key=lambda place: (*key(instances[place]), place))


class RoundRobin:
    """One after the other, whatever their load."""

    def __init__(self) -> None:
        self._sent = 0

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """The next one."""
        place = self._sent % len(instances)
        self._sent += 1
        return place


class Uniform:
    """Any of them, each equally likely."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """One drawn."""
        return self._draws.below(len(instances))


class LeastOutstanding:
    """Fewest requests sent and not ended: join the shortest queue."""

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """The one with the fewest."""
        return lowest(instances, lambda one: (one.outstanding,))


class LeastLoaded:
    """Lowest share of KV promised, whatever the speed of the card."""

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """The one with the lowest share; of equal shares the one with fewer requests."""
        return lowest(
            instances, lambda one: (one.reserved_tokens / max(1, one.capacity_tokens), one.outstanding)
        )


class LengthAware:
    """Fewest output tokens still expected: weighs requests by predicted length, and knows no speeds."""

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """The one that expects the fewest tokens; of equals the one with fewer requests."""
        return lowest(instances, lambda one: (one.pending.remaining_tokens(), one.outstanding))
