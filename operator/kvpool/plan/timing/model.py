"""The timing model of an engine instance: three constants for prefill, three for a decode step, two a link.

    prefill(L, hit) = a + b * (L - hit) + c * (L^2 - hit^2)      attention grows with the square
    step(B, K)      = a + b * B + k * K                          one decode iteration
    transfer(n)     = setup + n / bandwidth

The form is that of DistServe's simulator (OSDI '24; Apache-2.0 repository), with the cached prefix taken off.
"""

from dataclasses import dataclass
from typing import Final

NS_PER_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TimingModel:
    """Constants of one model on one kind of instance, all in nanoseconds."""

    prefill_base_ns: float
    prefill_token_ns: float
    """For each prompt token that is not cached."""
    prefill_square_ns: float
    """For each pair of prompt tokens."""
    step_base_ns: float
    step_sequence_ns: float
    """For each running sequence."""
    step_token_ns: float
    """For each token of context that a step reads."""

    def prefill_ns(self, prompt_tokens: int, hit_tokens: int = 0) -> int:
        """Time to prefill a prompt whose first `hit_tokens` are cached. Nanoseconds, at least 1."""
        fresh = prompt_tokens - hit_tokens
        squares = prompt_tokens * prompt_tokens - hit_tokens * hit_tokens
        spent = self.prefill_base_ns + self.prefill_token_ns * fresh + self.prefill_square_ns * squares
        return max(1, round(spent))

    def step_ns(self, running: int, kv_tokens: int) -> int:
        """Time of one decode iteration over `running` sequences with `kv_tokens` together.

        Nanoseconds, at least 1.
        """
        return max(
            1, round(self.step_base_ns + self.step_sequence_ns * running + self.step_token_ns * kv_tokens)
        )


@dataclass(frozen=True, slots=True)
class LinkModel:
    """One direction of one link."""

    setup_ns: int
    bytes_per_second: int

    def transfer_ns(self, count_bytes: int) -> int:
        """Time for `count_bytes` that have the link alone. Nanoseconds, rounded up; 0 for nothing."""
        if count_bytes == 0:
            return 0
        return self.setup_ns + -(-count_bytes * NS_PER_SECOND // self.bytes_per_second)
