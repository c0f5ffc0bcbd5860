"""KV hand-offs between the prefill and the decode half of a fabric: arrivals, prefill queues, sizes, ends."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.fabric.topology import LeafSpine
from kvpool.sim.streams import Stream


@dataclass(frozen=True, slots=True)
class Transfer:
    """One hand-off: a request arrives, is prefilled, and its KV goes to a decode host."""

    source: int
    destination: int
    size_bytes: int
    arrived_ns: int
    ready_ns: int
    """When prefill is done and the hand-off begins."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the prefill half is asked to do."""

    percent: int
    """Bytes handed off, of what the cards of the prefill hosts can send."""
    mean_bytes: int
    """Sizes are exponential: lengths of prompts vary about as much as their mean."""
    count: int
    prefill_ns_per_mebibyte: int
    """Time that one host takes to prefill the prompt behind a MiB of KV, one at a time. 0: no queue."""


def transfers(fabric: LeafSpine, load: Load, stream: Stream) -> Sequence[Transfer]:
    """Draw hand-offs from the first half of the leaves to the second, in the order in which they begin.

    Poisson arrivals over the whole half, each at a random host of it, to a random host of the other.
    """
    senders = (fabric.leaves // 2) * fabric.hosts_per_leaf
    receivers = fabric.hosts - senders
    gap_ns = 100.0 * load.mean_bytes * NS_PER_SECOND / (load.percent * senders * fabric.nic_bytes_per_second)
    arrivals, sizes = stream.split("arrivals"), stream.split("sizes")
    sources, destinations = stream.split("sources"), stream.split("destinations")
    free_ns = [0] * senders
    clock = 0.0
    drawn = []
    for _ in range(load.count):
        clock += arrivals.exponential(gap_ns)
        size = max(1, round(sizes.exponential(load.mean_bytes)))
        source = sources.below(senders)
        arrived = round(clock)
        ready = max(arrived, free_ns[source]) + load.prefill_ns_per_mebibyte * size // (1 << 20)
        free_ns[source] = ready if load.prefill_ns_per_mebibyte else 0
        drawn.append(Transfer(source, senders + destinations.below(receivers), size, arrived, ready))
    return sorted(drawn, key=lambda transfer: transfer.ready_ns)
