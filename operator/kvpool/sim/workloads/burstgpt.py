"""BurstGPT's form: CSV with seconds, model and lengths; about one row in twelve has no tokens.

Schema: HPMLL/BurstGPT (Wang et al.). Releases 1 and 2: `Timestamp,Model,Request tokens,Response
tokens,Total tokens, Log Type`; release 3 puts `Session ID,Elapsed time` after `Timestamp`. Columns are
found by name.
"""

from collections.abc import Collection, Sequence
from typing import Final

from kvpool.sim.workloads.fields import NS_PER_SECOND, csv_cells, csv_row, time_ns, tokens
from kvpool.sim.workloads.reading import Reading, count
from kvpool.sim.workloads.request import Request

BLOCK_TOKENS: Final = 512
"""Nothing is known to be shared; this is only the grain in which memory is counted."""
COLUMNS: Final = frozenset({"Timestamp", "Request tokens", "Response tokens"})
SESSION: Final = "Session ID"


def recognises(columns: Collection[str]) -> bool:
    """Whether the header has the columns of this form."""
    return COLUMNS.issubset(columns)


class BurstGptReader:
    """Each line one request that comes at its time, whether or not its session's last one has ended."""

    def __init__(self, header: str, reading: Reading) -> None:
        self._columns = csv_cells(header)
        self._sessions: dict[str, int] = {}
        self.block_tokens = reading.block_tokens or BLOCK_TOKENS
        self.notes: dict[str, int] = {}

    def read(self, text: str) -> Sequence[Request]:
        """Return the line's request; none, and a note, if it asks for no tokens or failed."""
        row = csv_row(text, self._columns)
        arrival_ns = time_ns(row, "Timestamp", NS_PER_SECOND)
        prompt, output = tokens(row, "Request tokens"), tokens(row, "Response tokens")
        if not prompt or not output:
            count(self.notes, "zero_tokens")
            return ()
        name = row.get(SESSION, "")
        session = self._sessions.setdefault(name, len(self._sessions)) if name else -1
        return (Request(arrival_ns, prompt, output, client=row.get("Model", ""), session=session),)

    def finish(self) -> Sequence[Request]:
        """Nothing waits for the end."""
        return ()
