"""The tiers that KV of a prefix may come from."""

from enum import IntEnum


class Tier(IntEnum):
    """The deepest tier that KV of a prompt's prefix was brought up from, nearest first.

    A request that brought something up stands there, though it may have computed the rest again.
    """

    NEW = 0
    """Nothing of it had been seen: all was computed for the first time."""
    HBM = 1
    """Its start was in the accelerator's memory, and the rest had never been held."""
    DRAM = 2
    CXL = 3
    SSD = 4
    RECOMPUTE = 5
    """Nothing was brought up, and some of it had been held and was gone: it was computed again."""
