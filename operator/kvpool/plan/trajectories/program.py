"""What is known of one program of many turns while it lives."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """One trajectory: a prompt that grows turn by turn, one of a group that is only worth something whole."""

    ident: int
    group: int
    context_tokens: int
    """What it holds, or would hold, now."""
    final_tokens: int
    """What it is predicted to hold at its end: an upper quantile of its class."""
    done_turns: int
    expected_turns: int
    """At least 1."""
    arrival_ns: int
    waiting_since_ns: int
    """Since when it waits to be admitted."""
    admitted: bool = False
    computing: bool = False
    """A turn of it is on the engine."""
    finished: bool = False

    @property
    def progress(self) -> float:
        """Share of its turns that are done, at most 1."""
        return 1.0 if self.finished else min(1.0, self.done_turns / self.expected_turns)


def group_progress(programs: Iterable[Program]) -> Mapping[int, float]:
    """Share of the turns of each group that are done, finished members with them."""
    done: dict[int, float] = {}
    expected: dict[int, int] = {}
    for program in programs:
        turns = program.done_turns if program.finished else program.expected_turns
        done[program.group] = done.get(program.group, 0) + min(program.done_turns, turns)
        expected[program.group] = expected.get(program.group, 0) + turns
    return {group: done[group] / max(1, turns) for group, turns in expected.items()}
