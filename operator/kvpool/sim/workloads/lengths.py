"""Files with lengths alone: CSV of prompt and output tokens; the arrivals are Poisson with a given rate.

Schema: microsoft/vidur's processed traces (`num_prefill_tokens`, `num_decode_tokens`), or a CSV of one's
own with `prompt_tokens` and `output_tokens`.
"""

from collections.abc import Collection, Sequence
from typing import Final

from kvpool.sim.streams import Stream
from kvpool.sim.workloads.fields import NS_PER_SECOND, csv_cells, csv_row, tokens
from kvpool.sim.workloads.reading import LineError, Reading, count
from kvpool.sim.workloads.request import Request

BLOCK_TOKENS: Final = 512
"""Nothing is known to be shared; this is only the grain in which memory is counted."""
ARRIVALS_PER_SECOND: Final = 1.0
"""Where none is asked for; the notes tell it."""
PAIRS: Final = (("num_prefill_tokens", "num_decode_tokens"), ("prompt_tokens", "output_tokens"))


def recognises(columns: Collection[str]) -> bool:
    """Whether the header has the columns of this form, and none that tells a time."""
    return any(set(pair).issubset(columns) for pair in PAIRS)


class LengthsReader:
    """Each line one request; the time to the next is exponential."""

    def __init__(self, header: str, reading: Reading) -> None:
        self._columns = csv_cells(header)
        self._prompt, self._output = next(
            (pair for pair in PAIRS if set(pair).issubset(self._columns)), ("", "")
        )
        if not self._prompt:
            wanted = " or ".join(f"`{one}` and `{other}`" for one, other in PAIRS)
            raise LineError(f"has the columns {', '.join(self._columns)}, and must have {wanted}")
        rate = ARRIVALS_PER_SECOND if reading.arrivals_per_second is None else reading.arrivals_per_second
        if not rate > 0:
            raise LineError(
                f"the file has lengths and no times, and --rate is {rate}; give it arrivals a second, above 0"
            )
        self._mean_ns = NS_PER_SECOND / rate
        self._stream = Stream(reading.seed).split("arrivals")
        self._now_ns = 0.0
        self.block_tokens = reading.block_tokens or BLOCK_TOKENS
        self.notes: dict[str, int] = {
            "arrivals_made_with_seed": reading.seed,
            "arrivals_made_per_1000_seconds": round(1000 * rate),
        }

    def read(self, text: str) -> Sequence[Request]:
        """Return the line's request; none, and a note, if it asks for no tokens."""
        row = csv_row(text, self._columns)
        prompt, output = tokens(row, self._prompt), tokens(row, self._output)
        if not prompt or not output:
            count(self.notes, "zero_tokens")
            return ()
        arrival_ns = round(self._now_ns)
        self._now_ns += self._stream.exponential(self._mean_ns)
        return (Request(arrival_ns, prompt, output),)

    def finish(self) -> Sequence[Request]:
        """Nothing waits for the end."""
        return ()
