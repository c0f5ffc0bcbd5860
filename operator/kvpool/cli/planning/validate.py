"""`kvpool simulate validate`: a real Mooncake store against the simulator, on the same requests."""

import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import Progress

from kvpool.api.quantity import parse_quantity
from kvpool.cli.answer import answer_as
from kvpool.cli.faults import CliError, ExitCode
from kvpool.cli.options import Format
from kvpool.cli.planning.output import output_flag
from kvpool.cli.planning.trace_files import open_workload, part_flags
from kvpool.cli.planning.validating.comparison import Comparison, compared
from kvpool.cli.planning.validating.master import master_binary
from kvpool.cli.planning.validating.replay import Store
from kvpool.cli.planning.validating.store import BATCH_BLOCKS, DIGEST_BYTES, SEGMENT_GRAIN_BYTES
from kvpool.cli.views.validation import validation_screen
from kvpool.sim.workloads.reading import Reading
from kvpool.sim.workloads.request import Workload

REQUESTS: Final = 2000
MOST_BLOCK_BYTES: Final = 1 << 20


@click.command()
@click.option(
    "--trace",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Trace with prefix blocks.",
)
@click.option(
    "--memory",
    "memory_list",
    default="32Mi,64Mi,128Mi",
    show_default=True,
    metavar="SIZE,...",
    help="Memory of the real store, in steps of 16Mi.",
)
@click.option(
    "--block-bytes",
    default="8Ki",
    show_default=True,
    metavar="SIZE",
    help="Bytes that stand for a block; real ones have MiB.",
)
@click.option("--disk", is_flag=True, help="A second tier of files, in a temporary folder.")
@output_flag
@part_flags
def validate(
    trace: Path, memory_list: str, block_bytes: str, disk: bool, output: str, reading: Reading
) -> None:
    """Put a trace's requests through a real Mooncake store and through the simulator, and print the error.

    Starts a master and a store on loopback for each size. 2000 requests unless --limit says otherwise. Exit
    code 1 when the simulator is off by more than 3 points, or the store returned wrong bytes.
    """
    master_binary()
    size = _size("--block-bytes", block_bytes)
    if not 0 < size <= MOST_BLOCK_BYTES or size % DIGEST_BYTES:
        raise CliError(
            f"--block-bytes is {size}, and must be a multiple of {DIGEST_BYTES} up to {MOST_BLOCK_BYTES}"
        )
    sizes = [_memory(text, size) for text in filter(None, memory_list.split(","))]
    if not sizes:
        raise CliError(f"--memory {memory_list!r} names no size; give one such as 64Mi")
    if reading.limit_lines is None:
        reading = replace(reading, limit_lines=REQUESTS)
    workload = open_workload(trace, reading=reading)
    if not any(request.blocks for request in workload.requests):
        raise CliError(f"{workload.source} tells no prefix blocks, so there is nothing to look up")
    # A plain end would leave the master behind; this one unwinds.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.TROUBLE))
    answer_as(validation_screen(workload, _all(workload, sizes, size, disk=disk)), Format(output))


def _all(workload: Workload, sizes: list[int], block_bytes: int, *, disk: bool) -> list[Comparison]:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        done = []
        for memory_bytes in sizes:
            task = progress.add_task(f"store of {memory_bytes >> 20} MiB", total=len(workload.requests))
            store = Store(memory_bytes, block_bytes, disk)
            done.append(compared(workload, store, partial(progress.advance, task)))
        return done


def _memory(text: str, block_bytes: int) -> int:
    text = text.strip()
    size = _size("--memory", text)
    if size < SEGMENT_GRAIN_BYTES or size % SEGMENT_GRAIN_BYTES:
        raise CliError(
            f"--memory {text} is {size} bytes, and must be a multiple of {SEGMENT_GRAIN_BYTES >> 20}Mi, "
            "which is Mooncake's grain"
        )
    if size < 2 * BATCH_BLOCKS * block_bytes:
        raise CliError(
            f"--memory {text} holds {size // block_bytes} blocks of {block_bytes} bytes, and must hold "
            f"{2 * BATCH_BLOCKS}, for that many are under way at once"
        )
    return size


def _size(flag: str, text: str) -> int:
    try:
        return parse_quantity(text.removesuffix("B"))
    except ValueError as error:
        raise CliError(f"{flag}: {error}") from None
