"""Reads block traces in Mooncake's form: one JSON object a line, `hash_ids` naming a prompt's blocks."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

DEFAULT_TRACE = Path(__file__).resolve().parents[1] / "traces" / "mooncake_fast25_conversation_trace.jsonl.gz"
PACKED = ".gz"


class TraceUnreadableError(ValueError):
    """A trace that is missing or not in the expected form; the message says which line and why."""


@dataclass(frozen=True)
class TracedRequest:
    """One request: arrival (milliseconds from the start), tokens in and out, its blocks in prompt order."""

    timestamp_ms: int
    input_tokens: int
    output_tokens: int
    block_ids: tuple[int, ...]


def read_trace(path: Path, *, first: int) -> tuple[TracedRequest, ...]:
    """Return the first `first` requests of the trace. Raises TraceUnreadableError."""
    if not path.exists():
        raise TraceUnreadableError(
            f"{path}: no such trace; give one with --trace "
            f"({DEFAULT_TRACE.name} of this repository, or any file of that form)"
        )
    with gzip.open(path, "rt") if path.suffix == PACKED else path.open() as lines:
        requests = tuple(_parse(path, islice(lines, first)))
    if len(requests) < first:
        raise TraceUnreadableError(f"{path}: {first} requests wanted, it has {len(requests)}")
    return requests


def reuse_ceiling(requests: Sequence[TracedRequest]) -> float:
    """Return the share of block look-ups that an unbounded cache, empty at first, would answer."""
    seen: set[int] = set()
    lookups = hits = 0
    for request in requests:
        lookups += len(request.block_ids)
        hits += sum(block in seen for block in request.block_ids)
        seen.update(request.block_ids)
    return hits / lookups if lookups else 0.0


def _parse(path: Path, lines: Iterator[str]) -> Iterator[TracedRequest]:
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            yield TracedRequest(
                timestamp_ms=int(row["timestamp"]),
                input_tokens=int(row["input_length"]),
                output_tokens=int(row["output_length"]),
                block_ids=tuple(int(block) for block in row["hash_ids"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise TraceUnreadableError(
                f"{path}:{number}: timestamp, input_length, output_length, hash_ids (numbers) needed: {error}"
            ) from error
