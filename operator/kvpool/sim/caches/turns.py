"""Sessions before one prefill server with one memory: what the first tokens wait for."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.plan.placement.worth import Sizes
from kvpool.plan.timing.model import TimingModel
from kvpool.sim.caches.keepers import Keeper
from kvpool.sim.caches.paths import paths_of
from kvpool.sim.caches.strands import Strands
from kvpool.sim.workloads.request import Workload


@dataclass(frozen=True, slots=True)
class Server:
    """Prefills one prompt after the other, in order of arrival; answers are decoded elsewhere."""

    timing: TimingModel
    memory_bytes: int
    sizes: Sizes
    output_token_ns: int
    """Of one token of an answer; the next turn comes after the answer and the think time."""
    low_percent: int = 95
    """When the memory is full, it is emptied down to this share of it."""


@dataclass(frozen=True, slots=True)
class Served:
    """What came out."""

    ttft_ns: Sequence[int]
    """Of each request, in order of its first token."""
    prompt_tokens: int
    reused_tokens: int
    busy_ns: int
    span_ns: int

    def ttft_at(self, percent: float) -> int:
        """Return the time to first token that so many percent of the requests stay within."""
        ordered = sorted(self.ttft_ns)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def serve(workload: Workload, server: Server, keeper: Keeper) -> Served:
    """Serve every session: a turn comes a think time after the answer before it.

    Raises:
        ValueError: when the workload has no prefix blocks.
    """
    paths = paths_of(workload)
    strands = Strands(server.sizes, paths.block_tokens)
    turns: dict[int, list[int]] = {}
    for index, request in enumerate(workload.requests):
        turns.setdefault(request.session if request.session >= 0 else -2 - index, []).append(index)
    waiting = [(workload.requests[own[0]].arrival_ns, own[0], session, 0) for session, own in turns.items()]
    heapq.heapify(waiting)
    free_ns = busy_ns = prompt_tokens = reused_tokens = 0
    ttfts: list[int] = []
    while waiting:
        arrival_ns, index, session, turn = heapq.heappop(waiting)
        path = paths.nodes[index]
        tokens = len(path) * paths.block_tokens
        found = strands.match(path)
        start_ns = max(arrival_ns, free_ns)
        # At least the last token is computed, or there would be nothing to decode from.
        spent_ns = server.timing.prefill_ns(tokens, min(found.usable_tokens, tokens - 1))
        free_ns = start_ns + spent_ns
        busy_ns += spent_ns
        prompt_tokens += tokens
        reused_tokens += found.usable_tokens
        ttfts.append(free_ns - arrival_ns)
        strand = strands.put(path, found, session, free_ns)
        keeper.served(strands, found, strand, tokens, free_ns)
        _shrink(strands, server, keeper, free_ns)
        if turn + 1 < len(turns[session]):
            following = turns[session][turn + 1]
            answered_ns = free_ns + workload.requests[index].output_tokens * server.output_token_ns
            due_ns = answered_ns + max(0, workload.requests[following].think_ns)
            heapq.heappush(waiting, (due_ns, following, session, turn + 1))
    return Served(ttfts, prompt_tokens, reused_tokens, busy_ns, free_ns)


def _shrink(strands: Strands, server: Server, keeper: Keeper, now_ns: int) -> None:
    if strands.held_bytes <= server.memory_bytes:
        return
    target = server.memory_bytes * server.low_percent // 100
    while strands.held_bytes > target:
        before = strands.held_bytes
        keeper.shrink(strands, before - target, now_ns)
        if strands.held_bytes == before:
            return
