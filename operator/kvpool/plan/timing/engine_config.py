"""Reads the `config.json` that comes with a model's weights into its shape.

Field names: Hugging Face transformers, `PretrainedConfig` and its model classes. The file names no parameter
count, so it is added up from the matrices: gated feed-forward layers, routed and shared experts, embeddings.
The sum is within 2 % of the published count for the models of `SHAPES`; a caller who knows better replaces
it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvpool.plan.timing.shapes import ModelShape

_FULL: Final = ("full_attention", "attention")
_WINDOW: Final = ("sliding_attention", "chunked_attention")
_RECURRENT: Final = ("linear_attention", "mamba", "recurrent")


def shape_of_config(config: Mapping[str, Any], name: str) -> ModelShape:
    """Return the shape that a model's `config.json` describes.

    Raises:
        ValueError: naming the model, the field and what is wrong with it.
    """
    inner = config.get("text_config")
    fields = _Fields(inner if isinstance(inner, Mapping) else config, name)
    layers = fields.number("num_hidden_layers")
    full, window, recurrent = _kinds_of_layers(fields, layers)
    heads = fields.number("num_attention_heads")
    latent = fields.number("kv_lora_rank", 0)
    rope = fields.number("qk_rope_head_dim") if latent else 0
    head_dim = fields.number("head_dim", 0) or fields.number("hidden_size") // heads
    query_dim = fields.number("qk_nope_head_dim") + rope if latent else head_dim
    kv_heads = 0 if latent else fields.number("num_key_value_heads", heads)
    state = window * fields.number("sliding_window", 0) * (latent + rope or 2 * kv_heads * head_dim)
    total, active = _parameters(fields, layers, heads * query_dim)
    return ModelShape(
        name,
        kv_layers=full,
        attention_dim=heads * query_dim,
        parameters=total,
        active_parameters=active,
        kv_heads=kv_heads,
        head_dim=0 if latent else head_dim,
        latent_dim=latent,
        rope_dim=rope,
        state_elements=state + recurrent * _recurrent_elements(fields, recurrent),
    )


class _Fields:
    """Whole numbers of a config, with errors that name the model and the field."""

    def __init__(self, raw: Mapping[str, Any], name: str) -> None:
        self.raw = raw
        self.name = name

    def number(self, field: str, default: int | None = None) -> int:
        value = self.raw.get(field)
        if value is None:
            if default is None:
                raise ValueError(f"{self.name}: config has no {field}; is it the model's own config.json?")
            return default
        least = 1 if default is None else 0
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"{self.name}: {field} is {value!r}, not a whole number of {least} or more")
        return value


def _kinds_of_layers(fields: _Fields, layers: int) -> tuple[int, int, int]:
    """Numbers of layers with whole, windowed and no attention."""
    kinds = fields.raw.get("layer_types")
    if kinds is None:
        every = fields.number("full_attention_interval", 0)
        if every:
            return layers // every, 0, layers - layers // every
        return layers, 0, 0
    if not isinstance(kinds, Sequence) or isinstance(kinds, str) or len(kinds) != layers:
        raise ValueError(f"{fields.name}: layer_types must name each of the {layers} layers")
    unknown = sorted({str(kind) for kind in kinds} - {*_FULL, *_WINDOW, *_RECURRENT})
    if unknown:
        raise ValueError(
            f"{fields.name}: layer_types has {', '.join(unknown)};"
            f" known are {', '.join((*_FULL, *_WINDOW, *_RECURRENT))}"
        )
    window = sum(kind in _WINDOW for kind in kinds)
    if window and not fields.number("sliding_window", 0):
        raise ValueError(
            f"{fields.name}: {window} layers slide over a window, but sliding_window is not given"
        )
    full = sum(kind in _FULL for kind in kinds)
    return full, window, layers - full - window


def _recurrent_elements(fields: _Fields, layers: int) -> int:
    """Elements of state of one recurrent layer: gated delta rule (Qwen3-Next), else Mamba-2."""
    if not layers:
        return 0
    if "linear_num_value_heads" in fields.raw:
        keys = fields.number("linear_num_key_heads") * fields.number("linear_key_head_dim")
        value_heads, value_dim = (
            fields.number("linear_num_value_heads"),
            fields.number("linear_value_head_dim"),
        )
        width = fields.number("linear_conv_kernel_dim", 4) - 1
        matrix = value_heads * value_dim * fields.number("linear_key_head_dim")
        return matrix + width * (2 * keys + value_heads * value_dim)
    if "mamba_d_state" in fields.raw:
        inner = fields.number("mamba_n_heads") * fields.number("mamba_d_head")
        states = fields.number("mamba_d_state")
        width = fields.number("mamba_d_conv", 4) - 1
        return inner * states + width * (inner + 2 * fields.number("mamba_n_groups", 1) * states)
    raise ValueError(
        f"{fields.name}: {layers} layers are recurrent, but neither linear_num_value_heads nor mamba_d_state"
        " says how large their state is"
    )


def _parameters(fields: _Fields, layers: int, attention_dim: int) -> tuple[int, int]:
    """All parameters, and those that one token passes through."""
    hidden = fields.number("hidden_size")
    tied = bool(fields.raw.get("tie_word_embeddings"))
    vocabulary = fields.number("vocab_size") * hidden
    attention = layers * _attention_parameters(fields, hidden, attention_dim)
    dense = 3 * hidden * fields.number("intermediate_size", 0)
    experts = next(
        (
            count
            for key in ("n_routed_experts", "num_experts", "num_local_experts")
            if (count := fields.number(key, 0))
        ),
        0,
    )
    shared = attention + vocabulary * (1 if tied else 2)
    if not experts:
        total = shared + layers * dense
        return total, total
    first = fields.number("first_k_dense_replace", 0)
    expert = 3 * hidden * (fields.number("moe_intermediate_size", 0) or fields.number("intermediate_size"))
    always = expert * fields.number("n_shared_experts", 0)
    always += 3 * hidden * fields.number("shared_expert_intermediate_size", 0)
    used = fields.number("num_experts_per_tok")
    sparse = layers - first
    base = shared + first * dense + sparse * (always + hidden * experts)
    return base + sparse * experts * expert, base + sparse * used * expert


def _attention_parameters(fields: _Fields, hidden: int, attention_dim: int) -> int:
    """Parameters of one layer's four projections, low-rank ones for latent attention."""
    heads = fields.number("num_attention_heads")
    latent = fields.number("kv_lora_rank", 0)
    if not latent:
        head_dim = attention_dim // heads
        return (
            2 * hidden * attention_dim + 2 * hidden * fields.number("num_key_value_heads", heads) * head_dim
        )
    rope = fields.number("qk_rope_head_dim")
    values = fields.number("v_head_dim")
    query_rank = fields.number("q_lora_rank", 0)
    query = query_rank * (hidden + attention_dim) if query_rank else hidden * attention_dim
    keys = hidden * (latent + rope) + latent * heads * (fields.number("qk_nope_head_dim") + values)
    return query + keys + heads * values * hidden
