"""People who chat: bursts of turns, then long silence, then back to the same conversation.

kvpool's own generator for re-running "Where Should the KV Cache Live?" (arXiv 2609.16215, read second hand:
its own generator is not published).
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.generators.bounds import Count, Mean, Seconds, Span, Tokens
from kvpool.sim.workloads.generators.provenance import CHUNK_TOKENS, made
from kvpool.sim.workloads.request import Request, Workload


@dataclass(frozen=True, slots=True)
class Chat:
    """Parameters of the conversations. A turn adds one or two chunks, with even chances."""

    users: Count = 4000
    hours: Span = 2.0
    """Users begin evenly over it; what would come later is left out."""
    bursts: Mean = 1.5
    """Mean of the returns after the first burst, exponential and rounded."""
    turns: Mean = 5.0
    """Mean of the turns after a burst's first, exponential and rounded."""
    think_seconds: Seconds = 40.0
    """Mean between the turns of a burst, exponential."""
    away_seconds: Seconds = 1800.0
    """Mean between two bursts, exponential."""
    output_tokens: Tokens = 256


def chat(parameters: Chat, seed: int) -> Workload:
    """Make the conversations, each user from a stream of its own; a user is a session."""
    return made("chat", asdict(parameters), seed, _requests(parameters, Stream(seed).split("chat")))


def _requests(parameters: Chat, root: Stream) -> Iterator[Request]:
    chunks = 0
    for user in range(parameters.users):
        context: tuple[int, ...] = ()
        for arrival_ns, grown in _turns(parameters, root.split(user)):
            context += tuple(range(chunks, chunks + grown))
            chunks += grown
            yield Request(
                arrival_ns,
                len(context) * CHUNK_TOKENS,
                parameters.output_tokens,
                context,
                session=user,
            )


def _turns(parameters: Chat, stream: Stream) -> Iterator[tuple[int, int]]:
    """Yield arrival and new chunks of each turn of one user."""
    end = parameters.hours * 3600
    now = stream.uniform() * end
    for burst in range(1 + round(stream.exponential(parameters.bursts))):
        if burst:
            now += stream.exponential(parameters.away_seconds)
        for turn in range(1 + round(stream.exponential(parameters.turns))):
            if turn:
                now += stream.exponential(parameters.think_seconds)
            if now >= end:
                return
            yield round(now * NS_PER_SECOND), 1 + stream.below(2)
