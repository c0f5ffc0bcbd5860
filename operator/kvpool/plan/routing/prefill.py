"""Which instance computes a prompt.

Earliest completion by queue and prefix hit, and fetching a better hit from elsewhere: Mooncake's Algorithm 1,
KVCache-centric scheduling (Qin et al., FAST '25).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.plan.routing.views import Ask, PrefillInstance
from kvpool.plan.trajectories.early_abort import comes_too_late


class EarliestPrefill:
    """The instance that would have the prompt computed first: smallest backlog + prefill(L, hit)."""

    def choose(self, ask: Ask, instances: Sequence[PrefillInstance], now_ns: int) -> int:
        """The earliest; of equals the one with fewest outstanding, then the first."""
        return min(
            range(len(instances)),
            key=lambda place: (
                instances[place].backlog_ns
                + instances[place].timing.prefill_ns(ask.prompt_tokens, ask.overlap(place).tokens),
                instances[place].outstanding,
                place,
            ),
        )


class RoundRobinPrefill:
    """One after the other, whatever their load."""

    def __init__(self) -> None:
        self._sent = 0

    def choose(self, ask: Ask, instances: Sequence[PrefillInstance], now_ns: int) -> int:
        """The next one."""
        place = self._sent % len(instances)
        self._sent += 1
        return place


@dataclass(frozen=True, slots=True)
class ConductorSettings:
    """When the longest prefix is fetched from the instance that has it, and whether requests are refused."""

    balancing_threshold: float = 2.0
    """A prefix this many times longer than the local one is fetched rather than computed."""
    refuses: bool = False
    """Refuse a request whose first token would come past its promise."""


class Conductor:
    """Mooncake's choice of the prefill instance, which may bring a longer prefix from another one.

    For each instance: if the best prefix anywhere is longer than the local one by the threshold factor,
    cost = transfer of the difference + queue + prefill(L, best); else queue + prefill(L, local). The smallest
    cost is taken. Algorithm 1 of Qin et al., "Mooncake: A KVCache-centric Disaggregated Architecture for LLM
    Serving" (FAST '25, arXiv 2407.00079); of its two reasons to refuse, the one by time to the first token.
    """

    def __init__(self, settings: ConductorSettings | None = None) -> None:
        self._settings = settings or ConductorSettings()

    def choose(self, ask: Ask, instances: Sequence[PrefillInstance], now_ns: int) -> int | None:
        """The one with the smallest cost; of equals the first. None: its first token would be too late."""
        best = max(ask.overlap(place).tokens for place in range(len(instances)))
        costs = [self._cost_ns(ask, place, instance, best) for place, instance in enumerate(instances)]
        place = min(range(len(costs)), key=lambda one: (costs[one], one))
        if self._settings.refuses and comes_too_late(now_ns, costs[place], now_ns + ask.objective.ttft_ns):
            return None
        return place

    def _cost_ns(self, ask: Ask, place: int, instance: PrefillInstance, best_tokens: int) -> int:
        local = ask.overlap(place).tokens
        if best_tokens <= self._settings.balancing_threshold * local:
            return instance.backlog_ns + instance.timing.prefill_ns(ask.prompt_tokens, local)
        fetched = instance.link.transfer_ns((best_tokens - local) * ask.bytes_per_token)
        return fetched + instance.backlog_ns + instance.timing.prefill_ns(ask.prompt_tokens, best_tokens)
