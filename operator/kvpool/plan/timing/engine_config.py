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
_EVERY: Final = ("full_attention_interval", "sliding_window_pattern", "attn_layer_period")
"""One layer in so many has whole attention: Qwen3-Next, Gemma 3 and Cohere 2, Jamba."""
_UNLIKE: Final = (
    "hybrid_override_pattern",
    "attn_type_list",
    "attn_layer_indices",
    "layers_block_type",
    "block_types",
    "linear_attn_config",
    "mamba_d_state",
    "ssm_state_size",
)
"""Fields of models whose layers differ, in ways that are not read here."""
_SPARSE_EVERY: Final = ("decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period")
"""One layer in so many has experts: Qwen, Llama 4, Jamba."""
MOST: Final = 10**9
"""Of any number of a config: beyond it, it is none of a model."""


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
    head_dim = _head_dim(fields, heads)
    query_dim = fields.number("qk_nope_head_dim") + rope if latent else head_dim
    kv_heads = 0 if latent else _kv_heads(fields, heads)
    state = window * _window_tokens(fields) * (latent + rope or 2 * kv_heads * head_dim)
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
        if value > MOST:
            raise ValueError(f"{self.name}: {field} is above {MOST:,}, which no model has")
        return value

    def first(self, names: Sequence[str]) -> int:
        """The first of several fields that is given and not 0; else 0."""
        return next((value for name in names if (value := self.number(name, 0))), 0)


def _head_dim(fields: _Fields, heads: int) -> int:
    given = fields.number("head_dim", 0)
    if given:
        return given
    hidden = fields.number("hidden_size")
    if hidden < heads:
        raise ValueError(
            f"{fields.name}: hidden_size {hidden} leaves nothing for {heads} num_attention_heads"
        )
    return hidden // heads


def _kv_heads(fields: _Fields, heads: int) -> int:
    given = fields.number("num_key_value_heads", heads)
    if given > heads:
        raise ValueError(
            f"{fields.name}: num_key_value_heads is {given}, more than the {heads} num_attention_heads"
        )
    return given


def _window_tokens(fields: _Fields) -> int:
    """Tokens that a layer with a window looks back over; chunks are windows that do not slide (Llama 4)."""
    return fields.first(("sliding_window", "attention_chunk_size"))


def _kinds_of_layers(fields: _Fields, layers: int) -> tuple[int, int, int]:
    """Numbers of layers with whole, windowed and no attention."""
    kinds = fields.raw.get("layer_types")
    if kinds is None:
        return _by_interval(fields, layers)
    if not isinstance(kinds, Sequence) or isinstance(kinds, str) or len(kinds) != layers:
        raise ValueError(f"{fields.name}: layer_types must name each of the {layers} layers")
    unknown = sorted({str(kind) for kind in kinds} - {*_FULL, *_WINDOW, *_RECURRENT})
    if unknown:
        raise ValueError(
            f"{fields.name}: layer_types has {', '.join(unknown)};"
            f" known are {', '.join((*_FULL, *_WINDOW, *_RECURRENT))}"
        )
    window = sum(kind in _WINDOW for kind in kinds)
    full = sum(kind in _FULL for kind in kinds)
    return full, _with_window(fields, window), layers - full - window


def _by_interval(fields: _Fields, layers: int) -> tuple[int, int, int]:
    """As `_kinds_of_layers`, where the config does not list them."""
    name = next((name for name in _EVERY if fields.number(name, 0)), "")
    if name:
        offset = fields.number("attn_layer_offset", 0) if name == "attn_layer_period" else -1
        full = len(range(offset % fields.number(name), layers, fields.number(name)))
        others = layers - full
        return (full, _with_window(fields, others), 0) if "window" in name else (full, 0, others)
    unlike = next((field for field in _UNLIKE if fields.raw.get(field)), "")
    if unlike:
        raise ValueError(
            f"{fields.name}: its layers differ ({unlike}), and how is read from layer_types alone: add it,"
            f" one of {', '.join((_FULL[0], _WINDOW[0], *_RECURRENT[:2]))} for each of the {layers} layers"
        )
    return layers, 0, 0


def _with_window(fields: _Fields, layers: int) -> int:
    """So many layers; refused when nothing says how far they look back."""
    if layers and not _window_tokens(fields):
        raise ValueError(
            f"{fields.name}: {layers} layers slide over a window, but sliding_window is not given"
        )
    return layers


def _recurrent_elements(fields: _Fields, layers: int) -> int:
    """Elements of state of one recurrent layer: gated delta rule (Qwen3-Next), Mamba-2, else Mamba."""
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
        states = fields.number("mamba_d_state")
        width = fields.number("mamba_d_conv", 4) - 1
        if "mamba_n_heads" not in fields.raw:
            inner = fields.number("mamba_expand", 2) * fields.number("hidden_size")
            return inner * (states + width)
        inner = fields.number("mamba_n_heads") * fields.number("mamba_d_head")
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
    dense = 3 * hidden * fields.first(("intermediate_size_mlp", "intermediate_size"))
    experts = fields.first(("n_routed_experts", "num_experts", "num_local_experts"))
    shared = attention + vocabulary * (1 if tied else 2)
    if not experts:
        total = shared + layers * dense
        return total, total
    first = fields.number("first_k_dense_replace", 0)
    if first > layers:
        raise ValueError(f"{fields.name}: first_k_dense_replace is {first}, more than the {layers} layers")
    expert = 3 * hidden * (fields.number("moe_intermediate_size", 0) or fields.number("intermediate_size"))
    always = expert * fields.number("n_shared_experts", 0)
    always += 3 * hidden * fields.number("shared_expert_intermediate_size", 0)
    used = fields.number("num_experts_per_tok")
    if used > experts:
        raise ValueError(f"{fields.name}: num_experts_per_tok is {used}, more than the {experts} experts")
    sparse = (layers - first) // (fields.first(_SPARSE_EVERY) or 1)
    base = shared + (layers - sparse) * dense + sparse * (always + hidden * experts)
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
