"""Belady's rule for prefixes: the blocks whose next use is nearest are kept, the bound of every rule.

A block whose next use is farther than that of all that is kept is not even admitted. A parent's next use is
never later than its child's, so the farthest block is a leaf. Blocks with the same next request are
neighbours on its path, so the cache is one count for each request to come; of a request's blocks those
nearest to the root are kept. Blocks that never come back are left out, for they are the first to leave.
kvpool's own derivation.
"""

import heapq
from collections.abc import Sequence

from kvpool.sim.caches.paths import Paths

Runs = Sequence[Sequence[tuple[int, int]]]
"""Of each request: (next request, how many of its blocks that one is the next to use), from the root on."""


def next_uses(paths: Paths) -> Runs:
    """Return when the blocks of each request are used next; blocks that never are have no run."""
    following = [-1] * len(paths.parents)
    runs: list[list[tuple[int, int]]] = []
    for request in range(len(paths.nodes) - 1, -1, -1):
        path = paths.nodes[request]
        found: list[tuple[int, int]] = []
        depth = 0
        while depth < len(path) and (after := following[path[depth]]) >= 0:
            end = depth + 1
            while end < len(path) and following[path[end]] == after:
                end += 1
            found.append((after, end - depth))
            depth = end
        for node in path:
            following[node] = request
        runs.append(found)
    runs.reverse()
    return runs


def farthest_hits(runs: Runs, capacity_blocks: int) -> Sequence[int]:
    """Return the blocks that each request finds from its start on."""
    kept = [0] * len(runs)
    held = 0
    far: list[int] = []
    hits: list[int] = []
    for request, following in enumerate(runs):
        hits.append(kept[request])
        held -= kept[request]
        kept[request] = 0
        for after, count in following:
            if not kept[after]:
                heapq.heappush(far, -after)
            kept[after] += count
            held += count
        while held > capacity_blocks:
            after = -far[0]
            over = held - capacity_blocks
            if kept[after] > over:
                kept[after] -= over
                held = capacity_blocks
            else:
                held -= kept[after]
                kept[after] = 0
                heapq.heappop(far)
    return hits
