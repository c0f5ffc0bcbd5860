"""How a trace is read, whatever its form: options, limits, a form's reader, and faults."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kvpool.sim.workloads.request import Request

MOST_REQUESTS: Final = 2_000_000
MOST_BLOCKS: Final = 16_000_000
"""With `MOST_REQUESTS` about 500 MB of ids and requests: the most a workload may hold in memory."""
MOST_OF_A_SESSION: Final = 1_000_000
"""Ids of one prompt that are merged, and different blocks of one session."""


class TraceError(ValueError):
    """A trace that cannot be read; the text names the file, the line, the field, and what to do."""


class LineError(ValueError):
    """What is wrong with one line; whoever reads the file adds its name and the line's number."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What of a trace is taken, and how. A line is one request, in session files one session."""

    skip_lines: int = 0
    """Lines of data to pass over at the start."""
    limit_lines: int | None = None
    """Lines of data to read after those; None: all."""
    skip_bad: bool = False
    """Leave bad lines out and count them, instead of refusing the file."""
    block_tokens: int | None = None
    """Tokens of one block id; None: what the form says."""
    merged_blocks: int | None = None
    """Sessions with small blocks: how many make one here; None: as many as 512 tokens need."""
    spread_ns: int = 0
    """Spread each arrival uniformly over so much time after it: for files whose clock ticks coarsely."""
    seed: int = 0
    """Of the spreading, and of arrivals where the file has none."""
    session_gap_ns: int = 10_000_000_000
    """Between the starts of sessions, where the file has only times inside sessions."""
    arrivals_per_second: float | None = None
    """Poisson arrivals for files with lengths alone."""


def count(notes: dict[str, int], reason: str) -> None:
    """Note once more that something was left out or changed."""
    notes[reason] = notes.get(reason, 0) + 1


class Reader(Protocol):
    """Reads the lines of one form, one after the other."""

    block_tokens: int
    notes: dict[str, int]
    """What was left out or changed, by reason."""

    def read(self, text: str) -> Sequence[Request]:
        """Return the requests of a line: none, one, or a session's. `LineError` if it makes no sense."""

    def finish(self) -> Sequence[Request]:
        """Return the requests that had to wait for the end of the file."""
