"""kvpool's own form: JSON lines, a first line that says so, then one request a line as a `Request`.

{"kvpool-trace": 1, "block_tokens": 512, "source": "chat.jsonl", "notes": {}}
{"arrival_ns": 0, "prompt_tokens": 900, "output_tokens": 40, "blocks": [0, 1]}
"""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from kvpool.sim.workloads.fields import check_cover, json_object, time_ns, tokens, whole_number, whole_numbers
from kvpool.sim.workloads.reading import LineError, Reading, count
from kvpool.sim.workloads.request import BATCH, INTERACTIVE, Request, Workload

MARK: Final = "kvpool-trace"
VERSION: Final = 1
MOST_NOTED: Final = (1 << 63) - 1
FIELDS: Final = (
    "arrival_ns",
    "prompt_tokens",
    "output_tokens",
    "blocks",
    "slo_class",
    "client",
    "session",
    "think_ns",
)


def recognises(keys: Collection[str]) -> bool:
    """Whether the first line's keys are those of this form."""
    return MARK in keys


def written(workload: Workload) -> Iterator[str]:
    """Yield the lines of a workload, each with its end; reading them gives equal requests."""
    yield header(workload.block_tokens, workload.source, dict(workload.notes))
    for request in workload.requests:
        yield request_line(request)


def header(block_tokens: int, source: str, notes: dict[str, int]) -> str:
    """Return the first line."""
    first = {MARK: VERSION, "block_tokens": block_tokens, "source": source, "notes": notes}
    return json.dumps(first, separators=(",", ":")) + "\n"


def request_line(request: Request) -> str:
    """Return the line of a request; fields that say nothing are left out."""
    record: dict[str, Any] = {
        "arrival_ns": request.arrival_ns,
        "prompt_tokens": request.prompt_tokens,
        "output_tokens": request.output_tokens,
    }
    if request.blocks:
        record["blocks"] = request.blocks
    if request.slo_class != INTERACTIVE:
        record["slo_class"] = request.slo_class
    if request.client:
        record["client"] = request.client
    if request.session >= 0:
        record["session"] = request.session
    if request.think_ns >= 0:
        record["think_ns"] = request.think_ns
    return json.dumps(record, separators=(",", ":")) + "\n"


class OwnReader:
    """Each line one request."""

    def __init__(self, header: str, reading: Reading) -> None:
        first = json_object(header)
        if first.get(MARK) != VERSION:
            raise LineError(f"`{MARK}` is {first.get(MARK)!r}, and this release reads {VERSION}")
        self.block_tokens = tokens(first, "block_tokens")
        if not self.block_tokens:
            raise LineError("`block_tokens` is 0, and must be at least 1 token")
        if reading.block_tokens not in (None, self.block_tokens):
            raise LineError(
                f"`block_tokens` is {self.block_tokens}, and --block-tokens {reading.block_tokens}; the "
                "file's own is right for its ids: leave the option out"
            )
        notes = first.get("notes", {})
        if not isinstance(notes, dict) or any(
            type(value) is not int or not 0 <= value <= MOST_NOTED for value in notes.values()
        ):
            raise LineError(f"`notes` must be an object of whole numbers from 0 to {MOST_NOTED} by reason")
        self.notes: dict[str, int] = dict(notes)

    def read(self, text: str) -> Sequence[Request]:
        """Return the line's request; none, and a note, if it asks for no tokens."""
        record = json_object(text)
        unknown = [key for key in record if key not in FIELDS]
        if unknown:
            raise LineError(f"`{unknown[0]}` is no field of a request; those are {', '.join(FIELDS)}")
        prompt, output = tokens(record, "prompt_tokens"), tokens(record, "output_tokens")
        ids = tuple(whole_numbers(record, "blocks")) if "blocks" in record else ()
        if ids:
            check_cover(len(ids), prompt, self.block_tokens, "blocks", "prompt_tokens", remedy="")
        slo_class = record.get("slo_class", INTERACTIVE)
        if slo_class not in (INTERACTIVE, BATCH):
            raise LineError(f"`slo_class` is {slo_class!r}, and must be {INTERACTIVE} or {BATCH}")
        if not prompt or not output:
            count(self.notes, "zero_tokens")
            return ()
        request = Request(
            time_ns(record, "arrival_ns", 1),
            prompt,
            output,
            ids,
            slo_class=slo_class,
            client=str(record.get("client", "")),
            session=whole_number(record, "session") if "session" in record else -1,
            think_ns=time_ns(record, "think_ns", 1) if "think_ns" in record else -1,
        )
        return (request,)

    def finish(self) -> Sequence[Request]:
        """Nothing waits for the end."""
        return ()
