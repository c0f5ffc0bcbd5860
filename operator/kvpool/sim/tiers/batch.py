"""One instance that decodes many sequences at once, and brings their prefixes up over one host link."""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.plan.placement.eviction import EvictionRule
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.tiers.accesses import accesses_of, distinct_objects
from kvpool.sim.tiers.exclusive import ExclusiveTiers
from kvpool.sim.tiers.flows import Flows
from kvpool.sim.workloads.request import Workload


@dataclass(frozen=True, slots=True)
class Instance:
    """What the instance has."""

    slots: int
    """Sequences that decode at once, at most."""
    hbm_one_in: int
    """HBM holds one in so many of the distinct chunks, DRAM eight times as many, the third tier the rest."""
    token_bytes: int
    timing: TimingModel
    link: LinkModel
    """Of both directions together: what is read for a turn, and what is moved down to make room."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out."""

    ttft_ns: Sequence[int]
    end_to_end_ns: Sequence[int]
    link_busy_share: float
    flows: Flows

    def ttft_at(self, percent: int) -> int:
        """Return the time to first token that so many percent of the turns stay within."""
        ordered = sorted(self.ttft_ns)
        return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]

    @property
    def mean_ttft_ns(self) -> float:
        """Mean time to first token."""
        return sum(self.ttft_ns) / len(self.ttft_ns)


def decode_in_batches(workload: Workload, instance: Instance, rule: EvictionRule) -> Outcome:
    """Serve a workload: a turn waits for a slot and room, then for its chunks on the link, then is decoded.

    The chunks of a running turn stay in HBM. The link serves one turn after the other. The time of a decode
    step is that of the batch which a turn joins.
    """
    accesses = accesses_of(workload)
    distinct = distinct_objects(accesses)
    longest = max(len(access.objects) for access in accesses)
    hbm = max(longest, distinct // instance.hbm_one_in)
    tiers = ExclusiveTiers([hbm, 8 * hbm, distinct], rule)
    chunk_bytes = workload.block_tokens * instance.token_bytes
    queue: deque[int] = deque()
    running: list[tuple[int, int]] = []
    ttfts, ends = [0] * len(accesses), [0] * len(accesses)
    kv_tokens = link_free_ns = link_busy_ns = now = 0
    upcoming = 0
    while upcoming < len(accesses) or queue or running:
        arrives = accesses[upcoming].now_ns if upcoming < len(accesses) else None
        if running and (arrives is None or running[0][0] <= arrives):
            now, done = heapq.heappop(running)
            tiers.unpin(accesses[done].objects, now)
            kv_tokens -= workload.requests[done].prompt_tokens
        elif arrives is not None:
            now = arrives
            queue.append(upcoming)
            upcoming += 1
        while queue and len(running) < instance.slots:
            turn = queue[0]
            access, request = accesses[turn], workload.requests[turn]
            if running and tiers.pinned + len(access.objects) > hbm:
                break
            queue.popleft()
            before, held = _moved(tiers.flows), tiers.flows.prefix
            tiers.access(access)
            tiers.pin(access.objects)
            moved_ns = instance.link.transfer_ns((_moved(tiers.flows) - before) * chunk_bytes)
            link_free_ns = max(link_free_ns, now) + moved_ns
            link_busy_ns += moved_ns
            hit = min((tiers.flows.prefix - held) * workload.block_tokens, request.prompt_tokens - 1)
            first_ns = max(now, link_free_ns if moved_ns else now)
            first_ns += instance.timing.prefill_ns(request.prompt_tokens, hit)
            kv_tokens += request.prompt_tokens
            step_ns = instance.timing.step_ns(len(running) + 1, kv_tokens)
            end_ns = first_ns + request.output_tokens * step_ns
            ttfts[turn] = first_ns - access.now_ns
            ends[turn] = end_ns - access.now_ns
            heapq.heappush(running, (end_ns, turn))
    return Outcome(ttfts, ends, link_busy_ns / max(1, now), tiers.finish())


def _moved(flows: Flows) -> int:
    """Chunks that crossed the HBM boundary so far."""
    return flows.boundaries[0].total
