"""Bytes of KV by the shape of a model, and by how an instance is divided."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.timing.shapes import SHAPES, ModelShape, Ranks


@pytest.mark.parametrize(
    ("name", "bits", "kappa"),
    [
        ("Qwen3-8B", 16, 147_456),
        ("Qwen3-8B", 8, 73_728),
        ("Llama-3.1-70B", 16, 327_680),
        ("Llama-3.1-8B", 16, 131_072),
        ("Qwen3-32B", 16, 262_144),
        ("DeepSeek-V3", 16, 70_272),
    ],
)
def test_well_known_models_hold_the_published_bytes_for_a_token(name: str, bits: int, kappa: int) -> None:
    assert SHAPES[name].kv_bytes_per_token(bits) == kappa


def test_a_session_holds_its_fixed_state_besides_its_tokens() -> None:
    hybrid = replace(SHAPES["Qwen3-8B"], kv_layers=9, state_elements=50_000_000)
    assert hybrid.session_bytes(0) == 100_000_000
    assert hybrid.session_bytes(1_000) == 1_000 * 36_864 + 100_000_000


def test_tensor_parallel_ranks_share_the_heads_until_there_is_one_for_each() -> None:
    shape = SHAPES["Llama-3.1-70B"]
    held = {tensor: Ranks(tensor).held_bytes_per_token(shape) for tensor in (1, 2, 4, 8, 16, 32)}
    whole = shape.kv_bytes_per_token()
    assert held == {1: whole, 2: whole, 4: whole, 8: whole, 16: 2 * whole, 32: 4 * whole}


def test_a_latent_vector_is_held_whole_by_every_tensor_parallel_rank() -> None:
    shape = SHAPES["DeepSeek-V3"]
    assert Ranks(8).held_bytes_per_token(shape) == 8 * shape.kv_bytes_per_token()
    assert Ranks(1, kv=8).held_bytes_per_token(shape) == shape.kv_bytes_per_token()


def test_a_latent_vector_without_positions_is_still_latent() -> None:
    shape = ModelShape("narrow", 2, 1, 1, 1, latent_dim=1)
    assert shape.latent
    assert shape.kv_elements_per_token() == 2
    assert Ranks(4).held_bytes_per_token(shape) == 16


def test_a_parked_session_counts_the_copies_of_its_kv_but_its_state_once() -> None:
    shape = replace(SHAPES["Llama-3.1-70B"], state_elements=50)
    assert Ranks(16).session_bytes(shape, 1_000) == 1_000 * 2 * 327_680 + 100
    assert Ranks(16).session_bytes(shape, 1_000, 8) == 1_000 * 327_680 + 100


def test_kv_parallel_ranks_split_the_tokens_and_the_fullest_one_is_rounded_up() -> None:
    shape, ranks = SHAPES["Qwen3-8B"], Ranks(tensor=2, kv=4)
    assert ranks.count == 8
    assert ranks.rank_bytes(shape, 1_001) == 251 * 73_728


@given(st.sampled_from(sorted(SHAPES)), st.integers(1, 64), st.integers(1, 16), st.integers(0, 200_000))
def test_ranks_together_never_hold_less_than_one_whole_copy(
    name: str, tensor: int, kv: int, tokens: int
) -> None:
    shape, ranks = SHAPES[name], Ranks(tensor, kv)
    assert ranks.count * ranks.rank_bytes(shape, tokens) >= tokens * shape.kv_bytes_per_token()


def test_a_shape_without_heads_and_latent_vector_is_refused_with_its_name() -> None:
    with pytest.raises(ValueError, match="odd: give kv_heads and head_dim, or latent_dim"):
        ModelShape("odd", 1, 1, 1, 1)
    with pytest.raises(ValueError, match="odd: active_parameters 2 must be above 0 and at most parameters 1"):
        ModelShape("odd", 1, 1, 1, 2, kv_heads=1, head_dim=1)
    with pytest.raises(ValueError, match="odd: active_parameters 0 must be above 0"):
        ModelShape("odd", 1, 1, 1, 0, kv_heads=1, head_dim=1)
    with pytest.raises(ValueError, match="tensor 0 and kv 1"):
        Ranks(0)
    with pytest.raises(ValueError, match="tensor 1 and kv 0"):
        Ranks(1, 0)
