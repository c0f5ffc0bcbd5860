"""A prefix cache under any eviction rule: blocks leave leaf first, the one with the smallest key of the
leaves."""

from collections.abc import Sequence

from kvpool.plan.placement.eviction import NEVER, EvictionRule, Use
from kvpool.plan.placement.residents import Residents
from kvpool.sim.caches.paths import Paths


def ruled_hits(paths: Paths, rule: EvictionRule, capacity_blocks: int) -> Sequence[int]:
    """Return the blocks that each request finds from its start on.

    Afterwards its whole path is in the cache, and leaves go, by the rule, until it fits again; blocks of the
    request itself may be among them. A block that left is forgotten, so its uses count from one again.
    """
    cache = _Tree(paths, rule)
    following = _following(paths)
    hits: list[int] = []
    for request, path in enumerate(paths.nodes):
        hits.append(cache.use(path, request, following[request]))
        cache.shrink(capacity_blocks, paths.arrivals_ns[request])
    return hits


class _Tree:
    """What is cached, with the leaves apart."""

    def __init__(self, paths: Paths, rule: EvictionRule) -> None:
        self._paths = paths
        self._rule = rule
        self._leaves = Residents(rule)
        self._uses: dict[int, Use] = {}
        self._keys: dict[int, tuple[float, ...]] = {}
        self._children = [0] * len(paths.parents)
        self._turn = 0

    def use(self, path: Sequence[int], request: int, next_ns: Sequence[int]) -> int:
        """Put the path into the cache; return how many of its blocks were there."""
        now = self._paths.arrivals_ns[request]
        group = self._paths.groups[request]
        uses, children, parents = self._uses, self._children, self._paths.parents
        found = 0
        # From last to first, so that of one request the tail is the least recent.
        for depth in range(len(path) - 1, -1, -1):
            node = path[depth]
            self._turn += 1
            known = uses.get(node)
            if known is None:
                known = uses[node] = Use(node, now, self._turn, next_ns=next_ns[depth], group=group)
                parent = parents[node]
                if parent >= 0:
                    children[parent] += 1
                    self._leaves.discard(parent)
            else:
                found += 1
                known.again(now, self._turn, next_ns[depth])
            key = self._keys[node] = self._rule.key(known)
            if not children[node]:
                self._leaves.add(known, key)
        return found

    def shrink(self, capacity_blocks: int, now_ns: int) -> None:
        """Let leaves go until the cache fits."""
        while len(self._uses) > capacity_blocks:
            node = self._leaves.pop(now_ns)
            del self._uses[node], self._keys[node]
            parent = self._paths.parents[node]
            if parent < 0:
                continue
            self._children[parent] -= 1
            if not self._children[parent]:
                self._leaves.add(self._uses[parent], self._keys[parent])


def _following(paths: Paths) -> Sequence[Sequence[int]]:
    """Return when each block of each request is used next: what an oracle knows."""
    after = [NEVER] * len(paths.parents)
    rows: list[list[int]] = []
    for request in range(len(paths.nodes) - 1, -1, -1):
        path = paths.nodes[request]
        rows.append([after[node] for node in path])
        for node in path:
            after[node] = paths.arrivals_ns[request]
    rows.reverse()
    return rows
