"""The `config.json` of a model gives the same shape as its model card."""

from __future__ import annotations

from typing import Any

import pytest

from kvpool.plan.timing.engine_config import shape_of_config
from kvpool.plan.timing.shapes import SHAPES


def dense(layers: int, hidden: int, inner: int, vocabulary: int, **more: object) -> dict[str, Any]:
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "vocab_size": vocabulary,
        "num_key_value_heads": 8,
        **more,
    }


CONFIGS: dict[str, dict[str, Any]] = {
    "Llama-3.1-8B": dense(32, 4_096, 14_336, 128_256, num_attention_heads=32),
    "Llama-3.1-70B": dense(80, 8_192, 28_672, 128_256, num_attention_heads=64),
    "Llama-3.1-405B": dense(126, 16_384, 53_248, 128_256, num_attention_heads=128),
    "Qwen3-8B": dense(36, 4_096, 12_288, 151_936, num_attention_heads=32, head_dim=128),
    "Qwen3-32B": dense(64, 5_120, 25_600, 151_936, num_attention_heads=64, head_dim=128),
    "Mixtral-8x7B": dense(
        32, 4_096, 14_336, 32_000, num_attention_heads=32, num_local_experts=8, num_experts_per_tok=2
    ),
    "Qwen3-30B-A3B": dense(
        48,
        2_048,
        6_144,
        151_936,
        num_attention_heads=32,
        head_dim=128,
        num_key_value_heads=4,
        num_experts=128,
        num_experts_per_tok=8,
        moe_intermediate_size=768,
    ),
    "Qwen3-235B-A22B": dense(
        94,
        4_096,
        12_288,
        151_936,
        num_attention_heads=64,
        head_dim=128,
        num_key_value_heads=4,
        num_experts=128,
        num_experts_per_tok=8,
        moe_intermediate_size=1_536,
    ),
    "DeepSeek-V3": dense(
        61,
        7_168,
        18_432,
        129_280,
        num_attention_heads=128,
        num_key_value_heads=128,
        q_lora_rank=1_536,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        n_routed_experts=256,
        n_shared_experts=1,
        num_experts_per_tok=8,
        moe_intermediate_size=2_048,
        first_k_dense_replace=3,
    ),
    "DeepSeek-V2-Lite": dense(
        27,
        2_048,
        10_944,
        102_400,
        num_attention_heads=16,
        num_key_value_heads=16,
        q_lora_rank=None,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        n_routed_experts=64,
        n_shared_experts=2,
        num_experts_per_tok=6,
        moe_intermediate_size=1_408,
        first_k_dense_replace=1,
    ),
}

HYBRID = dense(
    48,
    2_048,
    5_120,
    151_936,
    num_attention_heads=16,
    head_dim=256,
    num_key_value_heads=2,
    full_attention_interval=4,
    linear_num_key_heads=16,
    linear_num_value_heads=32,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    linear_conv_kernel_dim=4,
    num_experts=512,
    num_experts_per_tok=10,
    moe_intermediate_size=512,
    shared_expert_intermediate_size=512,
)


def test_every_well_known_model_has_its_config_here() -> None:
    assert sorted(CONFIGS) == sorted(SHAPES)


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_the_shape_of_a_config_is_that_of_the_model_card(name: str) -> None:
    read, known = shape_of_config(CONFIGS[name], name), SHAPES[name]
    assert read.kv_bytes_per_token() == known.kv_bytes_per_token()
    assert (read.kv_layers, read.attention_dim) == (known.kv_layers, known.attention_dim)
    assert read.parameters == pytest.approx(known.parameters, rel=0.02)
    assert read.active_parameters == pytest.approx(known.active_parameters, rel=0.02)


TINY = {
    "num_hidden_layers": 3,
    "hidden_size": 10,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "vocab_size": 7,
    "intermediate_size": 5,
}
TINY_EXPERTS = TINY | {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 3,
    "n_shared_experts": 1,
    "shared_expert_intermediate_size": 6,
    "first_k_dense_replace": 1,
}
TINY_LATENT = TINY | {
    "kv_lora_rank": 6,
    "qk_rope_head_dim": 2,
    "qk_nope_head_dim": 3,
    "v_head_dim": 4,
    "q_lora_rank": 0,
}


def test_parameters_are_the_sum_of_all_matrices() -> None:
    attention, feed_forward, embeddings = 2 * 10 * 8 + 2 * 10 * 4, 3 * 10 * 5, 7 * 10
    shape = shape_of_config(TINY, "tiny")
    assert shape.parameters == 3 * (attention + feed_forward) + 2 * embeddings
    assert shape.active_parameters == shape.parameters
    tied = shape_of_config(TINY | {"tie_word_embeddings": True}, "tied")
    assert tied.parameters == shape.parameters - embeddings


def test_a_token_passes_through_its_own_experts_the_shared_ones_and_the_gate() -> None:
    shape = shape_of_config(TINY_EXPERTS, "experts")
    expert, shared, gate = 3 * 10 * 3, 3 * 10 * 3 + 3 * 10 * 6, 10 * 4
    around = 3 * (2 * 10 * 8 + 2 * 10 * 4) + 2 * 70 + 3 * 10 * 5
    assert shape.parameters == around + 2 * (shared + gate + 4 * expert)
    assert shape.active_parameters == around + 2 * (shared + gate + 2 * expert)


def test_without_a_size_of_their_own_experts_are_as_large_as_the_dense_layer() -> None:
    config = {key: value for key, value in TINY_EXPERTS.items() if key != "moe_intermediate_size"}
    shape = shape_of_config(config | {"shared_expert_intermediate_size": 0, "n_shared_experts": 0}, "plain")
    assert shape.parameters - shape.active_parameters == 2 * 2 * (3 * 10 * 5)


@pytest.mark.parametrize(("rank", "query"), [(0, 10 * 10), (4, 4 * (10 + 10))])
def test_latent_attention_has_low_rank_projections(rank: int, query: int) -> None:
    keys, out = 10 * (6 + 2) + 6 * 2 * (3 + 4), 2 * 4 * 10
    shape = shape_of_config(TINY_LATENT | {"q_lora_rank": rank}, "latent")
    assert shape.parameters == 3 * (query + keys + out + 3 * 10 * 5) + 2 * 70
    assert (shape.kv_heads, shape.head_dim, shape.latent_dim, shape.rope_dim) == (0, 0, 6, 2)


def test_a_window_over_latent_layers_holds_latent_vectors() -> None:
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    config = TINY_LATENT | {"layer_types": kinds, "sliding_window": 100}
    assert shape_of_config(config, "windowed").state_elements == 2 * 100 * (6 + 2)


def test_a_window_that_no_layer_looks_back_over_holds_nothing() -> None:
    assert shape_of_config(TINY | {"sliding_window": 100}, "tiny").state_elements == 0
    hybrid = shape_of_config(HYBRID, "hybrid").state_elements
    assert shape_of_config(HYBRID | {"sliding_window": 4_096}, "hybrid").state_elements == hybrid


def test_a_convolution_looks_back_over_four_tokens_when_nothing_else_is_said() -> None:
    plain = {key: value for key, value in HYBRID.items() if key != "linear_conv_kernel_dim"}
    assert shape_of_config(plain, "m").state_elements == shape_of_config(HYBRID, "m").state_elements
    mamba = {"mamba_d_state": 128, "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_n_groups": 8}
    config = CONFIGS["Llama-3.1-8B"] | {"layer_types": ["mamba", "attention"] * 16} | mamba
    assert shape_of_config(config, "m").state_elements == 16 * (8_192 * 128 + 3 * (8_192 + 2 * 8 * 128))


def test_what_just_fits_into_a_model_is_one() -> None:
    narrow = {key: value for key, value in TINY.items() if key != "head_dim"} | {"num_attention_heads": 10}
    assert shape_of_config(narrow, "narrow").attention_dim == 10
    dense_only = shape_of_config(TINY_EXPERTS | {"first_k_dense_replace": 3}, "dense")
    assert dense_only.parameters == shape_of_config(TINY, "tiny").parameters
    all_used = shape_of_config(TINY_EXPERTS | {"num_experts_per_tok": 4}, "all")
    assert all_used.active_parameters == all_used.parameters


def test_mamba_is_twice_as_wide_as_the_model_and_attention_comes_first_when_nothing_else_is_said() -> None:
    layers = {"num_hidden_layers": 9, "attn_layer_period": 8, "mamba_d_state": 5}
    shape = shape_of_config(TINY | layers, "hybrid")
    # Layers 0 and 8 attend; the others hold 2 * 10 wide states of 5, and 3 tokens of a convolution.
    assert (shape.kv_layers, shape.state_elements) == (2, 7 * 20 * (5 + 3))


def test_one_head_is_enough() -> None:
    shape = shape_of_config(TINY | {"num_attention_heads": 1}, "single")
    assert shape.attention_dim == 4


def test_layers_without_attention_hold_a_state_instead_of_kv() -> None:
    shape = shape_of_config(HYBRID, "hybrid")
    matrix, width = 32 * 128 * 128, 3 * (2 * 16 * 128 + 32 * 128)
    assert shape.kv_layers == 12
    assert shape.kv_bytes_per_token() == 2 * 12 * 2 * 256 * 2
    assert shape.state_elements == 36 * (matrix + width)
    assert shape.parameters == pytest.approx(80e9, rel=0.02)


def test_layers_that_look_back_over_a_window_hold_the_window_only() -> None:
    kinds = ["sliding_attention", "full_attention"] * 16
    config = CONFIGS["Llama-3.1-8B"] | {"layer_types": kinds, "sliding_window": 1_024}
    shape = shape_of_config(config, "windowed")
    assert shape.kv_bytes_per_token() == 131_072 // 2
    assert shape.session_bytes(0) == 1_024 * 131_072 // 2


def test_mamba_layers_hold_their_states() -> None:
    kinds = ["mamba", "attention"] * 16
    mamba = {"mamba_d_state": 128, "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_d_conv": 4}
    shape = shape_of_config(CONFIGS["Llama-3.1-8B"] | {"layer_types": kinds} | mamba, "mamba")
    assert shape.state_elements == 16 * (8_192 * 128 + 3 * (8_192 + 2 * 128))


def test_the_text_part_of_a_config_for_several_senses_is_read() -> None:
    assert shape_of_config({"text_config": CONFIGS["Qwen3-8B"]}, "m").kv_bytes_per_token() == 147_456


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"num_hidden_layers": None},
            "m: config has no num_hidden_layers; is it the model's own config.json?",
        ),
        ({"num_hidden_layers": "32"}, "m: num_hidden_layers is '32', not a whole number of 1 or more"),
        ({"hidden_size": -1}, "m: hidden_size is -1, not a whole number"),
        ({"num_attention_heads": 0}, "m: num_attention_heads is 0"),
        (
            {"full_attention_interval": -1},
            "m: full_attention_interval is -1, not a whole number of 0 or more",
        ),
        ({"layer_types": ["full_attention"]}, "m: layer_types must name each of the 36 layers"),
        ({"layer_types": ["magic"] * 36}, "m: layer_types has magic; known are full_attention"),
        ({"layer_types": ["sliding_attention"] * 36}, "m: 36 layers slide over a window, but sliding_window"),
        ({"layer_types": ["mamba"] * 36}, "m: 36 layers are recurrent, but neither"),
        ({"num_hidden_layers": 10**400}, "m: num_hidden_layers is above 1,000,000,000, which no model has"),
        (
            {"head_dim": None, "num_attention_heads": 8_192},
            "m: hidden_size 4096 leaves nothing for 8192 num_attention_heads",
        ),
        (
            {"num_key_value_heads": 64},
            "m: num_key_value_heads is 64, more than the 32 num_attention_heads",
        ),
        (
            {"num_experts": 8, "num_experts_per_tok": 16},
            "m: num_experts_per_tok is 16, more than the 8 experts",
        ),
        (
            {"num_experts": 8, "num_experts_per_tok": 2, "first_k_dense_replace": 37},
            "m: first_k_dense_replace is 37, more than the 36 layers",
        ),
        ({"sliding_window_pattern": 6}, "m: 30 layers slide over a window, but sliding_window"),
    ],
)
def test_what_is_wrong_with_a_config_is_named_with_the_model_and_the_field(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        shape_of_config(CONFIGS["Qwen3-8B"] | change, "m")


def test_one_layer_in_six_sees_everything_and_the_others_a_window() -> None:
    gemma = dense(62, 5_376, 21_504, 262_208, num_attention_heads=32, num_key_value_heads=16, head_dim=128)
    gemma |= {"sliding_window": 1_024, "sliding_window_pattern": 6, "tie_word_embeddings": True}
    shape = shape_of_config({"text_config": gemma}, "gemma")
    assert shape.kv_layers == 10
    assert shape.kv_bytes_per_token() == 2 * 10 * 16 * 128 * 2
    assert shape.state_elements == 52 * 1_024 * 2 * 16 * 128
    assert shape.parameters == pytest.approx(27e9, rel=0.02)


def test_one_layer_in_eight_has_attention_and_every_second_one_experts() -> None:
    jamba = dense(32, 4_096, 14_336, 65_536, num_attention_heads=32)
    jamba |= {"attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2, "num_experts": 16}
    jamba |= {"num_experts_per_tok": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2}
    shape = shape_of_config(jamba, "jamba")
    assert shape.kv_layers == 4
    assert shape.state_elements == 28 * 8_192 * (16 + 3)
    expert = 3 * 4_096 * 14_336
    assert shape.parameters - shape.active_parameters == 16 * 14 * expert


@pytest.mark.parametrize(("offset", "count"), [(0, 4), (3, 4), (4, 3)])
def test_the_offset_decides_how_many_layers_of_the_last_period_have_attention(
    offset: int, count: int
) -> None:
    config = dense(19, 64, 64, 64, num_attention_heads=8, attn_layer_period=5, attn_layer_offset=offset)
    assert shape_of_config(config | {"mamba_d_state": 16}, "m").kv_layers == count


def test_where_every_second_layer_has_experts_the_others_are_dense_with_a_width_of_their_own() -> None:
    llama = dense(48, 5_120, 8_192, 202_048, num_attention_heads=40, head_dim=128)
    llama |= {"intermediate_size_mlp": 16_384, "num_local_experts": 128, "num_experts_per_tok": 1}
    llama |= {"interleave_moe_layer_step": 2, "attention_chunk_size": 8_192}
    llama |= {"layer_types": (["chunked_attention"] * 3 + ["full_attention"]) * 12}
    shape = shape_of_config({"text_config": llama}, "llama")
    assert shape.parameters == pytest.approx(400e9, rel=0.02)
    assert shape.kv_bytes_per_token() == 2 * 12 * 8 * 128 * 2
    assert shape.state_elements == 36 * 8_192 * 2 * 8 * 128


@pytest.mark.parametrize(
    "field",
    [
        {"hybrid_override_pattern": "M-M*"},
        {"attn_type_list": [0, 1]},
        {"attn_layer_indices": [9]},
        {"layers_block_type": ["mamba"]},
        {"linear_attn_config": {"kda_layers": [1]}},
        {"mamba_d_state": 128},
        {"ssm_state_size": 128},
    ],
    ids=lambda field: next(iter(field)),
)
def test_layers_that_differ_in_a_way_that_is_not_read_are_not_taken_for_equal(field: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"m: its layers differ \({next(iter(field))}\), and how is read"):
        shape_of_config(CONFIGS["Llama-3.1-8B"] | field, "m")
