"""What weights and activations leave of the memory of one instance for KV.

    cards * (memory of a card * share in use - activations) - weights

kvpool's own derivation.
"""

from typing import Final

from kvpool.plan.timing.cards import Card

MEMORY_USE: Final = 0.9
"""Share of an accelerator's memory that engines take: vLLM's `gpu_memory_utilization` by default."""
ACTIVATION_BYTES: Final = 4 << 30
"""Of each accelerator, for activations and graphs."""


def kv_memory_bytes(
    card: Card,
    cards: int,
    weight_bytes: int,
    memory_use: float = MEMORY_USE,
    activation_bytes: int = ACTIVATION_BYTES,
) -> int:
    """Return the bytes that are left for KV; below 0: so many are missing for the weights."""
    return round(cards * (card.hbm_bytes * memory_use - activation_bytes)) - weight_bytes
