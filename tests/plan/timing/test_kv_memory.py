"""What weights and activations leave for KV."""

from __future__ import annotations

from kvpool.plan.timing.cards import CARDS
from kvpool.plan.timing.kv_memory import kv_memory_bytes


def test_kv_gets_the_nine_tenths_of_each_card_less_its_activations_and_all_weights() -> None:
    of_a_card = 141 * 900_000_000 - 4 * 2**30
    assert kv_memory_bytes(CARDS["H200"], 2, 10**9) == 2 * of_a_card - 10**9
    assert kv_memory_bytes(CARDS["H200"], 1, 10**12, 0.5, 0) == 70_500_000_000 - 10**12
