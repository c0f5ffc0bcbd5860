"""An SSD past the page cache: sustained writes, and random reads of 1 MiB at queue depths 1, 8 and 32."""

import mmap
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

from kvpool.cli.planning.measuring.repeating import Deadline
from kvpool.cli.planning.measuring.scratch_file import MIB, NoDiskError, page_aligned, scratch_file
from kvpool.plan.calibration.constants import Constant, Source
from kvpool.plan.calibration.spread import quantile, spread_of
from kvpool.plan.timing.model import NS_PER_SECOND

PIECE_BYTES: Final = MIB
DEPTHS: Final = (1, 8, 32)
WRITE_DEPTH: Final = 8
WRITE_SHARE: Final = 0.4
"""Of the time; the reads share the rest equally."""
MOST_WRITTEN_BYTES: Final = 16 << 30
"""In one measurement: what an SSD can be written in its life is limited."""
SLICES: Final = 10
"""Parts of a measurement whose rates tell how much it varies."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """One transfer that ended."""

    ended_ns: int
    spent_ns: int


def measure_ssd(folder: Path, file_bytes: int, seconds: float) -> Iterator[Constant]:
    """Measure the disk of a folder with a nameless file of at most so many bytes."""
    names = ["ssd.write", *(f"ssd.read.qd{depth}" for depth in DEPTHS)]
    try:
        with scratch_file(folder, file_bytes) as (descriptor, size):
            written, filled = _write(descriptor, size, WRITE_SHARE * seconds)
            names.remove(written.name)
            yield written
            for depth in DEPTHS:
                rate, tail = _read(descriptor, filled, depth, (1 - WRITE_SHARE) * seconds / len(DEPTHS))
                names.remove(rate.name)
                yield from (rate, tail)
    except NoDiskError as error:
        yield from (Constant(name, "bytes/s", Source.NOT_MEASURED, reason=str(error)) for name in names)


def _write(descriptor: int, size: int, seconds: float) -> tuple[Constant, int]:
    """Write the file from its start, again and again; returns the rate, and how much of it was filled."""
    pieces = size // PIECE_BYTES
    numbers = iter(range(MOST_WRITTEN_BYTES // PIECE_BYTES))
    random_bytes = os.urandom(PIECE_BYTES)

    def piece(buffer: mmap.mmap) -> bool:
        # One step of an iterator is atomic under the interpreter's lock.
        number = next(numbers, None)
        if number is None:
            return False
        os.pwritev(descriptor, [buffer], number % pieces * PIECE_BYTES)
        return True

    began = time.perf_counter_ns()
    done = _in_parallel(piece, WRITE_DEPTH, seconds, random_bytes)
    os.fdatasync(descriptor)
    spent_ns = time.perf_counter_ns() - began
    rates = spread_of(_slices(done, began))
    constant = Constant(
        "ssd.write",
        "bytes/s",
        Source.MEASURED,
        len(done) * PIECE_BYTES * NS_PER_SECOND / spent_ns,
        rates.low,
        rates.high,
        len(done),
        f"{len(done)} direct writes of 1 MiB in order, {WRITE_DEPTH} at once, over {spent_ns / 1e9:.1f} s, "
        f"with the flush at the end; interval: rates of {rates.samples} parts",
        reason="" if spent_ns > 20 * NS_PER_SECOND else "short: an SSD's own cache may hide its lasting rate",
    )
    return constant, min(len(done), pieces)


def _read(descriptor: int, filled: int, depth: int, seconds: float) -> tuple[Constant, Constant]:
    """Read filled pieces at random, so many at once: the rate, and the tail of one read."""

    def piece(buffer: mmap.mmap) -> bool:
        os.preadv(descriptor, [buffer], random.randrange(filled) * PIECE_BYTES)  # noqa: S311  # places, no secrets
        return True

    began = time.perf_counter_ns()
    done = _in_parallel(piece, depth, seconds, b"")
    spent_ns = time.perf_counter_ns() - began
    rates = spread_of(_slices(done, began))
    method = (
        f"{len(done)} direct reads of 1 MiB at random places of a file of {filled} MiB, {depth} at once, "
        f"over {spent_ns / 1e9:.1f} s"
    )
    rate = Constant(
        f"ssd.read.qd{depth}",
        "bytes/s",
        Source.MEASURED,
        len(done) * PIECE_BYTES * NS_PER_SECOND / spent_ns,
        rates.low,
        rates.high,
        len(done),
        f"{method}; interval: rates of {rates.samples} parts",
    )
    ordered = sorted(one.spent_ns for one in done)
    tail = Constant(
        f"ssd.read.qd{depth}.p99",
        "ns",
        Source.MEASURED,
        quantile(ordered, 0.99),
        ordered[0],
        ordered[-1],
        len(done),
        f"99th percentile of one read; {method}; interval: fastest and slowest",
    )
    return rate, tail


def _in_parallel(
    piece: Callable[[mmap.mmap], bool], depth: int, seconds: float, content: bytes
) -> Sequence[_Piece]:
    """Let `depth` threads transfer pieces for a while; whatever ends this early ends them too."""
    deadline, stop = Deadline(seconds), Event()

    def worker(_: int) -> list[_Piece]:
        done: list[_Piece] = []
        with page_aligned(PIECE_BYTES) as buffer:
            buffer[: len(content)] = content
            while not done or not (stop.is_set() or deadline.over()):
                began = time.perf_counter_ns()
                if not piece(buffer):
                    break
                ended = time.perf_counter_ns()
                done.append(_Piece(ended, ended - began))
        return done

    with ThreadPoolExecutor(depth) as pool:
        try:
            parts = list(pool.map(worker, range(depth)))
        finally:
            stop.set()
    return sorted((one for part in parts for one in part), key=lambda one: one.ended_ns)


def _slices(done: Sequence[_Piece], began_ns: int) -> list[float]:
    """Rates of equal parts of the time."""
    whole = max(1, done[-1].ended_ns - began_ns)
    counts = [0] * SLICES
    for one in done:
        counts[min(SLICES - 1, (one.ended_ns - began_ns) * SLICES // whole)] += 1
    return [count * PIECE_BYTES * SLICES * NS_PER_SECOND / whole for count in counts]
