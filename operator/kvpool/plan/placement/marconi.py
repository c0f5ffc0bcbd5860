"""Marconi, the baseline of prefix caching for hybrid models: what it admits, and what it evicts.

Source: Pan et al., "Marconi: Prefix Caching for the Era of Hybrid LLMs" (arXiv 2411.19379), section 4.1
for what is admitted and 4.2 for what is evicted; FLOPs and bytes as its repository counts them. Checkpoints
are taken only where sequences branched and at the end of the last round; the entry with the least
`recency + alpha * (FLOPs saved / bytes)` leaves, both normalised to [0, 1] over the entries; alpha is tuned
by replaying a recent window.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HybridShape:
    """Layers of a hybrid model."""

    attention_layers: int
    mlp_layers: int
    recurrent_layers: int
    width: int
    """D, the model's dimension."""
    state_width: int
    """N, the state's dimension."""

    def prefill_flops(self, tokens: int) -> int:
        """FLOPs to prefill a prompt: attention 8LD^2 + 4L^2D, MLP 16LD^2, recurrent 12LD^2 + 16LDN + 10LD."""
        width, state = self.width, self.state_width
        attention = 8 * tokens * width * width + 4 * tokens * tokens * width
        mlp = 16 * tokens * width * width
        recurrent = 12 * tokens * width * width + 16 * tokens * width * state + 10 * tokens * width
        return self.attention_layers * attention + self.mlp_layers * mlp + self.recurrent_layers * recurrent

    def kv_bytes(self, tokens: int) -> int:
        """Bytes of KV at 16 bits: 4LD for each attention layer."""
        return self.attention_layers * 4 * tokens * self.width

    def state_bytes(self) -> int:
        """Bytes of one checkpoint at 16 bits: 2DN + 8(2D + 2N) for each recurrent layer."""
        return self.recurrent_layers * (
            2 * self.width * self.state_width + 8 * (2 * self.width + 2 * self.state_width)
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One node of the prefix tree that holds a checkpoint."""

    name: int
    last_ns: int
    saved_flops: int
    """Over its parent: what would have to be computed again."""
    held_bytes: int


def admitted(branch_points: Iterable[int], last_position: int) -> tuple[int, ...]:
    """Return the positions, in tokens and ascending, at which checkpoints are taken."""
    return tuple(sorted({*branch_points, last_position} - {0}))


def scores(entries: Sequence[Entry], alpha: float) -> Mapping[int, float]:
    """Return the score of each entry by name; the least one leaves first."""
    if not entries:
        return {}
    recency = _normalised([entry.last_ns for entry in entries])
    efficiency = _normalised([entry.saved_flops / entry.held_bytes for entry in entries])
    return {
        entry.name: recent + alpha * efficient
        for entry, recent, efficient in zip(entries, recency, efficiency, strict=True)
    }


def victim(entries: Sequence[Entry], alpha: float) -> int:
    """Return the entry that leaves first; ties: the one given first.

    Raises:
        ValueError: when there is none.
    """
    if not entries:
        raise ValueError("no entries were given; there is nothing to evict")
    known = scores(entries, alpha)
    return min(entries, key=lambda entry: known[entry.name]).name


def _normalised(values: Sequence[float]) -> list[float]:
    least, most = min(values), max(values)
    if most == least:
        return [0.0] * len(values)
    return [(value - least) / (most - least) for value in values]
