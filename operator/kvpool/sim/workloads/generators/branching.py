"""Agents that sometimes go back: a turn continues the last one, or an earlier one, and branches off.

kvpool's own generator for re-running "HiState" (arXiv 2610.41508, read second hand: its workload is not
published). Searching agents, retries and edited messages branch; logs of coding agents mostly append.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.generators.bounds import (
    Chunks,
    Count,
    Seconds,
    Share,
    SharedChunks,
    Span,
    Tokens,
    in_order,
)
from kvpool.sim.workloads.generators.provenance import CHUNK_TOKENS, made
from kvpool.sim.workloads.request import Request, Workload


@dataclass(frozen=True, slots=True)
class Branching:
    """Parameters of the sessions."""

    sessions: Count = 300
    seconds: Span = 3600.0
    """Sessions start evenly spread over this time."""
    revisit: Share = 0.05
    """Chance that a turn goes back to an earlier turn of its session instead of the last."""
    turns: Count = 30
    """Of each session."""
    think_seconds: Seconds = 20.0
    """Mean time from the end of a turn to the next."""
    groups: Count = 8
    tool_chunks: SharedChunks = 16
    """Shared by the sessions of a group."""
    fewest_new_chunks: Chunks = 1
    most_new_chunks: Chunks = 8
    """Added by each turn, answer included."""
    output_tokens: Tokens = 300
    turn_seconds: Seconds = 10.0
    """Taken for the length of a turn where its time on the clock is told; a simulation has its own."""

    def __post_init__(self) -> None:
        in_order("fewest_new_chunks", self.fewest_new_chunks, "most_new_chunks", self.most_new_chunks)


def branching(parameters: Branching, seed: int) -> Workload:
    """Make the sessions, each from a stream of its own; its group is the client."""
    root = Stream(seed).split("branching")
    return made("branching", asdict(parameters), seed, _requests(parameters, root))


def _requests(parameters: Branching, root: Stream) -> Iterator[Request]:
    chunks = _Chunks(parameters.groups * parameters.tool_chunks)
    for session in range(parameters.sessions):
        yield from _session(parameters, session, root.split(session), chunks)


class _Chunks:
    """Hands out chunk numbers that were not there before."""

    def __init__(self, first: int) -> None:
        self._next = first

    def more(self, count: int) -> tuple[int, ...]:
        self._next += count
        return tuple(range(self._next - count, self._next))


def _session(parameters: Branching, session: int, stream: Stream, chunks: _Chunks) -> Iterator[Request]:
    group = session % parameters.groups
    tools = tuple(range(group * parameters.tool_chunks, (group + 1) * parameters.tool_chunks))
    contexts = [tools]
    now = stream.uniform() * parameters.seconds
    think = -1.0
    for turn in range(parameters.turns):
        grown = parameters.fewest_new_chunks + stream.below(
            parameters.most_new_chunks - parameters.fewest_new_chunks + 1
        )
        # The tools alone are no turn to go back to.
        goes_back = turn > 1 and stream.uniform() < parameters.revisit
        base = contexts[1 + stream.below(turn - 1)] if goes_back else contexts[-1]
        context = base + chunks.more(grown)
        contexts.append(context)
        yield Request(
            round(now * NS_PER_SECOND),
            len(context) * CHUNK_TOKENS,
            parameters.output_tokens,
            context,
            client=f"tools-{group}",
            session=session,
            think_ns=-1 if turn == 0 else round(think * NS_PER_SECOND),
        )
        think = stream.exponential(parameters.think_seconds)
        now += parameters.turn_seconds + think
