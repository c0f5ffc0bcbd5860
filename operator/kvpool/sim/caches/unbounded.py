"""The hit rate of a cache that never evicts: no rule at no capacity does better."""

from collections.abc import Sequence

from kvpool.sim.caches.paths import Paths


def ceiling_hits(paths: Paths) -> Sequence[int]:
    """Return the blocks that each request finds when nothing ever left."""
    newest = -1
    hits: list[int] = []
    for path in paths.nodes:
        # Nodes are numbered in order of their first request: those seen before are a prefix of the path.
        known = sum(1 for node in path if node <= newest)
        hits.append(known)
        if known < len(path):
            newest = path[-1]
    return hits


def nodes_before(paths: Paths, request: int) -> int:
    """Return how many distinct blocks the requests before this one have."""
    return 1 + max((path[-1] for path in paths.nodes[:request] if path), default=-1)
