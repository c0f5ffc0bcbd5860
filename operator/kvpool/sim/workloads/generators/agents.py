"""Agents that loop: the same tools before all their prompts, a private part that grows slowly, a steady beat.

kvpool's own generator for re-running "Where Should the KV Cache Live?" (arXiv 2609.16215, read second hand).
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.generators.bounds import (
    Chunks,
    Count,
    Share,
    SharedChunks,
    Span,
    Tokens,
    in_order,
)
from kvpool.sim.workloads.generators.provenance import CHUNK_TOKENS, made
from kvpool.sim.workloads.request import Request, Workload

PERIODS_SECONDS = (8.0, 10.0, 12.0)


@dataclass(frozen=True, slots=True)
class Agents:
    """Parameters of the loops. Each has a period of 8, 10 or 12 s."""

    loops: Count = 150
    seconds: Span = 1800.0
    jitter: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Each wait is the period, more or less by at most this share, evenly."""
    groups: Count = 8
    tool_chunks: SharedChunks = 16
    """Shared by all loops of a group."""
    fewest_private_chunks: Chunks = 4
    most_private_chunks: Chunks = 8
    growth: Share = 0.1
    """Chance that a turn adds a private chunk."""
    output_tokens: Tokens = 128

    def __post_init__(self) -> None:
        in_order(
            "fewest_private_chunks",
            self.fewest_private_chunks,
            "most_private_chunks",
            self.most_private_chunks,
        )


def agents(parameters: Agents, seed: int) -> Workload:
    """Make the loops, each from a stream of its own; a loop is a session, its group the client."""
    return made("agents", asdict(parameters), seed, _requests(parameters, Stream(seed).split("agents")))


def _requests(parameters: Agents, root: Stream) -> Iterator[Request]:
    shared = parameters.groups * parameters.tool_chunks
    chunks = shared
    for loop in range(parameters.loops):
        stream = root.split(loop)
        group = loop % parameters.groups
        tools = range(group * parameters.tool_chunks, (group + 1) * parameters.tool_chunks)
        spread = parameters.most_private_chunks - parameters.fewest_private_chunks + 1
        grown = parameters.fewest_private_chunks + stream.below(spread)
        context = tuple(tools)
        for arrival_ns in _beats(parameters, stream):
            context += tuple(range(chunks, chunks + grown))
            chunks += grown
            yield Request(
                arrival_ns,
                len(context) * CHUNK_TOKENS,
                parameters.output_tokens,
                context,
                client=f"tools-{group}",
                session=loop,
            )
            grown = int(stream.uniform() < parameters.growth)


def _beats(parameters: Agents, stream: Stream) -> Iterator[int]:
    period = PERIODS_SECONDS[stream.below(len(PERIODS_SECONDS))]
    now = stream.uniform() * period
    while now < parameters.seconds:
        yield round(now * NS_PER_SECOND)
        now += period * (1.0 + parameters.jitter * (2.0 * stream.uniform() - 1.0))
