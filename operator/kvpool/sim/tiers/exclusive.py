"""Tiers that hold each object once: it moves to the top when it is used, and down when others need the
room."""

from collections.abc import Sequence

from kvpool.plan.placement.eviction import NEVER, EvictionRule, Key, Use
from kvpool.plan.placement.residents import Residents
from kvpool.sim.tiers.accesses import Access
from kvpool.sim.tiers.flows import Flows, no_flows


class ExclusiveTiers:
    """Fixed tiers under one eviction rule.

    A request's objects move to tier 0 from wherever they are, and stay there while it is served: room is made
    among the others. What the rule lets go moves to the next tier, which may push out another one; the last
    tier drops. `capacities` are in objects, from the top.
    """

    def __init__(self, capacities: Sequence[int], rule: EvictionRule) -> None:
        self.flows: Flows = no_flows(len(capacities))
        self._capacities = list(capacities)
        self._rule = rule
        self._residents = [Residents(rule) for _ in capacities]
        self._used = [0] * len(capacities)
        self._tier: dict[int, int] = {}
        self._uses: dict[int, Use] = {}
        self._keys: dict[int, Key] = {}
        self._pins: dict[int, int] = {}
        self._turn = 0

    def access(self, access: Access) -> None:
        """Serve one request."""
        deepest = 0
        now, group = access.now_ns, access.group
        self.flows.prefix += self._prefix(access.objects)
        # From last to first, so that of one request the tail leaves before the head.
        for index in range(len(access.objects) - 1, -1, -1):
            item = access.objects[index]
            after = access.next_ns[index] if access.next_ns else NEVER
            self._turn += 1
            found = self._tier.get(item, -1)
            if found < 0:
                self.flows.first += 1
                deepest = len(self._capacities)
                self._uses[item] = Use(item, now, self._turn, next_ns=after, group=group)
                self._used[0] += 1
            else:
                self.flows.found[found] += 1
                deepest = max(deepest, found)
                self._residents[found].discard(item)
                self._uses[item].again(now, self._turn, after)
                for boundary in range(found):
                    self.flows.boundaries[boundary].promoted += 1
                self._used[found] -= 1
                self._used[0] += 1
            self._tier[item] = 0
        self.flows.deepest[deepest] += 1
        self._make_room(0, now)
        top, key_of = self._residents[0], self._rule.key
        for item in reversed(access.objects):
            use = self._uses[item]
            key = self._keys[item] = key_of(use)
            if item not in self._pins:
                top.add(use, key)
        # Only a request larger than the whole tier leaves something to do.
        self._make_room(0, now)

    def pin(self, objects: Sequence[int]) -> None:
        """Keep objects that were accessed just now at the top until as many `unpin` calls."""
        for item in objects:
            self._pins[item] = self._pins.get(item, 0) + 1
            self._residents[0].discard(item)

    def unpin(self, objects: Sequence[int], now_ns: int) -> None:
        """Let objects leave again, unless somebody else has pinned them too."""
        for item in reversed(objects):
            self._pins[item] -= 1
            if not self._pins[item]:
                del self._pins[item]
                self._residents[0].add(self._uses[item], self._keys[item])
        self._make_room(0, now_ns)

    @property
    def pinned(self) -> int:
        """How many objects are pinned."""
        return len(self._pins)

    def prefetch(self, objects: Sequence[int], now_ns: int) -> None:
        """Move objects of lower tiers up, as an oracle says they are needed soon.

        Objects that are at the top keep their place in the order, or this would be another eviction rule.
        What moves up counts as used last where a rule asks for that, but its uses and gaps stay as they are.
        """
        moved: list[int] = []
        for item in reversed(objects):
            found = self._tier.get(item, -1)
            if found <= 0:
                continue
            self._residents[found].discard(item)
            for boundary in range(found):
                self.flows.boundaries[boundary].prefetched += 1
            self._used[found] -= 1
            self._used[0] += 1
            self._tier[item] = 0
            moved.append(item)
        self._make_room(0, now_ns)
        for item in moved:
            use = self._uses[item]
            self._turn += 1
            use.turn = self._turn
            key = self._keys[item] = self._rule.key(use)
            self._residents[0].add(use, key)
        self._make_room(0, now_ns)

    def finish(self) -> Flows:
        """Return the counts, with what is resident now."""
        self.flows.resident = self.flows.unique = len(self._tier)
        return self.flows

    def tier_of(self, item: int) -> int:
        """Return the tier that holds an object; -1: none does."""
        return self._tier.get(item, -1)

    def used(self, tier: int) -> int:
        """Return how many objects a tier holds."""
        return self._used[tier]

    def _prefix(self, items: Sequence[int]) -> int:
        for count, item in enumerate(items):
            if item not in self._tier:
                return count
        return len(items)

    def _make_room(self, tier: int, now_ns: int) -> None:
        residents = self._residents[tier]
        while self._used[tier] > self._capacities[tier] and len(residents):
            item = residents.pop(now_ns)
            self._used[tier] -= 1
            if tier + 1 == len(self._capacities):
                self.flows.dropped += 1
                del self._tier[item], self._uses[item], self._keys[item]
                continue
            flow = self.flows.boundaries[tier]
            if self._uses[item].uses > 1:
                flow.demoted_reused += 1
            else:
                flow.demoted_once_used += 1
            self._tier[item] = tier + 1
            self._used[tier + 1] += 1
            self._residents[tier + 1].add(self._uses[item], self._keys[item])
            self._make_room(tier + 1, now_ns)
