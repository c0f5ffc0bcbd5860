"""How many requests a second one prefill, and one decode instance can carry, and what stops the latter.

    R_P = alpha_P / E[prefill(L, hit)]
    B*  = largest B with step(B, B * (L + o/2)) <= TPOT promise  and  B * (L + o) <= capacity - staging
    R_D = alpha_D * B* / (E[o] * step(B*, ...))
    R_X = s / (setup + s * L * kappa / bandwidth)        hand-offs into one decode instance, s at once

Sources: alpha_P 0.90 and alpha_D 0.92 are AIConfigurator's (Apache-2.0 repository; arXiv 2601.06288); that KV
of hand-offs under way takes decode memory is from the same repository, pull request 1380. R_X: kvpool's own,
for transfers that share one link equally.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kvpool.plan.ratio.demand import (
    Promise,
    Shape,
    held_tokens,
    mean_output_tokens,
    mean_prompt_tokens,
    running_context_tokens,
)
from kvpool.plan.timing.model import NS_PER_SECOND, LinkModel, TimingModel

PREFILL_SHARE: Final = 0.90
"""Of its best rate that a prefill instance reaches in service."""
DECODE_SHARE: Final = 0.92
TTFT_FACTOR: Final = 1.8
"""First tokens take this much longer in service than alone: queues and batches (AIConfigurator)."""


class Limit(StrEnum):
    """What keeps a group from carrying more, or from carrying anything."""

    PREFILL_RATE = "PrefillRate"
    PREFILL_MEMORY = "PrefillMemory"
    """A prefill instance has no room for a whole prompt."""
    TPOT = "TPOT"
    """A larger batch would break the promised time per output token."""
    DECODE_MEMORY = "DecodeMemory"
    TRANSFER = "Transfer"
    RATIO_BOUNDS = "RatioBounds"
    TTFT = "TTFT"
    CARDS = "Cards"


@dataclass(frozen=True, slots=True)
class Roles:
    """One prefill and one decode instance of a group, and the way between them."""

    prefill: TimingModel
    decode: TimingModel
    link: LinkModel
    """Into one decode instance."""
    kv_bytes_per_token: int
    decode_capacity_tokens: int
    """KV that one decode instance can hold."""
    prefill_cards: int = 1
    decode_cards: int = 1
    staged_sequences: int = 1
    """Hand-offs that may be under way to one decode instance; their KV is taken out of its capacity."""
    prefill_capacity_tokens: int | None = None
    """None: not known, and taken to be enough."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What one instance of each role carries, in requests a second."""

    prefill: float
    decode: float
    """With transfers taken into account."""
    batch: int
    """B*."""
    step_ns: int
    """Of that batch."""
    decode_limit: Limit
    ttft_ns: int
    """Expected under load, promised or not."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """No number of instances would do; the text says which limit is broken, and by how much."""

    limit: Limit
    text: str


def rates(roles: Roles, shapes: Sequence[Shape], promise: Promise) -> Rates | Impossible:
    """Work out what one instance of each role carries; `shapes` has at least one."""
    context, held = running_context_tokens(shapes), held_tokens(shapes)
    longest, prefill_room = max(shape.prompt_tokens for shape in shapes), roles.prefill_capacity_tokens
    if prefill_room is not None and prefill_room < longest:
        return Impossible(
            Limit.PREFILL_MEMORY,
            f"a prefill instance holds {prefill_room} tokens beside the weights, and a prompt has {longest}: "
            f"more cards an instance, or shorter prompts",
        )
    alone_ns = roles.decode.step_ns(1, context)
    if alone_ns > promise.tpot_ns:
        return Impossible(
            Limit.TPOT,
            f"one sequence of {context} tokens alone takes {_ms(alone_ns)} a step, "
            f"{_ms(alone_ns - promise.tpot_ns)} more than the {_ms(promise.tpot_ns)} promised: promise more "
            f"time, or decode on faster instances",
        )
    room = roles.decode_capacity_tokens - roles.staged_sequences * held
    if room < held:
        return Impossible(
            Limit.DECODE_MEMORY,
            f"a decode instance holds {roles.decode_capacity_tokens} tokens; one sequence of {held} beside "
            f"{roles.staged_sequences} on their way needs {held - room} more: more cards an instance, or "
            f"shorter prompts",
        )
    transfer_ns = roles.link.transfer_ns(_handed_bytes(roles, shapes))
    prefill_ns = mean_prefill_ns(roles.prefill, shapes)
    ttft_ns = round(TTFT_FACTOR * (prefill_ns + transfer_ns))
    if ttft_ns > promise.ttft_ns:
        return Impossible(
            Limit.TTFT,
            f"the first token comes after {_ms(ttft_ns)} under load ({_ms(round(prefill_ns))} prefill and "
            f"{_ms(transfer_ns)} transfer, times {TTFT_FACTOR}), {_ms(ttft_ns - promise.ttft_ns)} more than "
            f"the {_ms(promise.ttft_ns)} promised: faster prefill instances, or more prompt found in caches",
        )
    by_step = _largest_batch(roles.decode, context, promise.tpot_ns)
    batch = min(by_step, room // held)
    limit = Limit.TPOT if batch == by_step else Limit.DECODE_MEMORY
    step_ns = roles.decode.step_ns(batch, batch * context)
    decode = DECODE_SHARE * batch * NS_PER_SECOND / (mean_output_tokens(shapes) * step_ns)
    handed = _handed_rate(roles, shapes)
    if handed < decode:
        decode, limit = handed, Limit.TRANSFER
    return Rates(PREFILL_SHARE * NS_PER_SECOND / prefill_ns, decode, batch, step_ns, limit, ttft_ns)


def mean_prefill_ns(timing: TimingModel, shapes: Sequence[Shape]) -> float:
    """Prefill time of the average request. Nanoseconds."""
    spent = sum(shape.weight * timing.prefill_ns(shape.prompt_tokens, shape.hit_tokens) for shape in shapes)
    return spent / sum(shape.weight for shape in shapes)


def staged_sequences(capacity_tokens: int, sequence_tokens: int, max_sequences: int) -> int:
    """Hand-offs that fit beside an engine's full batch: floor(capacity / sequence) - batch, or 0."""
    return max(0, capacity_tokens // sequence_tokens - max_sequences)


def _largest_batch(timing: TimingModel, context: int, tpot_ns: int) -> int:
    """The largest B with step(B, B * context) <= TPOT. Steps grow with B, so it is found by halving."""
    low, high = 1, 2
    while timing.step_ns(high, high * context) <= tpot_ns:
        low, high = high, 2 * high
        if high > 1 << 24:
            return low
    while high - low > 1:
        middle = (low + high) // 2
        if timing.step_ns(middle, middle * context) <= tpot_ns:
            low = middle
        else:
            high = middle
    return low


def _handed_bytes(roles: Roles, shapes: Sequence[Shape]) -> int:
    return round(mean_prompt_tokens(shapes) * roles.kv_bytes_per_token)


def _handed_rate(roles: Roles, shapes: Sequence[Shape]) -> float:
    """R_X, for at least one hand-off at a time."""
    together = max(1, roles.staged_sequences)
    sent_ns = together * _handed_bytes(roles, shapes) * NS_PER_SECOND / roles.link.bytes_per_second
    return together * NS_PER_SECOND / (roles.link.setup_ns + sent_ns)


def _ms(duration_ns: int) -> str:
    return f"{duration_ns / 1e6:,.1f} ms"
