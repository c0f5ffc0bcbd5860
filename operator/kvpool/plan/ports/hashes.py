"""How switches pick one of several equal paths: four hashes over the addresses and ports of a packet.

    bucket = (H(packet) >> shift) mod S

All four are linear over XOR, up to a constant: `H(a ^ d) ^ H(a)` depends on `d` alone. So are CRCs of any
polynomial and start value. It follows that another start value alone does not stop two tiers of switches from
deciding alike (polarisation): another shift, another hash, or another Toeplitz key does.
"""

import binascii
import zlib
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

ROCE_PORT: Final = 4791
"""UDP destination port of RoCEv2 (InfiniBand Architecture, annex A17)."""
UDP: Final = 17
TOEPLITZ_KEY_BYTES: Final = 40
TOEPLITZ_KEY: Final = bytes.fromhex(
    "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa"
)
"""The key of Microsoft's receive-side scaling verification suite, which many devices ship with."""


class HashName(StrEnum):
    """The hashes that are known here."""

    CRC32 = "CRC32"
    """Polynomial 0x04C11DB7, as in Ethernet."""
    CRC16_CCITT = "CRC16-CCITT"
    """Polynomial 0x1021."""
    TOEPLITZ = "Toeplitz"
    """Receive-side scaling: a 40-byte key slides along the packet's bits."""
    XOR_FOLD = "XOR-fold"
    """The packet's 16-bit words, XORed."""


@dataclass(frozen=True, slots=True)
class FlowTuple:
    """What a switch hashes. Addresses are 4 or 16 bytes, both of one length."""

    source: bytes
    destination: bytes
    source_port: int
    destination_port: int = ROCE_PORT
    protocol: int = UDP

    def __post_init__(self) -> None:
        """Refuse what is no packet.

        Raises:
            ValueError: when addresses or ports are out of their range.
        """
        if len(self.source) != len(self.destination) or len(self.source) not in (4, 16):
            raise ValueError(
                f"addresses of {len(self.source)} and {len(self.destination)} bytes: both must have 4, or 16"
            )
        for port in (self.source_port, self.destination_port):
            if not 0 <= port <= 0xFFFF:
                raise ValueError(f"port {port} is not in 0 to 65535")

    def with_port(self, source_port: int) -> "FlowTuple":
        """The same flow from another source port."""
        return replace(self, source_port=source_port)

    def packed(self) -> bytes:
        """Addresses, then ports, in network order: what receive-side scaling hashes."""
        ports = self.source_port << 16 | self.destination_port
        return self.source + self.destination + ports.to_bytes(4, "big")


@dataclass(frozen=True, slots=True)
class SwitchHash:
    """One switch's way to choose. The form is kvpool's own, after vendors' ECMP manuals."""

    name: HashName
    buckets: int
    """Equal paths, at least 1; no power of two is needed."""
    seed: int = 0
    """CRC: the start value. Toeplitz and fold: XORed into the hash."""
    shift: int = 0
    key: bytes = TOEPLITZ_KEY
    """For Toeplitz alone: 40 bytes."""

    def __post_init__(self) -> None:
        """Refuse what no switch can do.

        Raises:
            ValueError: for no bucket at all, or a key of another length.
        """
        if self.buckets < 1:
            raise ValueError(f"buckets must be at least 1, not {self.buckets}")
        if len(self.key) != TOEPLITZ_KEY_BYTES:
            raise ValueError(f"a Toeplitz key has {TOEPLITZ_KEY_BYTES} bytes, not {len(self.key)}")

    def hash_of(self, flow: FlowTuple) -> int:
        """The whole hash: 32 bits for CRC32 and Toeplitz, 16 for the other two."""
        packed = flow.packed()
        if self.name is HashName.TOEPLITZ:
            return toeplitz(packed, self.key) ^ (self.seed & 0xFFFFFFFF)
        packed = flow.protocol.to_bytes(2, "big") + packed
        if self.name is HashName.CRC32:
            return zlib.crc32(packed, self.seed & 0xFFFFFFFF)
        if self.name is HashName.CRC16_CCITT:
            return binascii.crc_hqx(packed, self.seed & 0xFFFF)
        return xor_fold(packed) ^ (self.seed & 0xFFFF)

    def bucket(self, flow: FlowTuple) -> int:
        """Which path the flow takes, from 0."""
        return (self.hash_of(flow) >> self.shift) % self.buckets


def toeplitz(packed: bytes, key: bytes) -> int:
    """The 32-bit Toeplitz hash of at most 36 bytes under a key of 40.

    Source: Microsoft, "RSS hashing functions"; its published verification values are in the tests.
    """
    mixed = 0
    for position, value in enumerate(packed):
        mixed ^= _toeplitz_bytes(key, position)[value]
    return mixed


@lru_cache(maxsize=64 * (TOEPLITZ_KEY_BYTES - 4))
def _toeplitz_bytes(key: bytes, position: int) -> tuple[int, ...]:
    """What each value of the byte at `position` adds to the hash."""
    whole = int.from_bytes(key, "big")
    width = 8 * len(key)
    windows = [(whole >> (width - 32 - 8 * position - bit)) & 0xFFFFFFFF for bit in range(8)]
    adds = []
    for value in range(256):
        mixed = 0
        for bit, window in enumerate(windows):
            if value & (0x80 >> bit):
                mixed ^= window
        adds.append(mixed)
    return tuple(adds)


def xor_fold(packed: bytes) -> int:
    """The 16-bit words of an even number of bytes, XORed."""
    whole = int.from_bytes(packed, "big")
    width = 8 * len(packed)
    while width > 16:
        half = -(-width // 32) * 16
        whole = (whole >> half) ^ (whole & ((1 << half) - 1))
        width = half
    return whole
