"""Reads a trace of any known form into a workload: recognised, checked, sorted, changes counted."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, pairwise
from operator import attrgetter
from typing import Final

from kvpool.sim.streams import Stream
from kvpool.sim.workloads.fields import NS_PER_SECOND
from kvpool.sim.workloads.forms import Opening, opened
from kvpool.sim.workloads.reading import MOST_BLOCKS, MOST_REQUESTS, LineError, Reader, Reading, TraceError
from kvpool.sim.workloads.request import Request, Workload

BOM: Final = b"\xef\xbb\xbf"
Line = tuple[int, bytes]


def load(
    lines: Iterable[bytes | str], name: str, form: str | None = None, reading: Reading | None = None
) -> Workload:
    """Return the workload that the lines of a file hold.

    `lines` keep their ends (then the checksum is that of the file), and are read one by one, no further
    than asked. `name` is told in messages. `form` is one of `forms.FORMS`, or None to recognise it by the
    first line. Requests are sorted by arrival, and the first comes at 0. `TraceError` names file, line and
    field of what makes no sense.
    """
    reading = reading or Reading()
    return load_with(lines, name, lambda first: opened(first, form, reading), reading)


def load_with(
    lines: Iterable[bytes | str], name: str, opens: Callable[[str], Opening], reading: Reading
) -> Workload:
    """Return the workload that lines hold for the reader that `opens` chooses by the first of them."""
    source = _Source(lines)
    numbered = iter(source)
    first = next(numbered, None)
    if first is None:
        raise TraceError(f"{name} is empty; a trace has at least one line")
    try:
        opening = opens(_text(first[1]))
    except LineError as bad:
        raise TraceError(f"{name} line {first[0]}: {bad}") from None
    data = numbered if opening.header else chain((first,), numbered)
    notes, requests = _read(_wanted(data, reading), opening.reader, reading, name)
    if not requests:
        left_out = ", ".join(f"{reason} {count}" for reason, count in notes.items())
        raise TraceError(
            f"{name} holds no request that can be used ({left_out or 'no line of data was read'})"
        )
    return Workload(
        requests=_ordered(requests, reading, notes),
        block_tokens=opening.reader.block_tokens,
        source=name,
        checksum=source.checksum(),
        notes=notes,
    )


class _Source:
    """The lines of a file with their numbers; empty ones are passed over."""

    def __init__(self, lines: Iterable[bytes | str]) -> None:
        self._lines = lines
        self._hash = hashlib.sha256()

    def __iter__(self) -> Iterator[Line]:
        update = self._hash.update
        for number, line in enumerate(self._lines, 1):
            # A text with lone surrogates has no UTF-8 form; as bytes it is refused where bytes are decoded.
            raw = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
            update(raw)
            if number == 1:
                raw = raw.removeprefix(BOM)
            if raw and not raw.isspace():
                yield number, raw

    def checksum(self) -> str:
        """SHA-256 of the lines that were read."""
        return self._hash.hexdigest()


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise LineError(
            f"is not UTF-8: byte {error.start + 1} of {len(raw)} is {raw[error.start]:#04x}"
        ) from None


def _wanted(data: Iterator[Line], reading: Reading) -> Iterator[Line]:
    """Yield the lines that were asked for; not one more is read."""
    for _ in range(reading.skip_lines):
        if next(data, None) is None:
            return
    if reading.limit_lines is None:
        yield from data
        return
    for _ in range(reading.limit_lines):
        line = next(data, None)
        if line is None:
            return
        yield line


def _read(
    data: Iterator[Line], reader: Reader, reading: Reading, name: str
) -> tuple[dict[str, int], list[Request]]:
    requests: list[Request] = []
    blocks = bad_lines = 0
    for number, raw in data:
        try:
            made = reader.read(_text(raw))
        except LineError as bad:
            if not reading.skip_bad:
                raise TraceError(
                    f"{name} line {number}: {bad} (--skip-bad leaves such lines out and counts them)"
                ) from None
            bad_lines += 1
            continue
        for request in made:
            blocks += len(request.blocks)
        requests += made
        if len(requests) > MOST_REQUESTS or blocks > MOST_BLOCKS:
            raise TraceError(
                f"{name} line {number}: {len(requests)} requests with {blocks} block ids so far, and at most "
                f"{MOST_REQUESTS} requests with {MOST_BLOCKS} ids fit into memory; give --limit N, and "
                "--from N to take a later part"
            )
    requests += reader.finish()
    notes = dict(reader.notes)
    if bad_lines:
        notes["bad_lines"] = bad_lines
    return notes, requests


def _ordered(requests: list[Request], reading: Reading, notes: dict[str, int]) -> tuple[Request, ...]:
    """Sort by arrival, spread if asked, count from the first; equal arrivals stay in the file's order."""
    arrivals = [request.arrival_ns for request in requests]
    backwards = sum(1 for one, other in pairwise(arrivals) if other < one)
    if backwards and requests[0].session < 0:
        # Lines that are sessions overlap by their nature; lines that are requests were written out of order.
        notes["sorted_after_lines_out_of_order"] = backwards
    if reading.spread_ns:
        notes["spread_ns"] = reading.spread_ns
        notes["spread_seed"] = reading.seed
        stream = Stream(reading.seed).split("spread")
        arrivals = [arrival + stream.below(reading.spread_ns) for arrival in arrivals]
    elif (step_ns := _grid_ns(arrivals)) >= NS_PER_SECOND:
        notes["arrivals_in_bursts_ns_apart"] = step_ns
    base_ns = min(arrivals)
    if base_ns or reading.spread_ns:
        requests = [
            replace(request, arrival_ns=arrival - base_ns)
            for request, arrival in zip(requests, arrivals, strict=True)
        ]
    if backwards or reading.spread_ns:
        requests.sort(key=attrgetter("arrival_ns"))
    return tuple(requests)


def _grid_ns(arrivals: list[int]) -> int:
    """Return the step of a coarse clock: the least time between bursts of two requests or more, else 0."""
    times = sorted(set(arrivals))
    if len(times) < 2 or 2 * len(times) > len(arrivals):
        return 0
    return min(other - one for one, other in pairwise(times))
