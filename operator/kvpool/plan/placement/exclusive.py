"""Exclusive tiers: a block is in HBM or in host memory, and in both only while somebody needs it.

    HOST -> LOADING -> BOTH -> HBM -> EVICTING -> HOST

A copy keeps both slots until the device acknowledged it; a host slot is freed when its last reader left. At
rest no block holds two slots. That is what DEMOTE does for arrays of disks (Wong and Wilkes, USENIX ATC
2002) and the write-back mode of SGLang's HiCache for KV (pull requests 33777 and 34519 of its repository).
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


class Place(StrEnum):
    """Where a block is, and what is under way with it."""

    HOST = "Host"
    LOADING = "Loading"
    """Copied up: the host slot is pinned, the HBM slot is taken."""
    BOTH = "Both"
    """Acknowledged, and somebody still reads the host copy."""
    HBM = "HBM"
    EVICTING = "Evicting"
    """Copied down: the HBM slot is pinned, the host slot is taken."""


HOLDS_HOST: Final = frozenset({Place.HOST, Place.LOADING, Place.BOTH, Place.EVICTING})
HOLDS_HBM: Final = frozenset({Place.LOADING, Place.BOTH, Place.HBM, Place.EVICTING})
IN_FLIGHT: Final = frozenset({Place.LOADING, Place.EVICTING})


@dataclass(frozen=True, slots=True)
class Block:
    """One block of an exclusive pair of tiers."""

    place: Place = Place.HBM
    host_readers: int = 0
    """Who reads the host copy: transfers to other nodes, write-through to a store."""
    hbm_readers: int = 0
    """Sequences that attend to the block."""

    @property
    def holds_host(self) -> bool:
        """Whether a host slot is taken."""
        return self.place in HOLDS_HOST

    @property
    def holds_hbm(self) -> bool:
        """Whether an HBM slot is taken."""
        return self.place in HOLDS_HBM

    @property
    def may_be_dropped(self) -> bool:
        """Whether the block may be forgotten now."""
        return self.place not in IN_FLIGHT and self.host_readers == 0 and self.hbm_readers == 0


def promote(block: Block) -> Block:
    """Begin the copy to HBM. The caller took an HBM slot for it."""
    _needs(block, "promoted", Place.HOST)
    return replace(block, place=Place.LOADING)


def loaded(block: Block) -> Block:
    """The device acknowledged the copy to HBM: the host slot goes, unless somebody reads it."""
    _needs(block, "acknowledged as loaded", Place.LOADING)
    return replace(block, place=Place.BOTH if block.host_readers else Place.HBM)


def load_failed(block: Block) -> Block:
    """The copy to HBM failed: the host copy is the block, and the HBM slot is free."""
    _needs(block, "given up while it loads", Place.LOADING)
    return replace(block, place=Place.HOST)


def evict(block: Block) -> Block:
    """Begin to leave HBM: at once when the host has it, else by a copy that needs a host slot."""
    _needs(block, "evicted", Place.HBM, Place.BOTH)
    if block.hbm_readers:
        raise ValueError(f"a block with {block.hbm_readers} readers in HBM cannot be evicted; wait for them")
    return replace(block, place=Place.HOST if block.place is Place.BOTH else Place.EVICTING)


def evicted(block: Block) -> Block:
    """The device acknowledged the copy to the host: the HBM slot goes."""
    _needs(block, "acknowledged as evicted", Place.EVICTING)
    return replace(block, place=Place.HOST)


def evict_failed(block: Block) -> Block:
    """The copy to the host failed: the block stays in HBM, and the host slot is free."""
    _needs(block, "given up while it is evicted", Place.EVICTING)
    return replace(block, place=Place.HBM)


def pin_host(block: Block) -> Block:
    """Somebody begins to read the host copy."""
    _needs(block, "read in host memory", Place.HOST, Place.LOADING, Place.BOTH)
    return replace(block, host_readers=block.host_readers + 1)


def unpin_host(block: Block) -> Block:
    """A reader of the host copy is done; the last one frees the slot of a block that is in HBM too."""
    if block.host_readers < 1:
        raise ValueError(f"a block in {block.place} has no reader in host memory that could leave")
    left = block.host_readers - 1
    leaves = block.place is Place.BOTH and left == 0
    return replace(block, host_readers=left, place=Place.HBM if leaves else block.place)


def pin_hbm(block: Block) -> Block:
    """A sequence begins to use the block."""
    _needs(block, "read in HBM", Place.HBM, Place.BOTH)
    return replace(block, hbm_readers=block.hbm_readers + 1)


def unpin_hbm(block: Block) -> Block:
    """A sequence is done with the block."""
    if block.hbm_readers < 1:
        raise ValueError(f"a block in {block.place} has no reader in HBM that could leave")
    return replace(block, hbm_readers=block.hbm_readers - 1)


def _needs(block: Block, what: str, *places: Place) -> None:
    if block.place not in places:
        wanted = " or ".join(places)
        raise ValueError(f"a block in {block.place} cannot be {what}; it has to be in {wanted}")
