"""Attention on some instances, experts on others: how many attention instances (r) to one for experts.

For each layer and micro-batch of B tokens on each attention instance:

    t_A = aA + bA*B + kA*context          t_F = aF + bF*r*B       t_C = setup + p*B*bytes/bandwidth, each way
    period = max(t_A, t_F, t_C, (t_A + t_F + 2*t_C) / m)             with m micro-batches going round
    tokens a second for each instance = share * r*B / ((r+1) * period * layers)

Sources: the stages and r* = max(r_A, r_C, r_peak) are from "Theoretically Optimal Attention/FFN Ratios in
Disaggregated LLM Serving" (arXiv 2601.21351); the last term of the period is the condition
m >= 2 * (1 + t_C/t_F) of MegaScale-Infer (arXiv 2504.02263) solved for time: m micro-batches cannot go round
faster than one goes round alone, over m. With m = 2 it is the exposed part of both transfers; with m >= 4 it
never binds, and with m = 3 only where transfers take more than half of the longest stage. p is
AIConfigurator's.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, sqrt
from typing import Final

from kvpool.plan.timing.model import NS_PER_SECOND

DECODE_DEGRADATION: Final = 0.95
"""Of the ideal that decode reaches in this form (AIConfigurator)."""
MOST_RATIO: Final = 64


@dataclass(frozen=True, slots=True)
class Stages:
    """Times of one layer for one micro-batch, in nanoseconds unless named otherwise."""

    attention_base_ns: float
    attention_sequence_ns: float
    attention_token_ns: float
    """For each token of context that is read."""
    expert_base_ns: float
    expert_token_ns: float
    """For each token of the micro-batches of all attention instances."""
    exchange_setup_ns: int
    exchange_bytes_per_second: int
    bytes_per_token: int
    """Hidden size times bytes of a value, one way."""
    sent_share: Fraction
    """Of the tokens that a given expert node is sent: `sent_share` below."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What goes round."""

    sequences: int
    """B: tokens of one micro-batch on one attention instance."""
    context_tokens: int
    """All that those sequences read, together."""
    micro_batches: int
    """m, at least 1."""
    layers: int


@dataclass(frozen=True, slots=True)
class Layer:
    """How long the parts of a layer take with a ratio."""

    attention_ns: float
    expert_ns: float
    exchange_ns: float
    """One way."""
    period_ns: float

    @property
    def dead_zone(self) -> bool:
        """Transfers take longer than either side's work: more expert instances would not help.

        Source: the "dead zone" of arXiv 2602.09721.
        """
        return self.exchange_ns > max(self.attention_ns, self.expert_ns)


@dataclass(frozen=True, slots=True)
class AttentionExpertPlan:
    """The best whole ratio, and what the closed form says."""

    ratio: int
    """r: attention instances to one for experts."""
    layer: Layer
    tokens_per_second: float
    """Decode, for each instance of either kind."""
    closed_form: float
    """r* when the period is the longest stage."""
    warning: str
    """Empty: none."""


def sent_share(experts: int, expert_nodes: int, chosen: int) -> Fraction:
    """Share of the tokens that a given expert node needs: 1 - C(E - E/N, k) / C(E, k).

    Experts are spread evenly, and `chosen` of them are picked for a token, each set equally likely.

    Raises:
        ValueError: when experts cannot be spread evenly or more are chosen than there are.
    """
    if expert_nodes < 1 or experts % expert_nodes or not 1 <= chosen <= experts:
        raise ValueError(
            f"{experts} experts over {expert_nodes} nodes, {chosen} chosen: nodes must divide experts, and "
            f"chosen be 1 to {experts}"
        )
    elsewhere = experts - experts // expert_nodes
    return 1 - Fraction(comb(elsewhere, chosen), comb(experts, chosen))


def layer(stages: Stages, batch: Batch, ratio: int) -> Layer:
    """Times of one layer with `ratio` attention instances to one for experts."""
    attention = (
        stages.attention_base_ns
        + stages.attention_sequence_ns * batch.sequences
        + stages.attention_token_ns * batch.context_tokens
    )
    expert = stages.expert_base_ns + stages.expert_token_ns * ratio * batch.sequences
    sent = float(stages.sent_share * batch.sequences * stages.bytes_per_token)
    exchange = stages.exchange_setup_ns + sent * NS_PER_SECOND / stages.exchange_bytes_per_second
    period = max(attention, expert, exchange, (attention + expert + 2 * exchange) / batch.micro_batches)
    return Layer(attention, expert, exchange, period)


def tokens_per_second(stages: Stages, batch: Batch, ratio: int, share: float = DECODE_DEGRADATION) -> float:
    """Tokens a second for each instance, of both kinds."""
    period = layer(stages, batch, ratio).period_ns
    return share * ratio * batch.sequences * NS_PER_SECOND / ((ratio + 1) * period * batch.layers)


def closed_form_ratio(stages: Stages, batch: Batch) -> float:
    """r* = max(r_A, r_C, r_peak), not whole.

    r_A and r_C: where the experts take as long as attention, and as a transfer. Below them more attention
    costs no time. r_peak = sqrt(aF / (bF * B)): above them, where r / ((r+1) * t_F(r)) is largest.
    """
    times = layer(stages, batch, 1)
    grows = stages.expert_token_ns * batch.sequences
    as_attention = (times.attention_ns - stages.expert_base_ns) / grows
    as_exchange = (times.exchange_ns - stages.expert_base_ns) / grows
    return max(as_attention, as_exchange, sqrt(stages.expert_base_ns / grows))


def plan_attention_experts(stages: Stages, batch: Batch, most: int = MOST_RATIO) -> AttentionExpertPlan:
    """Try every whole ratio up to `most`; equal ones: the smaller."""
    best = max(range(1, most + 1), key=lambda ratio: (tokens_per_second(stages, batch, ratio), -ratio))
    times = layer(stages, batch, best)
    return AttentionExpertPlan(
        best,
        times,
        tokens_per_second(stages, batch, best),
        closed_form_ratio(stages, batch),
        _warning(times, stages, batch, best),
    )


def _warning(times: Layer, stages: Stages, batch: Batch, ratio: int) -> str:
    if not times.dead_zone:
        return ""
    longest = max(times.attention_ns, times.expert_ns)
    needed = stages.exchange_bytes_per_second * times.exchange_ns / longest
    faster = replace(stages, exchange_bytes_per_second=round(needed))
    gained = tokens_per_second(faster, batch, ratio) / tokens_per_second(stages, batch, ratio) - 1
    return (
        f"dead zone: a transfer takes {times.exchange_ns / 1000:.1f} us, longer than attention "
        f"({times.attention_ns / 1000:.1f} us) and experts ({times.expert_ns / 1000:.1f} us); more expert "
        f"instances do not help. {times.exchange_ns / longest:.1f} times the bandwidth would give "
        f"{100 * gained:.0f} % more tokens"
    )
