"""Marconi's counts of FLOPs and bytes, and its score, in figures that can be worked out by hand."""

from __future__ import annotations

import pytest

from kvpool.plan.placement.marconi import Entry, HybridShape, scores

# Layers of attention, MLP and recurrence; D and N. All different primes, so that none stands for another.
SHAPE = HybridShape(2, 3, 5, width=7, state_width=11)


def test_each_kind_of_layer_takes_its_flops() -> None:
    attention = 8 * 13 * 49 + 4 * 169 * 7
    mlp = 16 * 13 * 49
    recurrent = 12 * 13 * 49 + 16 * 13 * 77 + 10 * 13 * 7
    assert SHAPE.prefill_flops(13) == 2 * attention + 3 * mlp + 5 * recurrent


def test_attention_holds_kv_and_recurrence_a_state() -> None:
    assert SHAPE.kv_bytes(13) == 2 * 4 * 13 * 7
    assert SHAPE.state_bytes() == 5 * (2 * 77 + 8 * (14 + 22))


def test_a_score_is_the_normalised_recency_and_alpha_times_the_normalised_efficiency() -> None:
    # Recency 0, 1 and 0.5; FLOPs for a byte 30, 10 and 5.
    entries = [Entry(1, 100, 300, 10), Entry(2, 200, 100, 10), Entry(3, 150, 100, 20)]
    assert scores(entries, 2.0) == pytest.approx({1: 2.0, 2: 1.4, 3: 0.5})


def test_what_is_alike_for_all_decides_nothing() -> None:
    entries = [Entry(1, 100, 300, 10), Entry(2, 100, 100, 10)]
    assert scores(entries, 1.0) == {1: 1.0, 2: 0.0}
