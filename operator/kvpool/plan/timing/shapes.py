"""The shape of a model, as far as memory and time depend on it.

    kv bytes per token = 2 * layers * kv_heads * head_dim * bytes             (multi-head, grouped-query)
                       = layers * (latent_dim + rope_dim) * bytes             (multi-head latent attention)

Grouped-query form: Ainslie et al., "GQA", EMNLP 2023. Latent form: DeepSeek-AI, "DeepSeek-V2", arXiv
2405.04434, section 2.1. Hybrid models keep a state of fixed size in their other layers: recurrent ones, and
layers that look back over a window only, which never hold more than the window.
"""

from dataclasses import dataclass
from typing import Final

BYTES_16BIT: Final = 2


@dataclass(frozen=True, slots=True)
class ModelShape:
    """One model. Element sizes are of 16-bit storage; other widths are `Quantisation`'s matter."""

    name: str
    kv_layers: int
    """Layers whose KV grows with the whole context."""
    attention_dim: int
    """Query heads times head dimension, of one layer."""
    parameters: int
    active_parameters: int
    """Parameters that one token passes through; all of them for a dense model."""
    kv_heads: int = 0
    """0 for latent attention."""
    head_dim: int = 0
    latent_dim: int = 0
    """Width of the compressed KV of latent attention; 0: none."""
    rope_dim: int = 0
    state_elements: int = 0
    """Elements that one sequence holds whatever its length: recurrent states, and full windows."""

    def __post_init__(self) -> None:
        """Refuse shapes that cannot be."""
        if (self.kv_heads > 0) == (self.latent_dim > 0):
            raise ValueError(f"{self.name}: give kv_heads and head_dim, or latent_dim and rope_dim")
        if not 0 < self.active_parameters <= self.parameters:
            raise ValueError(
                f"{self.name}: active_parameters {self.active_parameters} must be above 0 and at most"
                f" parameters {self.parameters}"
            )

    @property
    def latent(self) -> bool:
        """Whether the KV is one latent vector, which every tensor-parallel rank holds whole."""
        return self.latent_dim > 0

    def kv_elements_per_token(self) -> int:
        """Elements of KV that one token adds, over all layers and heads."""
        if self.latent:
            return self.kv_layers * (self.latent_dim + self.rope_dim)
        return 2 * self.kv_layers * self.kv_heads * self.head_dim

    def kv_bytes_per_token(self, element_bits: int = 16) -> int:
        """`kappa`: bytes of KV that one token adds when nothing is held twice. Rounded up."""
        return -(-self.kv_elements_per_token() * element_bits // 8)

    def session_bytes(self, context_tokens: int, element_bits: int = 16) -> int:
        """Bytes that a parked session of so many tokens holds: KV, and fixed state (kept at 16 bits)."""
        return context_tokens * self.kv_bytes_per_token(element_bits) + self.state_elements * BYTES_16BIT


@dataclass(frozen=True, slots=True)
class Ranks:
    """How an instance is divided: `kv` groups split the tokens, `tensor` ranks of each split the heads."""

    tensor: int = 1
    kv: int = 1

    def __post_init__(self) -> None:
        """Refuse empty divisions."""
        if self.tensor < 1 or self.kv < 1:
            raise ValueError(f"tensor {self.tensor} and kv {self.kv} ranks must both be 1 or more")

    @property
    def count(self) -> int:
        """Ranks of the instance."""
        return self.tensor * self.kv

    def bytes_per_token_of_rank(self, shape: ModelShape, element_bits: int = 16) -> int:
        """Bytes that a rank of the token's group holds for it.

        Heads are split, a head is never: with more ranks than KV heads each rank holds one whole head, so
        some heads are held twice (vLLM and SGLang both do so). A latent vector cannot be split at all.
        """
        if shape.latent:
            return shape.kv_bytes_per_token(element_bits)
        heads = -(-shape.kv_heads // self.tensor)
        return -(-shape.kv_bytes_per_token(element_bits) * heads // shape.kv_heads)

    def held_bytes_per_token(self, shape: ModelShape, element_bits: int = 16) -> int:
        """Bytes that all ranks together hold for one token, copies counted."""
        return self.tensor * self.bytes_per_token_of_rank(shape, element_bits)

    def session_bytes(self, shape: ModelShape, context_tokens: int, element_bits: int = 16) -> int:
        """Bytes that a parked session of so many tokens holds, copies of its KV counted."""
        return shape.session_bytes(0) + context_tokens * self.held_bytes_per_token(shape, element_bits)

    def rank_bytes(self, shape: ModelShape, context_tokens: int, element_bits: int = 16) -> int:
        """Bytes that the fullest rank holds for a context: its group's share of the tokens, rounded up."""
        return -(-context_tokens // self.kv) * self.bytes_per_token_of_rank(shape, element_bits)


def _grouped(
    name: str, layers: int, heads: int, kv_heads: int, head_dim: int, parameters: int, active: int = 0
) -> ModelShape:
    return ModelShape(
        name, layers, heads * head_dim, parameters, active or parameters, kv_heads=kv_heads, head_dim=head_dim
    )


SHAPES: Final = {
    shape.name: shape
    for shape in (
        _grouped("Llama-3.1-8B", 32, 32, 8, 128, 8_030_000_000),
        _grouped("Llama-3.1-70B", 80, 64, 8, 128, 70_550_000_000),
        _grouped("Llama-3.1-405B", 126, 128, 8, 128, 405_850_000_000),
        _grouped("Qwen3-8B", 36, 32, 8, 128, 8_190_000_000),
        _grouped("Qwen3-32B", 64, 64, 8, 128, 32_760_000_000),
        _grouped("Qwen3-30B-A3B", 48, 32, 4, 128, 30_530_000_000, 3_350_000_000),
        _grouped("Qwen3-235B-A22B", 94, 64, 4, 128, 235_090_000_000, 22_190_000_000),
        _grouped("Mixtral-8x7B", 32, 32, 8, 128, 46_700_000_000, 12_880_000_000),
        ModelShape(
            "DeepSeek-V3", 61, 128 * 192, 671_030_000_000, 37_550_000_000, latent_dim=512, rope_dim=64
        ),
        ModelShape(
            "DeepSeek-V2-Lite", 27, 16 * 192, 15_710_000_000, 2_660_000_000, latent_dim=512, rope_dim=64
        ),
    )
}
"""Well-known models, from the `config.json` and model card that each publisher ships with the weights."""
