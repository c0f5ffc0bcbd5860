"""Choice of the decode instance by when the first token would leave it, its network path included.

Source: "NetKV" (arXiv 2606.03910): a term for the transfer on each topology tier is added to the choice of
the decode instance. Here the tier's bandwidth and set-up are those of the instance's link, and load enters as
waiting and step time.
"""

from collections.abc import Sequence

from kvpool.plan.routing.completion_time import CompletionTimeSettings, increment
from kvpool.plan.routing.views import Ask, Instance


class NetworkAware:
    """Smallest transfer + wait + first step."""

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """The earliest first token; of equals the one with fewest outstanding, then the first."""

        def key(place: int) -> tuple[int, int, int]:
            added = increment(ask, place, instances[place], CompletionTimeSettings())
            first = added.arrive_ns + added.wait_ns + added.step_after_ns
            return first, instances[place].outstanding, place

        return min(range(len(instances)), key=key)
