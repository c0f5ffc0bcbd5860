"""Exploit the longest prefix, or explore the least cost.

Source: Srivatsa et al., "Preble: Efficient Distributed Prompt Scheduling for LLM Serving" (arXiv 2407.00023),
its E2 policy: structure from the abstract and the repository; the threshold of one half and the three parts
of the cost in terms of the timing model are kvpool's reading.
"""

from collections.abc import Sequence

from kvpool.plan.routing.views import Ask, Instance


class ExploitExplore:
    """Goes where more than half of the prompt lies; else where load + eviction + prefill cost least."""

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """Among equals the one with less to do, then the first."""
        longest = max(ask.overlap(place).tokens for place in range(len(instances)))
        if 2 * longest > ask.prompt_tokens:
            among = [place for place in range(len(instances)) if ask.overlap(place).tokens == longest]
        else:
            among = list(range(len(instances)))
        return min(among, key=lambda place: (_cost_ns(ask, place, instances[place]), place))


def _cost_ns(ask: Ask, place: int, instance: Instance) -> int:
    step = instance.timing.step_ns(instance.running, instance.kv_tokens)
    load = instance.backlog_ns + step * instance.pending.remaining_tokens() // max(1, instance.running)
    overflow = instance.reserved_tokens + ask.prompt_tokens - instance.capacity_tokens
    eviction = instance.timing.prefill_ns(overflow) if overflow > 0 else 0
    return load + eviction + instance.timing.prefill_ns(ask.prompt_tokens, ask.overlap(place).tokens)
