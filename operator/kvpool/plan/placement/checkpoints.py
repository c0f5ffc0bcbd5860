"""How far apart the recurrent checkpoints of a hybrid model are kept, and which prefix is usable.

Rate of cost of a session with checkpoints every I tokens: each return recomputes I/2 tokens on average, and
L/I checkpoints of S bytes are kept,

    lam * I / (2 * rate) * c_time  +  (L / I) * S * c_mem

which is least at `I* = sqrt(2 * rate * L * S * c_mem / (lam * c_time))`. kvpool's own derivation; HiState
(arXiv 2610.41508, read second hand) adapts the interval too.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kvpool.plan.timing.model import NS_PER_SECOND

RATE_WEIGHT: Final = 0.2
"""Share of the newest gap in a class's smoothed one."""


@dataclass(frozen=True, slots=True)
class CheckpointCost:
    """What checkpoints cost and save."""

    checkpoint_bytes: int
    prefill_tokens_per_second: float
    byte_second_price: float
    """Of keeping one byte for one second, in any unit of money."""
    second_price: float
    """Of one second that a request waits, in the same unit."""
    block_tokens: int
    """Grain: no interval is smaller."""


def interval_tokens(
    cost: CheckpointCost, context_tokens: int, returns_per_second: float, *, above_watermark: bool = False
) -> int:
    """Return the interval I* in tokens: whole blocks, between one block and the context.

    It doubles while the tier is above its watermark. A session that does not return gets one checkpoint.
    """
    blocks = max(1, -(-context_tokens // cost.block_tokens))
    wait = returns_per_second * cost.second_price
    if wait <= 0:
        return blocks * cost.block_tokens
    keep = cost.checkpoint_bytes * cost.byte_second_price
    best = math.sqrt(2.0 * cost.prefill_tokens_per_second * context_tokens * keep / wait)
    if above_watermark:
        best *= 2.0
    # Of the whole numbers around the optimum the lower one costs less exactly if best^2 < n * (n + 1).
    lower = math.floor(best / cost.block_tokens)
    chosen = lower if (best / cost.block_tokens) ** 2 < lower * (lower + 1) else lower + 1
    return min(blocks, max(1, chosen)) * cost.block_tokens


def usable_tokens(checkpoints: Sequence[int], matched_tokens: int) -> int:
    """Return the prefix that a hybrid model can go on from: the last checkpoint within the matched KV; 0:
    none.

    `checkpoints`: positions in tokens, ascending. KV without a checkpoint is worth nothing to such a model.
    """
    index = bisect_right(checkpoints, matched_tokens)
    return checkpoints[index - 1] if index else 0


@dataclass(slots=True)
class ReturnRates:
    """Returns per second of each class of sessions, from the smoothed gap between a session's turns."""

    weight: float = RATE_WEIGHT
    _gap_ns: dict[str, float] = field(default_factory=dict)

    def note(self, session_class: str, gap_ns: int) -> None:
        """Take in the time between two turns of one session."""
        known = self._gap_ns.get(session_class, float(gap_ns))
        self._gap_ns[session_class] = self.weight * gap_ns + (1.0 - self.weight) * known

    def per_second(self, session_class: str) -> float:
        """Return the rate; 0 for a class that never returned."""
        gap = self._gap_ns.get(session_class, 0.0)
        return NS_PER_SECOND / gap if gap > 0 else 0.0
