"""Requests as paths in the tree of all prefixes: equal blocks after equal prefixes are one node."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.sim.workloads.request import Workload


@dataclass(frozen=True, slots=True)
class Paths:
    """A workload for prefix caches. Nodes are numbered from 0 in order of their first request."""

    nodes: Sequence[Sequence[int]]
    """Of each request, in order of arrival, its nodes from the root on."""
    parents: Sequence[int]
    """Of each node; -1: it begins a prompt."""
    prompt_tokens: Sequence[int]
    arrivals_ns: Sequence[int]
    groups: Sequence[str]
    """Class of each request."""
    block_tokens: int

    def hit_tokens(self, request: int, hit_blocks: int) -> int:
        """Return the tokens of a request's first blocks; its last block may be partial."""
        return min(hit_blocks * self.block_tokens, self.prompt_tokens[request])


def paths_of(workload: Workload) -> Paths:
    """Return the paths of a workload.

    Raises:
        ValueError: when no request says which prefix blocks it has.
    """
    children: dict[tuple[int, int], int] = {}
    parents: list[int] = []
    nodes: list[list[int]] = []
    for request in workload.requests:
        at = -1
        path: list[int] = []
        for block in request.blocks:
            edge = (at, block)
            node = children.get(edge, -1)
            if node < 0:
                node = children[edge] = len(parents)
                parents.append(at)
            path.append(node)
            at = node
        nodes.append(path)
    if not parents:
        raise ValueError(
            f"{workload.source} has no prefix blocks, so no cache can hit; use a trace with hash_ids"
        )
    return Paths(
        nodes,
        parents,
        [request.prompt_tokens for request in workload.requests],
        [request.arrival_ns for request in workload.requests],
        [request.slo_class for request in workload.requests],
        workload.block_tokens,
    )
