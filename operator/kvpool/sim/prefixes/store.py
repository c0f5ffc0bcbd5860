"""A tier below the device: what the tier above let go, until it is brought up or others need the room."""

from collections.abc import Callable

from kvpool.plan.timing.model import LinkModel
from kvpool.sim.links.shared import SharedLink
from kvpool.sim.prefixes.idle import StoredOrder
from kvpool.sim.prefixes.tier import Tier


class PrefixStore:
    """Blocks in one lower tier, and its way up."""

    __slots__ = (
        "_heir",
        "_order",
        "capacity_blocks",
        "demoted_blocks",
        "dropped_blocks",
        "inbound",
        "is_exclusive",
        "link",
        "tier",
    )

    def __init__(
        self,
        tier: Tier,
        capacity_blocks: int,
        link: LinkModel,
        order: StoredOrder,
        heir: Callable[[int], None] | None = None,
        *,
        is_exclusive: bool = True,
    ) -> None:
        self.tier = tier
        self.link = link
        self.inbound = SharedLink(link.bytes_per_second)
        """Its way up, shared by all that is brought up from it or through it."""
        self.is_exclusive = is_exclusive
        """Whether a block that was brought up leaves; one that several instances share keeps it."""
        self.demoted_blocks = 0
        self.dropped_blocks = 0
        self.capacity_blocks = capacity_blocks
        self._order = order
        self._heir = heir

    def __contains__(self, block: int) -> bool:
        return block in self._order

    def __len__(self) -> int:
        return len(self._order)

    def blocks(self) -> list[int]:
        """All blocks that are here."""
        return list(self._order)

    def put(self, block: int) -> None:
        """Take a block from above; one that is here already becomes the newest."""
        order = self._order
        if block in order:
            order.discard((block,))
        else:
            self.demoted_blocks += 1
        order.add((block,))
        for lost in order.take(max(0, len(order) - self.capacity_blocks)):
            self.dropped_blocks += 1
            if self._heir is not None:
                self._heir(lost)

    def brought_up(self, block: int) -> None:
        """The tier above has a copy now."""
        if self.is_exclusive and block in self._order:
            self._order.discard((block,))

    def forget(self) -> None:
        """Lose everything."""
        self._order.clear()
