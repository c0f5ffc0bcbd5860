"""Questions about documents of which a few are asked about often.

kvpool's own generator for re-running "Where Should the KV Cache Live?" (arXiv 2609.16215, read second hand).
"""

from bisect import bisect_right
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.generators.provenance import CHUNK_TOKENS, made
from kvpool.sim.workloads.request import Request, Workload


@dataclass(frozen=True, slots=True)
class Documents:
    """Parameters of the questions. The question itself is shorter than a chunk and is not kept."""

    documents: int = 2000
    zipf: float = 0.9
    """The document of rank r is asked about in proportion to `r^-zipf`."""
    fewest_chunks: int = 8
    most_chunks: int = 32
    per_second: float = 6.0
    """Poisson."""
    seconds: float = 1800.0
    output_tokens: int = 128


def documents(parameters: Documents, seed: int) -> Workload:
    """Make the questions."""
    root = Stream(seed).split("documents")
    sizes, arrivals, picks = root.split("sizes"), root.split("arrivals"), root.split("picks")
    spread = parameters.most_chunks - parameters.fewest_chunks + 1
    starts = [0]
    for _ in range(parameters.documents):
        starts.append(starts[-1] + parameters.fewest_chunks + sizes.below(spread))
    contexts = [tuple(range(first, after)) for first, after in pairwise(starts)]
    weights = list(accumulate(rank**-parameters.zipf for rank in range(1, parameters.documents + 1)))
    requests: list[Request] = []
    now = arrivals.exponential(1.0 / parameters.per_second)
    while now < parameters.seconds:
        picked = bisect_right(weights, picks.uniform() * weights[-1])
        context = contexts[min(picked, parameters.documents - 1)]
        tokens = len(context) * CHUNK_TOKENS
        requests.append(Request(round(now * NS_PER_SECOND), tokens, parameters.output_tokens, context))
        now += arrivals.exponential(1.0 / parameters.per_second)
    return made("documents", asdict(parameters), seed, requests)
