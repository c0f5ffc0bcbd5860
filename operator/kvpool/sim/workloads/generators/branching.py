"""Agents that sometimes go back: a turn continues the last one, or an earlier one, and branches off.

kvpool's own generator for re-running "HiState" (arXiv 2610.41508, read second hand: its workload is not
published). Searching agents, retries and edited messages branch; logs of coding agents mostly append.
"""

from dataclasses import asdict, dataclass

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.generators.provenance import CHUNK_TOKENS, made
from kvpool.sim.workloads.request import Request, Workload


@dataclass(frozen=True, slots=True)
class Branching:
    """Parameters of the sessions."""

    sessions: int = 300
    seconds: float = 3600.0
    """Sessions start evenly spread over this time."""
    revisit: float = 0.05
    """Chance that a turn goes back to an earlier turn of its session instead of the last."""
    turns: int = 30
    """Of each session."""
    think_seconds: float = 20.0
    """Mean time from the end of a turn to the next."""
    groups: int = 8
    tool_chunks: int = 16
    """Shared by the sessions of a group."""
    fewest_new_chunks: int = 1
    most_new_chunks: int = 8
    """Added by each turn, answer included."""
    output_tokens: int = 300
    turn_seconds: float = 10.0
    """Taken for the length of a turn where its time on the clock is told; a simulation has its own."""


def branching(parameters: Branching, seed: int) -> Workload:
    """Make the sessions, each from a stream of its own; its group is the client."""
    root = Stream(seed).split("branching")
    chunks = _Chunks(parameters.groups * parameters.tool_chunks)
    requests: list[Request] = []
    for session in range(parameters.sessions):
        requests += _session(parameters, session, root.split(session), chunks)
    return made("branching", asdict(parameters), seed, requests)


class _Chunks:
    """Hands out chunk numbers that were not there before."""

    def __init__(self, first: int) -> None:
        self._next = first

    def more(self, count: int) -> tuple[int, ...]:
        self._next += count
        return tuple(range(self._next - count, self._next))


def _session(parameters: Branching, session: int, stream: Stream, chunks: _Chunks) -> list[Request]:
    group = session % parameters.groups
    tools = tuple(range(group * parameters.tool_chunks, (group + 1) * parameters.tool_chunks))
    contexts = [tools]
    now = stream.uniform() * parameters.seconds
    think = -1.0
    requests = []
    for turn in range(parameters.turns):
        grown = parameters.fewest_new_chunks + stream.below(
            parameters.most_new_chunks - parameters.fewest_new_chunks + 1
        )
        # The tools alone are no turn to go back to.
        goes_back = turn > 1 and stream.uniform() < parameters.revisit
        base = contexts[1 + stream.below(turn - 1)] if goes_back else contexts[-1]
        context = base + chunks.more(grown)
        contexts.append(context)
        requests.append(
            Request(
                round(now * NS_PER_SECOND),
                len(context) * CHUNK_TOKENS,
                parameters.output_tokens,
                context,
                client=f"tools-{group}",
                session=session,
                think_ns=-1 if turn == 0 else round(think * NS_PER_SECOND),
            )
        )
        think = stream.exponential(parameters.think_seconds)
        now += parameters.turn_seconds + think
    return requests
