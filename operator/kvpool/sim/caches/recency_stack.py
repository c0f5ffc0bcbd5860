"""Recency for all capacities in one pass over the requests.

A cache of any capacity holds the top of one stack (Mattson et al., "Evaluation techniques for storage
hierarchies", IBM Systems Journal 1970): the blocks by latest request, within a request from the root on.
That holds for prefix hits because a request uses a path from the root, so a block is never more recent than
its parent: the least recent block is a leaf, and what is found is exactly the path's part in the top of the
stack.

Blocks whose latest request is the same are neighbours in the stack and in the tree, so the stack is kept as
one count for each request, in a Fenwick tree (Software: Practice and Experience, 1994): kvpool's own
derivation.
"""

from collections.abc import Sequence

from kvpool.sim.caches.paths import Paths


def recency_hits(paths: Paths, capacities_blocks: Sequence[int]) -> Sequence[Sequence[int]]:
    """Return, for each capacity, the blocks that each request finds from its start on.

    `capacities_blocks` ascend. A path longer than the cache keeps its first blocks.
    """
    latest = [-1] * len(paths.parents)
    stack = _Counts(len(paths.nodes))
    held = 0
    hits: list[list[int]] = [[0] * len(paths.nodes) for _ in capacities_blocks]
    for request, path in enumerate(paths.nodes):
        depth = 0
        length = len(path)
        fits = 0
        while depth < length and (run := latest[path[depth]]) >= 0:
            end = depth + 1
            while end < length and latest[path[end]] == run:
                end += 1
            # Blocks in newer runs, and those of this path that were taken out of the stack on the way here.
            above = held - stack.up_to(run) + depth
            while fits < len(capacities_blocks) and capacities_blocks[fits] < above + end - depth:
                hits[fits][request] = depth + max(0, capacities_blocks[fits] - above)
                fits += 1
            stack.add(run, depth - end)
            held -= end - depth
            depth = end
        for index in range(fits, len(capacities_blocks)):
            hits[index][request] = depth
        for node in path:
            latest[node] = request
        stack.add(request, length)
        held += length
    return hits


class _Counts:
    """Counts by index, with sums of the first ones, both in O(log n)."""

    __slots__ = ("_sums",)

    def __init__(self, size: int) -> None:
        self._sums = [0] * (size + 1)

    def add(self, index: int, count: int) -> None:
        sums = self._sums
        index += 1
        while index < len(sums):
            sums[index] += count
            index += index & -index

    def up_to(self, index: int) -> int:
        """Sum of the counts from 0 to the index, both within."""
        sums = self._sums
        index += 1
        total = 0
        while index:
            total += sums[index]
            index &= index - 1
        return total
