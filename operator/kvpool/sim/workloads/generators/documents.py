"""Questions about documents of which a few are asked about often.

kvpool's own generator for re-running "Where Should the KV Cache Live?" (arXiv 2609.16215, read second hand).
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from typing import Annotated

from pydantic import Field

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.generators.bounds import Chunks, Count, Rate, Span, Tokens, in_order
from kvpool.sim.workloads.generators.provenance import CHUNK_TOKENS, made
from kvpool.sim.workloads.reading import MOST_BLOCKS
from kvpool.sim.workloads.request import Request, Workload


@dataclass(frozen=True, slots=True)
class Documents:
    """Parameters of the questions. The question itself is shorter than a chunk and is not kept."""

    documents: Count = 2000
    zipf: Annotated[float, Field(ge=0, le=20)] = 0.9
    """The document of rank r is asked about in proportion to `r^-zipf`."""
    fewest_chunks: Chunks = 8
    most_chunks: Chunks = 32
    per_second: Rate = 6.0
    """Poisson."""
    seconds: Span = 1800.0
    output_tokens: Tokens = 128

    def __post_init__(self) -> None:
        in_order("fewest_chunks", self.fewest_chunks, "most_chunks", self.most_chunks)
        if self.documents * self.most_chunks > MOST_BLOCKS:
            raise ValueError(
                f"{self.documents} documents of up to {self.most_chunks} chunks are more than the "
                f"{MOST_BLOCKS} that fit into memory: ask for less"
            )


def documents(parameters: Documents, seed: int) -> Workload:
    """Make the questions."""
    root = Stream(seed).split("documents")
    return made("documents", asdict(parameters), seed, _requests(parameters, root))


def _requests(parameters: Documents, root: Stream) -> Iterator[Request]:
    sizes, arrivals, picks = root.split("sizes"), root.split("arrivals"), root.split("picks")
    spread = parameters.most_chunks - parameters.fewest_chunks + 1
    starts = [0]
    for _ in range(parameters.documents):
        starts.append(starts[-1] + parameters.fewest_chunks + sizes.below(spread))
    contexts = [tuple(range(first, after)) for first, after in pairwise(starts)]
    weights = list(accumulate(rank**-parameters.zipf for rank in range(1, parameters.documents + 1)))
    now = arrivals.exponential(1.0 / parameters.per_second)
    while now < parameters.seconds:
        picked = bisect_right(weights, picks.uniform() * weights[-1])
        context = contexts[min(picked, parameters.documents - 1)]
        tokens = len(context) * CHUNK_TOKENS
        yield Request(round(now * NS_PER_SECOND), tokens, parameters.output_tokens, context)
        now += arrivals.exponential(1.0 / parameters.per_second)
