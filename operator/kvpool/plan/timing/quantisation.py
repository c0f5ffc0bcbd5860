"""Number formats of weights, activations and KV: how many bytes are read, and how fast products are.

A product of matrices runs at the rate of the wider of its two inputs, as far as the card has that format:
W4A16 halves no multiplication, it only reads fewer weight bytes. Block formats carry a scale with each
block: 8 bits for 16 values (NVFP4) or 32 (MXFP4, OCP Microscaling Formats 1.0); 8-bit weights carry one
scale a channel, which is nothing beside them.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Quantisation:
    """Widths of one way to serve a model."""

    name: str
    weight_bits: float
    """Of one weight, its share of the block's scale included."""
    product_bits: int
    """Width of the products: 16, 8 or 4."""
    kv_bits: int = 16

    def weight_bytes(self, parameters: int) -> int:
        """Bytes of all weights, rounded up."""
        return -(-round(parameters * self.weight_bits) // 8)

    def with_kv(self, kv_bits: int) -> "Quantisation":
        """The same weights with KV of another width."""
        return Quantisation(self.name, self.weight_bits, self.product_bits, kv_bits)


BF16: Final = Quantisation("W16A16", 16, 16)

QUANTISATIONS: Final = {
    known.name: known
    for known in (
        BF16,
        Quantisation("W8A16", 8, 16),
        Quantisation("W8A8", 8, 8),
        Quantisation("W4A16", 4.5, 16),
        Quantisation("W4A8", 4.5, 8),
        Quantisation("W4A4", 4.5, 4),
    )
}
"""By name: bits of weights, bits of activations. KV stays at 16 bits until `with_kv` says otherwise."""
