"""Two decisions beside the scorers of llm-d: is the pool full, and is a request worth splitting.

Source: kubernetes-sigs/gateway-api-inference-extension (saturation detector: 5 waiting, 0.8 of KV, 200 ms)
and llm-d/llm-d-inference-scheduler (P/D profile handler: a threshold of uncached tokens).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.plan.routing.llmd import waiting
from kvpool.plan.routing.views import Ask, Instance


@dataclass(frozen=True, slots=True)
class SaturationSettings:
    """What counts as full."""

    queue_requests: int = 5
    kv_share: float = 0.8
    stale_after_ns: int = 200_000_000
    """Figures older than this count as full."""


def saturation(instances: Sequence[Instance], ages_ns: Sequence[int], settings: SaturationSettings) -> float:
    """How full the pool is: the mean over it of max(queue / 5, KV / 0.8), 1 for those with old figures.

    At 1 or more the pool takes no more. `ages_ns`: of each instance's figures. At least one instance.
    """
    parts = [
        1.0
        if age > settings.stale_after_ns
        else max(
            waiting(one) / settings.queue_requests,
            one.kv_tokens / max(1, one.capacity_tokens) / settings.kv_share,
        )
        for one, age in zip(instances, ages_ns, strict=True)
    ]
    return sum(parts) / len(parts)


def splits(ask: Ask, decode_place: int, least_uncached_tokens: int = 512) -> bool:
    """Whether the prompt is computed elsewhere: only when the decode instance lacks enough of it."""
    return ask.prompt_tokens - ask.overlap(decode_place).tokens >= least_uncached_tokens
