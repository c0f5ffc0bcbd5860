"""The memories of a fleet's instances with the tiers below them, and what brings prefixes up.

What lies in a lower tier is brought up when that is faster than to compute it again; all ways up that it
crosses are shared with whatever else crosses them. A prompt waits for it without holding up others.
"""

from collections.abc import Callable, Sequence

from kvpool.plan.placement.eviction import EvictionRule
from kvpool.plan.tiers.breakeven import load_wins_from_tokens
from kvpool.plan.timing.model import TimingModel
from kvpool.sim.events import Agenda, Kind
from kvpool.sim.instances.job import Job
from kvpool.sim.prefixes.hierarchy import Hierarchy
from kvpool.sim.prefixes.idle import RecencyOrder, RuledOrder, StoredOrder, UseBook
from kvpool.sim.prefixes.resident import ResidentPrefixes
from kvpool.sim.prefixes.store import PrefixStore
from kvpool.sim.serving.design import InstanceSpec, TierSpec
from kvpool.sim.serving.run import LinkUse
from kvpool.sim.serving.views import Clock


class Memories:
    """The hierarchy of each instance that computes prompts."""

    def __init__(
        self,
        specs: Sequence[InstanceSpec],
        tiers: Sequence[TierSpec],
        block_tokens: int,
        make_eviction: Callable[[], EvictionRule] | None,
        clock: Clock,
    ) -> None:
        self.hierarchies: list[Hierarchy] = []
        self.stores: list[PrefixStore] = []
        """Each once, a shared one too."""
        self._names: list[str] = []
        self._block_tokens = block_tokens
        shared: dict[int, PrefixStore] = {}

        def order_by(book: UseBook | None, *, top: bool) -> StoredOrder:
            return RecencyOrder() if book is None else RuledOrder(book, top=top)

        def new_book() -> UseBook | None:
            return UseBook(make_eviction(), clock) if make_eviction is not None else None

        for place, spec in enumerate(specs):
            book = new_book()
            stores: list[PrefixStore] = []
            heir: Callable[[int], None] | None = None
            for level in range(len(tiers) - 1, -1, -1):
                tier = tiers[level]
                store = shared.get(level)
                if store is None:
                    blocks = tier.capacity_tokens // block_tokens
                    is_exclusive = not tier.is_shared
                    # What is shared is told of every use of every instance: it has a book of its own.
                    order = order_by(new_book(), top=True) if tier.is_shared else order_by(book, top=False)
                    store = PrefixStore(tier.tier, blocks, tier.link, order, heir, is_exclusive=is_exclusive)
                    self.stores.append(store)
                    self._names.append(tier.tier.name + ("" if tier.is_shared else f"-{place}"))
                    if tier.is_shared:
                        shared[level] = store
                # What a shared tier gets a copy of at once needs none when it is evicted.
                heir = None if tier.is_shared else store.put
                stores.insert(0, store)
            on_top = None if book is None else RuledOrder(book, top=True)
            device = ResidentPrefixes(spec.capacity_tokens, block_tokens, heir, on_top)
            self.hierarchies.append(Hierarchy(device, stores))

    def links(self) -> dict[str, LinkUse]:
        """What the ways up have carried."""
        return {
            name: LinkUse(store.inbound.moved_bytes, store.inbound.busy_ns)
            for name, store in zip(self._names, self.stores, strict=True)
        }

    def demoted_bytes(self, bytes_per_token: int) -> dict[str, int]:
        """What was written to each tier by the tier above it."""
        size = self._block_tokens * bytes_per_token
        return {
            name: store.demoted_blocks * size for name, store in zip(self._names, self.stores, strict=True)
        }

    def lower_tokens(self) -> dict[str, int]:
        """What each lower tier holds, over all instances."""
        return self._by_tier(len)

    def lower_capacity_tokens(self) -> dict[str, int]:
        """What fits in each lower tier, over all instances."""
        return self._by_tier(lambda store: store.capacity_blocks)

    def _by_tier(self, blocks: Callable[[PrefixStore], int]) -> dict[str, int]:
        summed: dict[str, int] = {}
        for store in sorted(self.stores, key=lambda store: store.tier):
            tokens = blocks(store) * self._block_tokens
            summed[store.tier.name] = summed.get(store.tier.name, 0) + tokens
        return summed

    def unique_share(self) -> float:
        """Distinct blocks over resident blocks, at this moment; 1 when nothing is resident."""
        everywhere: set[int] = set()
        resident = 0
        for hierarchy in self.hierarchies:
            held = hierarchy.device.blocks()
            resident += len(held)
            everywhere.update(held)
        for store in self.stores:
            resident += len(store)
            everywhere.update(store.blocks())
        return len(everywhere) / resident if resident else 1.0


class BringUp:
    """Brings prefixes up from lower tiers."""

    def __init__(self, memories: Memories, bytes_per_token: int, agenda: Agenda, clock: Clock) -> None:
        self._memories = memories
        self._bytes_per_token = bytes_per_token
        self._agenda = agenda
        self._clock = clock
        self._number = {id(store): number for number, store in enumerate(memories.stores)}
        self._ways: dict[int, list[tuple[int, int]]] = {}
        self._jobs: dict[int, Job] = {}
        self._thresholds: dict[tuple[int, int], int | None] = {}

    def begin(self, job: Job, place: int, timing: TimingModel) -> None:
        """Bring up what lies below the instance at that place, when that is faster than computing it."""
        hierarchy = self._memories.hierarchies[place]
        if not hierarchy.stores or job.number in self._jobs:
            # Also one that began again while its prefix was on its way to an instance that died.
            return
        size = hierarchy.device.block_tokens
        found = hierarchy.find(job.blocks[: (job.prompt_tokens - 1) // size])
        ways = hierarchy.crossings(found)
        if not ways:
            return
        deepest = max(place for place, _ in ways)
        threshold = self._threshold(place, timing, hierarchy.stores[deepest])
        if threshold is None or sum(found.lower_blocks) * size < threshold:
            return
        job.brought_tokens = found.blocks * size
        job.deepest = hierarchy.deepest(found)
        job.loaded = {
            store.tier: blocks * size
            for store, blocks in zip(hierarchy.stores, found.lower_blocks, strict=True)
            if blocks
        }
        job.loads_left = len(ways)
        self._jobs[job.number] = job
        self._ways[job.number] = [
            (self._number[id(hierarchy.stores[level])], blocks * size * self._bytes_per_token)
            for level, blocks in ways
        ]
        setup_ns = sum(hierarchy.stores[level].link.setup_ns for level, _ in ways)
        self._agenda.at(self._clock.now_ns + setup_ns, Kind.LOAD_SETUP, job.number)

    def on_setup(self, number: int) -> None:
        """Its transfers begin."""
        for store, count_bytes in self._ways.pop(number):
            inbound = self._memories.stores[store].inbound
            inbound.join(self._clock.now_ns, number, count_bytes)
            self._plan(store)

    def on_load(self, store: int) -> list[Job]:
        """A transfer has ended. Returns the requests whose whole prefix is up now."""
        ready: list[Job] = []
        for number in self._memories.stores[store].inbound.take(self._clock.now_ns):
            job = self._jobs[number]
            job.loads_left -= 1
            if not job.loads_left:
                del self._jobs[number]
                ready.append(job)
        self._plan(store)
        return ready

    def _plan(self, store: int) -> None:
        due = self._memories.stores[store].inbound.due_ns()
        if due is not None:
            self._agenda.at(due, Kind.LOAD, store)

    def _threshold(self, place: int, timing: TimingModel, store: PrefixStore) -> int | None:
        key = (place, self._number[id(store)])
        if key not in self._thresholds:
            self._thresholds[key] = load_wins_from_tokens(timing, self._bytes_per_token, store.link)
        return self._thresholds[key]
