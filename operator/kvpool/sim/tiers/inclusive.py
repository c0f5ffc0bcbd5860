"""Tiers that each keep a copy of their own: what is used enters all of them, and each lets go by itself."""

from collections.abc import Sequence

from kvpool.plan.placement.eviction import NEVER, EvictionRule, Use
from kvpool.plan.placement.residents import Residents
from kvpool.sim.tiers.accesses import Access
from kvpool.sim.tiers.flows import Flows, no_flows


class InclusiveTiers:
    """Fixed tiers with copies, each under the same eviction rule, written through at the first use.

    What a tier lets go is dropped there, for the tier below has its own copy. `capacities` are in objects,
    from the top. `refresh_below`: a use of the copy at the top counts below too; then a tier adds nothing to
    a larger one above it. Otherwise lower tiers see only what the ones above did not have, and their
    contents differ.
    """

    def __init__(self, capacities: Sequence[int], rule: EvictionRule, *, refresh_below: bool = True) -> None:
        self.flows: Flows = no_flows(len(capacities))
        self._capacities = list(capacities)
        self._rule = rule
        self._refresh_below = refresh_below
        self._residents = [Residents(rule) for _ in capacities]
        self._uses: dict[int, Use] = {}
        self._turn = 0

    def access(self, access: Access) -> None:
        """Serve one request."""
        tiers = range(len(self._capacities))
        now = access.now_ns
        deepest = 0
        self.flows.prefix += self._prefix(access.objects)
        # Of one request the tail leaves before the head.
        for index in range(len(access.objects) - 1, -1, -1):
            item = access.objects[index]
            after = access.next_ns[index] if access.next_ns else NEVER
            self._turn += 1
            found = next((tier for tier in tiers if item in self._residents[tier]), -1)
            if found < 0:
                self.flows.first += 1
                deepest = len(self._capacities)
                use = self._uses[item] = Use(item, now, self._turn, next_ns=after, group=access.group)
                for flow in self.flows.boundaries:
                    flow.demoted_once_used += 1
            else:
                self.flows.found[found] += 1
                deepest = max(deepest, found)
                use = self._uses[item]
                use.again(now, self._turn, after)
                for boundary in range(found):
                    self.flows.boundaries[boundary].promoted += 1
            key = self._rule.key(use)
            seen = tiers if found < 0 or self._refresh_below else range(found + 1)
            for tier in seen:
                self._residents[tier].add(use, key)
        self.flows.deepest[deepest] += 1
        for residents, capacity in zip(self._residents, self._capacities, strict=True):
            while len(residents) > capacity:
                gone = residents.pop(now)
                if not any(gone in other for other in self._residents):
                    del self._uses[gone]
                    self.flows.dropped += 1

    def _prefix(self, items: Sequence[int]) -> int:
        for count, item in enumerate(items):
            if self.tier_of(item) < 0:
                return count
        return len(items)

    def finish(self) -> Flows:
        """Return the counts, with what is resident now."""
        self.flows.resident = sum(len(residents) for residents in self._residents)
        self.flows.unique = len(self._uses)
        return self.flows

    def tier_of(self, item: int) -> int:
        """Return the highest tier that holds an object; -1: none does."""
        return next((tier for tier, held in enumerate(self._residents) if item in held), -1)

    def used(self, tier: int) -> int:
        """Return how many objects a tier holds."""
        return len(self._residents[tier])
