"""The forms of NVIDIA Dynamo's simulator: Mooncake's rows with sessions, waits, tool times and prompt deltas.

Schema: ai-dynamo/dynamo, "Trace Format Reference". Besides Mooncake's fields: `session_id`, `created_time`
in place of `timestamp`, `delay` or `delay_ms` and `tool_wait_ms` after what a row waits for, `request_id`,
`wait_for`. In the form `mooncake-delta` a row has only what its turn adds to its session's prompt.

A workload has sessions whose requests follow each other. Where a row waits for requests of other sessions,
too, that is only kept as the earliest time that is possible without queueing, and counted:
`waits_for_other_sessions`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kvpool.sim.workloads.deltas import GrowingPrompts
from kvpool.sim.workloads.fields import (
    NS_PER_MS,
    check_cover,
    json_object,
    text_or_number,
    time_ns,
    tokens,
    whole_numbers,
)
from kvpool.sim.workloads.mooncake import BLOCK_TOKENS, OTHER_BLOCKS
from kvpool.sim.workloads.reading import LineError, Reading, count
from kvpool.sim.workloads.request import Request

KEYS: Final = frozenset({"session_id", "request_id", "wait_for", "delay", "delay_ms", "created_time"})
TIMES: Final = ("timestamp", "created_time")
DELAYS: Final = ("delay", "delay_ms", "tool_wait_ms")


def recognises(keys: Collection[str]) -> bool:
    """Whether the first line's keys are those of this form; deltas look the same and must be named."""
    return {"output_length", "hash_ids"}.issubset(keys) and not KEYS.isdisjoint(keys)


class DynamoReader:
    """Each line one request, which comes at its time, or follows its session's last one."""

    def __init__(self, reading: Reading, *, deltas: bool) -> None:
        self.block_tokens = reading.block_tokens or BLOCK_TOKENS
        self.notes: dict[str, int] = {}
        self._prompts = GrowingPrompts(self.block_tokens) if deltas else None
        self._sessions: dict[str, int] = {}
        self._last: dict[int, tuple[str, int]] = {}
        """By session its last request's id and nominal arrival."""
        self._arrivals: dict[str, int] = {}
        """By request id the earliest arrival."""

    def read(self, text: str) -> Sequence[Request]:
        """Return the line's request; none, and a note, if it asks for no tokens."""
        record = json_object(text)
        ids = whole_numbers(record, "hash_ids")
        told = tokens(record, "input_length") if "input_length" in record else len(ids) * self.block_tokens
        output = tokens(record, "output_length")
        check_cover(len(ids), told, self.block_tokens, "hash_ids", "input_length", OTHER_BLOCKS)
        session = self._session(record)
        arrival_ns, think_ns = self._when(record, session)
        name = text_or_number(record, "request_id")
        if name in self._arrivals:
            raise LineError(f"`request_id` {name} was there before, and must be of one request")
        prompt, blocks = told, tuple(ids)
        if self._prompts is not None:
            prompt, blocks = self._prompts.grown(session, ids, told)
        if name:
            self._arrivals[name] = arrival_ns
        if session >= 0:
            self._last[session] = (name, arrival_ns)
        if not prompt or not output:
            count(self.notes, "zero_tokens")
            return ()
        return (Request(arrival_ns, prompt, output, blocks, session=session, think_ns=think_ns),)

    def finish(self) -> Sequence[Request]:
        """Nothing waits for the end."""
        return ()

    def _session(self, record: Mapping[str, Any]) -> int:
        name = text_or_number(record, "session_id")
        return self._sessions.setdefault(name, len(self._sessions)) if name else -1

    def _when(self, record: Mapping[str, Any], session: int) -> tuple[int, int]:
        """Return the (earliest) arrival, and the time after the session's last request or -1."""
        field = next((each for each in TIMES if record.get(each) is not None), None)
        at_ns = time_ns(record, field, NS_PER_MS) if field else None
        delays = [each for each in DELAYS if record.get(each) is not None]
        delay_ns = sum(time_ns(record, each, NS_PER_MS) for each in delays)
        waits = self._waits(record)
        before = self._last.get(session)
        others = [each for each in waits if before is None or each != before[0]]
        if others:
            count(self.notes, "waits_for_other_sessions")
        if before is not None and (delays or waits or at_ns is None):
            earliest_ns = max([before[1], *(self._arrivals.get(each, 0) for each in others)]) + delay_ns
            return max(earliest_ns, at_ns or 0), delay_ns
        if waits:
            earliest_ns = max(self._arrivals.get(each, 0) for each in waits) + delay_ns
            return max(earliest_ns, at_ns or 0), -1
        if at_ns is None:
            raise LineError(
                "`timestamp` is missing, and neither `wait_for` nor a session before it tells a time"
            )
        return at_ns + delay_ns, -1

    def _waits(self, record: Mapping[str, Any]) -> list[str]:
        listed = record.get("wait_for") or []
        if not isinstance(listed, list):
            raise LineError("`wait_for` is no list, and must hold request ids")
        waits = [str(each) for each in listed]
        for each in waits:
            if each not in self._arrivals:
                count(self.notes, "waits_for_requests_not_there_before")
        return waits
