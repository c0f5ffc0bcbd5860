"""Mooncake's form: JSON lines with arrival, lengths and prefix-block ids of 512 tokens.

Schema: FAST '25 release of kvcache-ai/Mooncake (Qin et al.). `timestamp` milliseconds from the start,
`input_length` and `output_length` tokens, `hash_ids` one id a block; equal leading ids are a shared prefix.
"""

from collections.abc import Collection, Sequence
from typing import Final

from kvpool.sim.workloads.fields import (
    NS_PER_MS,
    check_cover,
    json_object,
    time_ns,
    tokens,
    whole_numbers,
)
from kvpool.sim.workloads.reading import Reading, count
from kvpool.sim.workloads.request import Request

BLOCK_TOKENS: Final = 512
OTHER_BLOCKS: Final = "; if the file has other blocks, give --block-tokens"
KEYS: Final = frozenset({"timestamp", "input_length", "output_length", "hash_ids"})


def recognises(keys: Collection[str]) -> bool:
    """Whether the first line's keys are those of this form."""
    return KEYS.issubset(keys)


class MooncakeReader:
    """Each line one request that comes at its time."""

    def __init__(self, reading: Reading) -> None:
        self.block_tokens = reading.block_tokens or BLOCK_TOKENS
        self.notes: dict[str, int] = {}

    def read(self, text: str) -> Sequence[Request]:
        """Return the line's request; none, and a note, if it asks for no tokens."""
        record = json_object(text)
        arrival_ns = time_ns(record, "timestamp", NS_PER_MS)
        prompt = tokens(record, "input_length")
        output = tokens(record, "output_length")
        ids = whole_numbers(record, "hash_ids")
        check_cover(len(ids), prompt, self.block_tokens, "hash_ids", "input_length", OTHER_BLOCKS)
        if not prompt or not output:
            count(self.notes, "zero_tokens")
            return ()
        return (Request(arrival_ns, prompt, output, tuple(ids)),)

    def finish(self) -> Sequence[Request]:
        """Nothing waits for the end."""
        return ()
