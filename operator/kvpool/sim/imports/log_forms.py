"""The kinds of logs that can be made a workload, and how a first line tells which one it is."""

from collections.abc import Mapping
from typing import Final

from kvpool.sim.imports.chat_log import ChatLogReader
from kvpool.sim.imports.chat_log import recognises as is_chat_log
from kvpool.sim.imports.event_shapes import is_batch
from kvpool.sim.imports.kv_events import KvEventReader
from kvpool.sim.imports.salted import SaltedIds
from kvpool.sim.workloads.fields import json_value
from kvpool.sim.workloads.forms import Opening
from kvpool.sim.workloads.reading import LineError

REQUESTS: Final = "requests"
EVENTS: Final = "kv-events"
LOGS: Final = (REQUESTS, EVENTS)
BLOCK_TOKENS: Final = 64


def log_opened(
    first: str, log: str | None, ids: SaltedIds, block_tokens: int | None, bytes_per_token: float | None
) -> Opening:
    """Return the reader for a log that starts with the line `first`. LineError if it is no known one."""
    if log is None:
        value = json_value(first)
        if is_batch(value):
            log = EVENTS
        elif isinstance(value, Mapping) and is_chat_log(value):
            log = REQUESTS
        else:
            raise LineError(
                "is neither a request (`messages`, `prompt`, `input` or `prompt_token_ids`, perhaps inside "
                "`request` or `body`) nor a batch of KV-cache events (`events`, or `event` with `data`); "
                "name it with --log if it is one and begins with something else"
            )
    if log == EVENTS:
        return Opening(KvEventReader(ids, block_tokens), header=False)
    return Opening(ChatLogReader(ids, block_tokens or BLOCK_TOKENS, bytes_per_token), header=False)
