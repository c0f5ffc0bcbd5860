"""Accelerators and links as their makers state them.

Rates of products are dense, without structured sparsity. HBM of HGX parts is the marketed decimal size.
Sources: NVIDIA data sheets "A100 Tensor Core GPU" (2022), "H100" and "H200 Tensor Core GPU" (2024), "HGX
B200" (2025), "L40S" (2023); AMD data sheets "Instinct MI300X" (2023) and "MI325X" (2024).
"""

from dataclasses import dataclass
from typing import Final

from kvpool.plan.timing.model import LinkModel

_TERA: Final = 10**12
_GIGA: Final = 10**9


@dataclass(frozen=True, slots=True)
class Card:
    """One accelerator."""

    name: str
    hbm_bytes: int
    hbm_bytes_per_second: int
    flops_16bit: int
    """Products a second times two, at 16 bits."""
    flops_8bit: int
    """0: the card multiplies no 8-bit numbers."""
    flops_4bit: int
    watts: int
    """Thermal design power."""

    def flops(self, product_bits: int) -> int:
        """Rate of products of that width, or of the next wider one that the card has."""
        narrow = {4: self.flops_4bit or self.flops_8bit, 8: self.flops_8bit}
        return narrow.get(product_bits, 0) or self.flops_16bit


def _card(
    name: str, hbm_gb: int, gb_per_second: int, tera16: int, tera8: int, tera4: int, watts: int
) -> Card:
    rates = (tera16 * _TERA, tera8 * _TERA, tera4 * _TERA)
    return Card(name, hbm_gb * _GIGA, gb_per_second * _GIGA, *rates, watts)


CARDS: Final = {
    card.name: card
    for card in (
        _card("A100-80GB", 80, 2_039, 312, 624, 0, 400),
        _card("L40S", 48, 864, 362, 733, 0, 350),
        _card("H100", 80, 3_350, 989, 1_979, 0, 700),
        _card("H200", 141, 4_800, 989, 1_979, 0, 700),
        _card("B200", 180, 8_000, 2_250, 4_500, 9_000, 1_000),
        _card("MI300X", 192, 5_300, 1_307, 2_615, 0, 750),
        _card("MI325X", 256, 6_000, 1_307, 2_615, 0, 1_000),
    )
}
"""By name."""


def _link(gb_per_second: float, setup_microseconds: int) -> LinkModel:
    return LinkModel(setup_microseconds * 1_000, round(gb_per_second * _GIGA))


LINKS: Final = {
    "NVLink": _link(600, 300),
    "InfiniBand-400G": _link(40, 1_000),
    "RoCE-200G": _link(20, 1_000),
    "Ethernet-100G": _link(10, 5_000),
    "Ethernet-25G": _link(2.5, 5_000),
    "PCIe4-x16": _link(25, 20),
    "PCIe5-x16": _link(50, 20),
    "PCIe6-x16": _link(100, 20),
    "CXL2-x8": _link(25, 20),
    "CXL2-x16": _link(50, 20),
    "NVMe-Gen4": _link(6, 100),
    "NVMe-Gen5": _link(12, 100),
}
"""What one direction really carries, by name.

NVLink, InfiniBand, RoCE and Ethernet: llm-d-inference-sim (Apache-2.0), docs/latency-profiles.md, "KV Cache
Transfer"; the set-up is the middle of its range. PCIe and CXL: 80 % of the rate that the specification gives
after coding (PCIe Base 4.0 to 6.0, x16: 31.5, 63 and 121 GB/s); NVMe: what one drive of the generation
reads in 1 MB pieces. Their set-ups are orders of magnitude, to be replaced by measured ones.
"""
