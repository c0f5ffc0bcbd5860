"""Where a made workload is from: its generator, parameters and seed, and their checksum."""

import hashlib
from collections.abc import Iterable, Mapping

from kvpool.sim.workloads.reading import MOST_BLOCKS, MOST_REQUESTS
from kvpool.sim.workloads.request import Request, Workload

CHUNK_TOKENS = 512


def made(name: str, parameters: Mapping[str, object], seed: int, requests: Iterable[Request]) -> Workload:
    """Return the requests, in order of arrival, as a workload of 512-token chunks.

    Requests of the same moment stay in the order given. They are taken one by one.

    Raises:
        ValueError: when there are none, or more than fit into memory.
    """
    settings = sorted(parameters.items())
    source = f"{name} {', '.join(f'{key} {value}' for key, value in settings)}, seed {seed}"
    checksum = hashlib.sha256(repr((name, settings, seed)).encode()).hexdigest()
    ordered = sorted(held(name, requests), key=lambda request: request.arrival_ns)
    return Workload(tuple(ordered), CHUNK_TOKENS, source, checksum)


def held(name: str, requests: Iterable[Request]) -> list[Request]:
    """Return the requests of a generator, taken one by one.

    Raises:
        ValueError: when there are none, or more than fit into memory.
    """
    listed: list[Request] = []
    blocks = 0
    for request in requests:
        listed.append(request)
        blocks += len(request.blocks)
        if len(listed) > MOST_REQUESTS or blocks > MOST_BLOCKS:
            raise ValueError(
                f"{name} makes {len(listed)} requests with {blocks} prefix blocks and more; at most "
                f"{MOST_REQUESTS} requests with {MOST_BLOCKS} blocks fit into memory: ask for less"
            )
    if not listed:
        raise ValueError(f"{name} makes no request with these parameters: give it more time, or more to do")
    return listed
