"""The memory of one instance with the tiers below it: where a prefix is, and what bringing it up takes."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.sim.prefixes.resident import ResidentPrefixes
from kvpool.sim.prefixes.store import PrefixStore
from kvpool.sim.prefixes.tier import Tier


@dataclass(frozen=True, slots=True)
class Found:
    """The leading blocks of a prompt that are somewhere."""

    device_blocks: int
    """Of those, in the device's own memory."""
    lower_blocks: tuple[int, ...]
    """Of those, in each lower tier, nearest first."""

    @property
    def blocks(self) -> int:
        """All of them."""
        return self.device_blocks + sum(self.lower_blocks)


class Hierarchy:
    """A device's memory and its lower tiers, nearest first; a shared tier is in several hierarchies."""

    __slots__ = ("device", "stores")

    def __init__(self, device: ResidentPrefixes, stores: Sequence[PrefixStore] = ()) -> None:
        self.device = device
        self.stores = tuple(stores)

    def find(self, blocks: Sequence[int]) -> Found:
        """Follow a prompt's blocks through all tiers until one is nowhere."""
        device = self.device
        here = device.match(blocks)
        if not self.stores or here == len(blocks):
            return Found(here, (0,) * len(self.stores))
        lower = [0] * len(self.stores)
        for block in blocks[here:]:
            if block in device:
                here += 1
                continue
            place = next((place for place, store in enumerate(self.stores) if block in store), None)
            if place is None:
                break
            lower[place] += 1
        return Found(here, tuple(lower))

    def acquire(self, blocks: Sequence[int], private_tokens: int, spare_tokens: int = 0) -> bool:
        """Pin a request's blocks in the device; lower tiers that are exclusive give up their copies."""
        if not self.device.acquire(blocks, private_tokens, spare_tokens):
            return False
        for store in self.stores:
            for block in blocks:
                store.brought_up(block)
        return True

    def release(self, blocks: Sequence[int], private_tokens: int) -> None:
        """Give a request's blocks back; tiers that keep copies get one of each, from last to first."""
        self.device.release(blocks, private_tokens)
        for store in self.stores:
            if not store.is_exclusive:
                for block in reversed(blocks):
                    store.put(block)

    def forget(self) -> None:
        """Device and host died; what is shared with others stays."""
        self.device.forget()
        for store in self.stores:
            if store.is_exclusive:
                store.forget()

    def crossings(self, found: Found) -> list[tuple[int, int]]:
        """Which ways up carry how many blocks: what comes from a tier crosses all those above it too."""
        below = 0
        ways: list[tuple[int, int]] = []
        for place in range(len(self.stores) - 1, -1, -1):
            below += found.lower_blocks[place]
            if below:
                ways.append((place, below))
        return ways

    def deepest(self, found: Found) -> Tier:
        """The deepest tier that something was found in; `NEW` when nothing was."""
        for place in range(len(self.stores) - 1, -1, -1):
            if found.lower_blocks[place]:
                return self.stores[place].tier
        return Tier.HBM if found.device_blocks else Tier.NEW
