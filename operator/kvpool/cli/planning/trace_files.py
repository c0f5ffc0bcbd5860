"""Opens traces for the planner: plain or gzip, line by line, with the checksum of the file."""

import functools
import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import click

from kvpool.cli.faults import CliError
from kvpool.cli.planning.number_range import NumberRange
from kvpool.sim.workloads.fields import NS_PER_SECOND
from kvpool.sim.workloads.forms import FORMS
from kvpool.sim.workloads.load import load
from kvpool.sim.workloads.reading import Reading, TraceError
from kvpool.sim.workloads.request import Workload

LONGEST_LINE_BYTES: Final = 64 << 20
"""Sessions of one line reach some MB; a file without line ends must not fill the memory."""
if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BUFFER_BYTES: Final = 1 << 18
GZIP: Final = b"\x1f\x8b"
STANDARD_INPUT: Final = Path("-")


def open_workload(path: Path, form: str | None = None, reading: Reading | None = None) -> Workload:
    """Read a trace of any form; `-` is standard input.

    The checksum is that of the file as it is, or of the lines that were read if that was a part of it.

    Raises:
        CliError: when the file cannot be read, or a line of it makes no sense.
    """
    with trace_file(path) as file:
        workload = load(file.lines(), file.name, form, reading)
        whole = file.checksum()
    return replace(workload, checksum=whole) if whole else workload


@contextmanager
def trace_file(path: Path) -> Iterator["TraceFile"]:
    """Open a trace; what is wrong with the file or a line of it ends as CliError."""
    try:
        if path == STANDARD_INPUT:
            if sys.stdin is None:
                raise CliError("standard input is closed")
            yield TraceFile(sys.stdin.buffer, "standard input")
        else:
            with path.open("rb", buffering=0) as raw:
                yield TraceFile(raw, path.name)
    except TraceError as error:
        raise CliError(str(error)) from None
    except OSError as error:
        raise CliError(f"{path} cannot be read: {error.strerror or error}") from None


class TraceFile:
    """The lines of one file, plain or compressed."""

    def __init__(self, raw: IO[bytes], name: str) -> None:
        self.name = name
        self._hashing = _Hashing(raw)
        self._whole = False

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, each with its end. Raises TraceError where the file is cut or damaged."""
        packed = io.BufferedReader(self._hashing, BUFFER_BYTES)
        unpacked: io.BufferedIOBase = packed
        if packed.peek(len(GZIP)).startswith(GZIP):
            unpacked = gzip.GzipFile(fileobj=packed, mode="rb")
        number = 0
        try:
            while line := unpacked.readline(LONGEST_LINE_BYTES + 1):
                number += 1
                if len(line) > LONGEST_LINE_BYTES:
                    raise TraceError(
                        f"{self.name} line {number} has more than {LONGEST_LINE_BYTES >> 20} MiB, and a "
                        "trace has one request or session a line; is it a trace?"
                    )
                yield line
        except EOFError:
            raise TraceError(
                f"{self.name} ends inside its compressed data after {number} lines: it was cut; copy it "
                f"again, or use what is there with --limit {number}"
            ) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise TraceError(f"{self.name} is damaged after {number} lines: {error}; copy it again") from None
        self._whole = True

    def checksum(self) -> str:
        """SHA-256 of the file, packed as it may be; empty if not all of it was read."""
        return self._hashing.hash.hexdigest() if self._whole else ""


class _Hashing(io.RawIOBase):
    """Passes a file's bytes on, and computes their SHA-256."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self.hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, into: "WriteableBuffer") -> int:
        room = memoryview(into)
        data = self._raw.read(len(room))
        self.hash.update(data)
        room[: len(data)] = data
        return len(data)


def part_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the flags that say which lines of a file are read; it gets them as `reading`."""

    @functools.wraps(verb)
    def with_part(
        *,
        skip_lines: int,
        limit_lines: int | None,
        skip_bad: bool,
        block_tokens: int | None,
        **others: object,
    ) -> None:
        verb(
            **others,
            reading=Reading(
                skip_lines=skip_lines, limit_lines=limit_lines, skip_bad=skip_bad, block_tokens=block_tokens
            ),
        )

    for flag in (
        click.option("--block-tokens", type=click.IntRange(1, 1 << 20), help="Tokens of one block id."),
        click.option("--skip-bad", is_flag=True, help="Leave bad lines out and count them."),
        click.option(
            "--from", "skip_lines", type=click.IntRange(min=0), default=0, help="Lines to pass over."
        ),
        click.option("--limit", "limit_lines", type=click.IntRange(min=1), help="Lines to read."),
    ):
        flag(with_part)
    return with_part


def reading_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the flags that say how a trace is read; it gets them as `form` and `reading`."""

    @functools.wraps(verb)
    def with_reading(
        *,
        reading: Reading,
        spread_seconds: float,
        session_gap_seconds: float,
        rate: float | None,
        trace_seed: int,
        **others: object,
    ) -> None:
        verb(
            **others,
            reading=replace(
                reading,
                spread_ns=round(spread_seconds * NS_PER_SECOND),
                session_gap_ns=round(session_gap_seconds * NS_PER_SECOND),
                arrivals_per_second=rate,
                seed=trace_seed,
            ),
        )

    seconds = NumberRange(min=0, max=1e6)
    for flag in (
        click.option("--trace-seed", type=int, default=0, help="Seed of --spread and --rate."),
        click.option(
            "--rate",
            type=NumberRange(min=0, min_open=True, max=1e6),
            help="Arrivals a second, for files with lengths alone.",
        ),
        click.option(
            "--session-gap",
            "session_gap_seconds",
            type=seconds,
            default=10.0,
            show_default=True,
            help="Seconds between the starts of sessions, for files that tell none.",
        ),
        click.option(
            "--spread",
            "spread_seconds",
            type=seconds,
            default=0.0,
            help="Spread arrivals over so many seconds, for files with a coarse clock.",
        ),
        click.option("--form", type=click.Choice(list(FORMS)), help="Form of the trace, if not recognised."),
    ):
        flag(with_reading)
    return part_flags(with_reading)
