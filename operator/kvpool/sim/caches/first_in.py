"""First in, first out: the baseline that no prefix and no use matters to."""

from collections.abc import Sequence

from kvpool.sim.caches.paths import Paths

LONG_AGO = -(1 << 62)


def first_in_hits(paths: Paths, capacity_blocks: int) -> Sequence[int]:
    """Return the blocks that each request finds, from its start to the first one that is missing.

    Afterwards all its missing blocks are inserted, each in the place of the oldest. Blocks leave in the order
    of their insertion, so a block is there exactly if fewer than `capacity_blocks` came after it.
    """
    inserted = 0
    number = [LONG_AGO] * len(paths.parents)
    hits: list[int] = []
    for path in paths.nodes:
        hit = 0
        gone = inserted - capacity_blocks
        for node in path:
            if number[node] <= gone:
                break
            hit += 1
        hits.append(hit)
        for node in path[hit:]:
            if number[node] <= inserted - capacity_blocks:
                inserted += 1
                number[node] = inserted
    return hits
