"""Groups of programs whose prompts grow turn by turn, with a tool call between two turns.

kvpool's own generator for the claims about admission by memory: groups of attempts at one task, as they are
sampled for training by reinforcement or run side by side by agents.
"""

from dataclasses import dataclass

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.streams import Stream


@dataclass(frozen=True, slots=True)
class Turn:
    """One call of the model within a program."""

    prompt_tokens: int
    """New ones: what the tool returned, or the task."""
    output_tokens: int
    tool_ns: int
    """From the end of this turn until the next is asked for."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One program."""

    ident: int
    group: int
    arrival_ns: int
    turns: tuple[Turn, ...]

    @property
    def final_tokens(self) -> int:
        """What it holds at its end."""
        return sum(turn.prompt_tokens + turn.output_tokens for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Programs:
    """Parameters of the programs."""

    groups: int = 12
    members: int = 8
    turns: float = 25.0
    """Mean; each program draws between half of it and one and a half times."""
    first_prompt_tokens: int = 8000
    tool_tokens: float = 1700.0
    """Mean of what a tool returns, exponential."""
    output_tokens: float = 300.0
    """Mean of an answer, exponential."""
    tool_seconds: float = 6.0
    """Mean of a tool call, exponential."""
    apart_seconds: float = 0.0
    """Between the arrivals of two groups."""


def trajectories(parameters: Programs, seed: int) -> tuple[Trajectory, ...]:
    """Make the programs, in order of arrival; each draws from its own stream."""
    root = Stream(seed).split("trajectories")
    made = []
    for group in range(parameters.groups):
        for member in range(parameters.members):
            stream = root.split(group, member)
            count = max(1, round(parameters.turns * (0.5 + stream.uniform())))
            turns = tuple(_turn(parameters, stream, first=turn == 0) for turn in range(count))
            arrival_ns = round(group * parameters.apart_seconds * NS_PER_SECOND)
            made.append(Trajectory(group * parameters.members + member, group, arrival_ns, turns))
    return tuple(made)


def _turn(parameters: Programs, stream: Stream, *, first: bool) -> Turn:
    prompt = parameters.first_prompt_tokens if first else round(stream.exponential(parameters.tool_tokens))
    return Turn(
        max(1, prompt),
        max(1, round(stream.exponential(parameters.output_tokens))),
        round(stream.exponential(parameters.tool_seconds) * NS_PER_SECOND),
    )
