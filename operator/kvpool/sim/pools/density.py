"""The same log with more or fewer requests, so that pools of any size can be put under a load that tells."""

from dataclasses import replace

from kvpool.sim.streams import Stream
from kvpool.sim.workloads.request import Workload


def with_density(workload: Workload, factor: float, seed: int) -> Workload:
    """Return the workload with `factor` times as many arrivals a second.

    Below 1 requests are left out, each by a draw of its own: bursts stay as long as they were, and what is
    left out at one factor is left out at every smaller one. Above 1 all times are divided by the factor.
    """
    if factor > 1:
        requests = tuple(
            replace(request, arrival_ns=round(request.arrival_ns / factor)) for request in workload.requests
        )
    else:
        draws = Stream(seed).split("density")
        requests = tuple(
            request
            for number, request in enumerate(workload.requests)
            if draws.split(number).uniform() < factor
        )
    return replace(workload, requests=requests, source=f"{workload.source}, arrivals x{factor:.4g}")


def alone(workload: Workload) -> Workload:
    """Return the workload with every request on its own: none waits for one before it, no prefix is shared.

    Raises:
        ValueError: when requests of a session say only how long after the one before they come.
    """
    waiting = [request for request in workload.requests if request.think_ns >= 0 and request.arrival_ns <= 0]
    if len(waiting) > len(workload.requests) // 2:
        raise ValueError(
            f"{workload.source}: {len(waiting)} of {len(workload.requests)} requests come after another one "
            "has ended, so how many come a second is not the log's to say; give a log with times of arrival"
        )
    requests = tuple(replace(one, blocks=(), session=-1, think_ns=-1) for one in workload.requests)
    return replace(workload, requests=requests)


def parts(workload: Workload, count: int) -> tuple[Workload, ...]:
    """Return the workload in so many parts of equal length, one after the other, each beginning at time 0."""
    size = len(workload.requests) // count
    made = []
    for place in range(count):
        piece = workload.requests[place * size : (place + 1) * size]
        begin = piece[0].arrival_ns if piece else 0
        moved = tuple(replace(request, arrival_ns=request.arrival_ns - begin) for request in piece)
        made.append(
            replace(workload, requests=moved, source=f"{workload.source}, part {place + 1} of {count}")
        )
    return tuple(made)
