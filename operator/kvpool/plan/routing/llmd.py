"""The scorers of llm-d: each gives every instance a score in [0, 1]; weights add them up.

Source: llm-d/llm-d-inference-scheduler (scorer plugins) and kubernetes-sigs/gateway-api-inference-extension
(queue and KV utilisation scorers, latency prediction). Their latency predictor is learned; here it is the
timing model of the instance.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from kvpool.plan.routing.completion_time import waiting_steps
from kvpool.plan.routing.views import Ask, Draws, Instance

TOKEN_LOAD_CEILING: Final = 4_194_304
WAITING_CEILING: Final = 128
FIRST_TOKEN_SHARE: Final = 0.8
"""Of the headroom's blend; the rest is time per token."""
EXPLORED_SHARE: Final = 0.01
"""How often an instance that is predicted to break the promise is tried."""


class Scorer(Protocol):
    """Scores all instances for one request."""

    def score(self, ask: Ask, instances: Sequence[Instance]) -> list[float]:
        """One number in [0, 1] for each; more is better."""


class PrefixScorer:
    """Matched part of the prompt."""

    def score(self, ask: Ask, instances: Sequence[Instance]) -> list[float]:
        """matched / total."""
        return [ask.overlap(place).tokens / max(1, ask.prompt_tokens) for place in range(len(instances))]


class QueueScorer:
    """Requests that wait, against the others."""

    def score(self, ask: Ask, instances: Sequence[Instance]) -> list[float]:
        """(max - q) / (max - min); 1 for all when they are equal."""
        queues = [waiting(one) for one in instances]
        low, high = min(queues), max(queues)
        return [(high - queue) / (high - low) if high > low else 1.0 for queue in queues]


class KvScorer:
    """Free KV."""

    def score(self, ask: Ask, instances: Sequence[Instance]) -> list[float]:
        """1 - usage."""
        return [1 - min(1.0, one.kv_tokens / max(1, one.capacity_tokens)) for one in instances]


class TokenLoadScorer:
    """Tokens in flight, against a fixed ceiling."""

    def score(self, ask: Ask, instances: Sequence[Instance]) -> list[float]:
        """1 - min(1, tokens / 4,194,304)."""
        return [1 - min(1.0, one.reserved_tokens / TOKEN_LOAD_CEILING) for one in instances]


class LoadAwareScorer:
    """Requests that wait, against a fixed ceiling."""

    def score(self, ask: Ask, instances: Sequence[Instance]) -> list[float]:
        """0.5 x (1 - waiting / 128), at least 0."""
        return [0.5 * (1 - min(1.0, waiting(one) / WAITING_CEILING)) for one in instances]


class NoHitLruScorer:
    """Spreads requests that nobody has a prefix of: who got such a one longest ago comes first."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._cold = 0

    def score(self, ask: Ask, instances: Sequence[Instance]) -> list[float]:
        """Rank by last cold request, from 1 down to 0; 0.5 for all when anybody has a prefix."""
        if any(ask.overlap(place).tokens for place in range(len(instances))):
            return [0.5] * len(instances)
        order = sorted(range(len(instances)), key=lambda place: (self._last.get(place, -1), place))
        scores = [1.0] * len(instances)
        for rank, place in enumerate(order):
            scores[place] = 1 - rank / max(1, len(order) - 1)
        return scores

    def sent(self, ask: Ask, place: int) -> None:
        """Note who got the request."""
        if not any(overlap.tokens for overlap in ask.overlaps):
            self._last[place] = self._cold
            self._cold += 1


class LatencyScorer:
    """Predicted distance to the promise: the smallest that is kept comes first, so that load is packed."""

    def score(self, ask: Ask, instances: Sequence[Instance]) -> list[float]:
        """1 for the least headroom that is not negative, falling; then the least negative first."""
        headrooms = [headroom(ask, one) for one in instances]
        scale = max(1e-9, *(abs(one) for one in headrooms))
        return [1 - 0.5 * one / scale if one >= 0 else 0.5 * (1 + one / scale) - 1e-9 for one in headrooms]


def waiting(instance: Instance) -> int:
    """Requests sent to it that do not run."""
    return max(0, instance.outstanding - instance.running)


def headroom(ask: Ask, instance: Instance) -> float:
    """Blend of what is left of the promised times, as shares of them: 0.8 first token, 0.2 per token.

    Negative as soon as one of the two would be broken.
    """
    step = instance.timing.step_ns(instance.running + 1, instance.kv_tokens + ask.prompt_tokens)
    first = instance.backlog_ns + waiting_steps(ask, instance, 100) * step + step
    left_first = 1 - first / max(1, ask.objective.ttft_ns)
    left_token = 1 - step / max(1, ask.objective.tpot_ns)
    blend = FIRST_TOKEN_SHARE * left_first + (1 - FIRST_TOKEN_SHARE) * left_token
    if left_first < 0 or left_token < 0:
        return min(blend, FIRST_TOKEN_SHARE * left_first, (1 - FIRST_TOKEN_SHARE) * left_token)
    return blend


class Scored:
    """Adds up weighted scores and takes the highest; equals are drawn among."""

    def __init__(self, draws: Draws, weights: Mapping[str, float]) -> None:
        """`weights` by name of `SCORERS`; an unknown name raises KeyError."""
        self._draws = draws
        self._cold = NoHitLruScorer()
        self._scorers: list[tuple[Scorer, float]] = [
            (self._cold if name == "NoHitLru" else SCORERS[name], weight)
            for name, weight in sorted(weights.items())
        ]

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """The highest sum."""
        place = self._best(ask, instances, list(range(len(instances))))
        self._cold.sent(ask, place)
        return place

    def _best(self, ask: Ask, instances: Sequence[Instance], among: Sequence[int]) -> int:
        totals = [0.0] * len(instances)
        for scorer, weight in self._scorers:
            for place, score in enumerate(scorer.score(ask, instances)):
                totals[place] += weight * score
        best = max(totals[place] for place in among)
        equals = [place for place in among if totals[place] == best]
        return equals[self._draws.below(len(equals))]


class SloTiered(Scored):
    """Scores only those predicted to keep the promise, and tries one of the others now and then."""

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """Of the tier that keeps it in 99 of 100 cases, when both tiers have members."""
        kept = [place for place, one in enumerate(instances) if headroom(ask, one) >= 0]
        broken = [place for place in range(len(instances)) if place not in kept]
        explores = self._draws.uniform() < EXPLORED_SHARE
        among = broken if broken and (explores or not kept) else kept
        place = self._best(ask, instances, among)
        self._cold.sent(ask, place)
        return place


SCORERS: Final[Mapping[str, Scorer]] = {
    "Prefix": PrefixScorer(),
    "Queue": QueueScorer(),
    "Kv": KvScorer(),
    "TokenLoad": TokenLoadScorer(),
    "LoadAware": LoadAwareScorer(),
    "Latency": LatencyScorer(),
}
"""Those without memory, by name."""
