"""The speed of a batch in fixed point: a million steps sum to the same time however they are grouped."""

from dataclasses import dataclass
from typing import Final

from kvpool.plan.timing.model import TimingModel

TICK_BITS: Final = 16
TICKS_PER_NS: Final = 1 << TICK_BITS


def ticks_of_ns(time_ns: int) -> int:
    """Nanoseconds in ticks."""
    return time_ns << TICK_BITS


def ns_of_ticks(ticks: int) -> int:
    """The first whole nanosecond at or after a time in ticks."""
    return -(-ticks >> TICK_BITS)


@dataclass(frozen=True, slots=True)
class Pace:
    """Constants of a timing model in ticks of 2^-16 ns: a step takes `base + sequence * B + token * K`."""

    base: int
    sequence: int
    token: int
    prefill_base: int
    prefill_token: int
    prefill_square: float
    """For each pair of tokens; a float, as it is far below one tick for fast cards."""

    @staticmethod
    def of(timing: TimingModel) -> "Pace":
        """Round each constant to the nearest tick; a step takes at least one nanosecond."""
        return Pace(
            max(TICKS_PER_NS, round(timing.step_base_ns * TICKS_PER_NS)),
            round(timing.step_sequence_ns * TICKS_PER_NS),
            round(timing.step_token_ns * TICKS_PER_NS),
            round(timing.prefill_base_ns * TICKS_PER_NS),
            round(timing.prefill_token_ns * TICKS_PER_NS),
            timing.prefill_square_ns * TICKS_PER_NS,
        )

    def chunk_ticks(self, done_tokens: int, count_tokens: int) -> int:
        """Time that `count_tokens` of a prompt add to a step, when `done_tokens` before them are there."""
        pairs = count_tokens * (2 * done_tokens + count_tokens)
        return self.prefill_token * count_tokens + round(self.prefill_square * pairs)
