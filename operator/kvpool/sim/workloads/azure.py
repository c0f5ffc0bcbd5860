"""Azure's form: CSV with a moment and two lengths, no sessions and no prefixes.

Schema: Azure/AzurePublicDataset, LLM inference traces of 2023 and 2024 (Patel et al., "Splitwise", ISCA
2024). `TIMESTAMP` with up to seven decimals, `ContextTokens`, `GeneratedTokens`.
"""

from collections.abc import Collection, Sequence
from typing import Final

from kvpool.sim.workloads.fields import csv_cells, csv_row, moment_ns, tokens
from kvpool.sim.workloads.reading import Reading, count
from kvpool.sim.workloads.request import Request

BLOCK_TOKENS: Final = 512
"""Nothing is known to be shared; this is only the grain in which memory is counted."""
COLUMNS: Final = frozenset({"TIMESTAMP", "ContextTokens", "GeneratedTokens"})


def recognises(columns: Collection[str]) -> bool:
    """Whether the header has the columns of this form."""
    return COLUMNS.issubset(columns)


class AzureReader:
    """Each line one request that comes at its moment."""

    def __init__(self, header: str, reading: Reading) -> None:
        self._columns = csv_cells(header)
        self.block_tokens = reading.block_tokens or BLOCK_TOKENS
        self.notes: dict[str, int] = {}

    def read(self, text: str) -> Sequence[Request]:
        """Return the line's request; none, and a note, if it asks for no tokens."""
        row = csv_row(text, self._columns)
        arrival_ns = moment_ns(row, "TIMESTAMP")
        prompt, output = tokens(row, "ContextTokens"), tokens(row, "GeneratedTokens")
        if not prompt or not output:
            count(self.notes, "zero_tokens")
            return ()
        return (Request(arrival_ns, prompt, output),)

    def finish(self) -> Sequence[Request]:
        """Nothing waits for the end."""
        return ()
