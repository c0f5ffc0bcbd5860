"""HBM and host memory as an exclusive pair, with copies that take time: the blocks' states, and who waits."""

import heapq
from collections.abc import Sequence

from kvpool.plan.placement import exclusive
from kvpool.plan.placement.eviction import Use
from kvpool.plan.placement.exclusive import Block, Place
from kvpool.plan.placement.orders import Recency
from kvpool.plan.placement.residents import Residents
from kvpool.sim.tiers.accesses import Access


class ExclusivePair:
    """Prefix blocks in HBM or host memory, never at rest in both; both under recency.

    A copy either way takes `copy_ns`, in which the block holds a slot on both sides. A block that leaves HBM
    while the host is full pushes out the least recent one there; when all that is there is being copied, the
    block is dropped instead.
    """

    def __init__(self, hbm_blocks: int, host_blocks: int, copy_ns: int = 0) -> None:
        self.hits = 0
        self.most_in_both = 0
        """Blocks with a slot on both sides, at the worst moment between two requests."""
        self._hbm_blocks = hbm_blocks
        self._host_blocks = host_blocks
        self._copy_ns = copy_ns
        self._rule = Recency()
        self._blocks: dict[int, Block] = {}
        self._uses: dict[int, Use] = {}
        self._in_hbm = Residents(self._rule)
        self._in_host = Residents(self._rule)
        self._hbm_used = 0
        self._host_used = 0
        self._copies: list[tuple[int, int]] = []
        self._ends: dict[int, int] = {}
        """Of the blocks that are being copied: when that ends."""
        self._leaving = 0
        self._turn = 0

    def access(self, access: Access) -> int:
        """Serve one request; return how many of its blocks were found, from its start on."""
        now = access.now_ns
        self._acknowledge(now)
        found = self._found(access.objects)
        for item in reversed(access.objects):
            self._use(item, now)
        self._acknowledge(now)
        # The blocks of this request are the most recent ones: what leaves are others, if it fits at all.
        self._make_room(now)
        self.most_in_both = max(self.most_in_both, len(self._ends))
        self.hits += found
        return found

    @property
    def in_both(self) -> int:
        """Blocks that hold a slot on both sides now: copies under way."""
        return sum(block.holds_hbm and block.holds_host for block in self._blocks.values())

    @property
    def used(self) -> tuple[int, int]:
        """Slots taken in HBM and in host memory."""
        return self._hbm_used, self._host_used

    def settle(self) -> None:
        """Let every copy under way come to its end."""
        if self._copies:
            self._acknowledge(max(end for end, _ in self._copies))

    def _found(self, items: Sequence[int]) -> int:
        count = 0
        for item in items:
            if item not in self._blocks:
                break
            count += 1
        return count

    def _use(self, item: int, now_ns: int) -> None:
        """Bring a block to HBM, from the host or as a new one."""
        self._turn += 1
        block = self._blocks.get(item)
        if block is None:
            self._blocks[item] = Block(Place.HBM)
            use = self._uses[item] = Use(item, now_ns, self._turn)
            self._hbm_used += 1
            self._in_hbm.add(use, self._rule.key(use))
            return
        self._uses[item].again(now_ns, self._turn)
        self._in_hbm.discard(item)
        self._in_host.discard(item)
        if block.place is Place.EVICTING:
            # It is still there: the copy down is given up.
            self._blocks[item] = block = exclusive.evict_failed(block)
            self._host_used -= 1
            self._leaving -= 1
            del self._ends[item]
        if block.place is Place.HBM:
            self._in_hbm.add(self._uses[item], self._rule.key(self._uses[item]))
        elif block.place is Place.HOST:
            self._blocks[item] = exclusive.promote(block)
            self._hbm_used += 1
            self._copy(item, now_ns)

    def _make_room(self, now_ns: int) -> None:
        """Let the least recent blocks leave HBM until what stays fits, as far as blocks may leave."""
        while self._hbm_used - self._leaving > self._hbm_blocks and len(self._in_hbm):
            item = self._in_hbm.pop(now_ns)
            if self._host_blocks and self._host_room(now_ns):
                self._blocks[item] = exclusive.evict(self._blocks[item])
                self._host_used += 1
                self._leaving += 1
                self._copy(item, now_ns)
            else:
                self._forget(item)
                self._hbm_used -= 1

    def _host_room(self, now_ns: int) -> bool:
        """Free a host slot if none is; False when all that is there is being copied."""
        if self._host_used < self._host_blocks:
            return True
        if not len(self._in_host):
            return False
        self._forget(self._in_host.pop(now_ns))
        self._host_used -= 1
        return True

    def _copy(self, item: int, now_ns: int) -> None:
        """Begin a copy; one that takes no time is acknowledged at once."""
        self._ends[item] = now_ns + self._copy_ns
        if self._copy_ns:
            heapq.heappush(self._copies, (self._ends[item], item))
        else:
            self._copied(item)

    def _acknowledge(self, now_ns: int) -> None:
        """Take in the copies that have ended."""
        while self._copies and self._copies[0][0] <= now_ns:
            end, item = heapq.heappop(self._copies)
            # A copy that was given up left its end behind.
            if self._ends.get(item) == end:
                self._copied(item)

    def _copied(self, item: int) -> None:
        del self._ends[item]
        block = self._blocks[item]
        if block.place is Place.LOADING:
            self._blocks[item] = exclusive.loaded(block)
            self._host_used -= 1
            self._in_hbm.add(self._uses[item], self._rule.key(self._uses[item]))
        else:
            self._blocks[item] = exclusive.evicted(block)
            self._hbm_used -= 1
            self._leaving -= 1
            self._in_host.add(self._uses[item], self._rule.key(self._uses[item]))

    def _forget(self, item: int) -> None:
        del self._blocks[item], self._uses[item]
