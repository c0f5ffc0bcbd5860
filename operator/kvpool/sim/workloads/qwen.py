"""The form of Alibaba's Qwen logs: JSON lines with chats and prefix-block ids of 16 tokens.

Schema: alibaba-edu/qwen-bailian-usagetraces-anon. `chat_id`, `parent_chat_id` (-1 for the first turn),
`timestamp` seconds from the start, `input_length`, `output_length`, `type`, `turn`, `hash_ids`.
"""

from collections.abc import Collection, Sequence
from typing import Final

from kvpool.sim.workloads.fields import (
    NS_PER_SECOND,
    check_cover,
    json_object,
    time_ns,
    tokens,
    whole_number,
    whole_numbers,
)
from kvpool.sim.workloads.mooncake import OTHER_BLOCKS
from kvpool.sim.workloads.reading import Reading, count
from kvpool.sim.workloads.request import Request

BLOCK_TOKENS: Final = 16
KEYS: Final = frozenset({"chat_id", "parent_chat_id", "hash_ids"})


def recognises(keys: Collection[str]) -> bool:
    """Whether the first line's keys are those of this form."""
    return KEYS.issubset(keys)


class QwenReader:
    """Each line one turn that comes at its time; a turn is in the session of the turn before it."""

    def __init__(self, reading: Reading) -> None:
        self._session_of: dict[int, int] = {}
        self._sessions = 0
        self.block_tokens = reading.block_tokens or BLOCK_TOKENS
        self.notes: dict[str, int] = {}

    def read(self, text: str) -> Sequence[Request]:
        """Return the line's request; none, and a note, if it asks for no tokens."""
        record = json_object(text)
        arrival_ns = time_ns(record, "timestamp", NS_PER_SECOND)
        prompt, output = tokens(record, "input_length"), tokens(record, "output_length")
        ids = whole_numbers(record, "hash_ids")
        check_cover(len(ids), prompt, self.block_tokens, "hash_ids", "input_length", OTHER_BLOCKS)
        session = self._session(whole_number(record, "chat_id"), whole_number(record, "parent_chat_id"))
        if not prompt or not output:
            count(self.notes, "zero_tokens")
            return ()
        client = record.get("type", "")
        return (Request(arrival_ns, prompt, output, tuple(ids), client=str(client), session=session),)

    def finish(self) -> Sequence[Request]:
        """Nothing waits for the end."""
        return ()

    def _session(self, chat: int, parent: int) -> int:
        session = self._session_of.get(parent)
        if session is None:
            if parent >= 0:
                count(self.notes, "turns_whose_parent_is_not_there")
            session = self._sessions
            self._sessions += 1
        self._session_of[chat] = session
        return session
