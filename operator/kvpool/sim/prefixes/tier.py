"""The tiers that KV of a prefix may come from."""

from enum import IntEnum


class Tier(IntEnum):
    """Where the KV of a prompt's prefix came from, nearest first."""

    NEW = 0
    """Nothing of it had been seen: all was computed for the first time."""
    HBM = 1
    DRAM = 2
    CXL = 3
    SSD = 4
    RECOMPUTE = 5
    """Some of it had been held and was gone: it was computed again."""
