"""Where a made workload is from: its generator, parameters and seed, and their checksum."""

import hashlib
from collections.abc import Iterable, Mapping

from kvpool.sim.workloads.request import Request, Workload

CHUNK_TOKENS = 512


def made(name: str, parameters: Mapping[str, object], seed: int, requests: Iterable[Request]) -> Workload:
    """Return the requests, in order of arrival, as a workload of 512-token chunks.

    Requests of the same moment stay in the order given.
    """
    settings = sorted(parameters.items())
    source = f"{name} {', '.join(f'{key} {value}' for key, value in settings)}, seed {seed}"
    checksum = hashlib.sha256(repr((name, settings, seed)).encode()).hexdigest()
    ordered = sorted(requests, key=lambda request: request.arrival_ns)
    return Workload(tuple(ordered), CHUNK_TOKENS, source, checksum)
