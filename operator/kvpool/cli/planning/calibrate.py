"""`kvpool calibrate`: the constants of this machine, measured, with method, samples, interval and date."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from kvpool.cli.answer import answer_as
from kvpool.cli.clock import now
from kvpool.cli.faults import CliError, ExitCode
from kvpool.cli.options import Format
from kvpool.cli.planning.calibration_view import calibration_screen
from kvpool.cli.planning.measuring import cuda
from kvpool.cli.planning.measuring.accelerator import measure_accelerator
from kvpool.cli.planning.measuring.host_memory import measure_host_memory
from kvpool.cli.planning.measuring.loopback import measure_loopback
from kvpool.cli.planning.measuring.machine import described, limits, memory_nodes
from kvpool.cli.planning.measuring.ssd import measure_ssd
from kvpool.cli.planning.number_range import NumberRange
from kvpool.cli.planning.output import output_flag
from kvpool.cli.printing import render_document
from kvpool.plan.calibration.constants import Calibration, Constant
from kvpool.plan.calibration.document import to_document
from kvpool.plan.timing.cards import CARDS

SSD: Final = "ssd"
SHARES: Final = {"memory": 0.2, SSD: 0.5, "network": 0.2, "accelerator": 0.1}
"""Of the time, for each part that can be measured."""
MIB: Final = 1 << 20


@click.command()
@click.option("--local", is_flag=True, help="Measure this machine; there is nothing else yet.")
@click.option(
    "--part",
    "parts",
    type=click.Choice(list(SHARES)),
    multiple=True,
    help="Measure this part alone; may be repeated.  [default: all]",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A folder on the SSD to measure.  [default: .]",
)
@click.option(
    "--file-size",
    "file_mebibytes",
    type=click.IntRange(64, 65_536),
    default=1024,
    show_default=True,
    metavar="MIB",
    help="Largest file that is written there; it has no name, and nothing of it stays.",
)
@click.option("--card", type=click.Choice(sorted(CARDS)), help="Take this accelerator's data sheet.")
@click.option(
    "--seconds",
    type=NumberRange(1, 3600),
    default=60.0,
    show_default=True,
    help="About how long to measure, all together.",
)
@output_flag
def calibrate(  # click hands over every flag
    local: bool,
    parts: tuple[str, ...],
    folder: Path | None,
    file_mebibytes: int,
    card: str | None,
    seconds: float,
    output: str,
) -> None:
    """Measure host memory, SSD, loopback network and accelerator of this machine.

    What cannot be measured says why; the exit code is 1 when that is all of a part that --part or --folder
    asks for. Keep the answer with -o yaml: `kvpool size` can name the file.
    """
    if not local:
        raise CliError("calibrate measures the machine that it runs on: say so with --local")
    wanted = parts or tuple(SHARES)
    if folder is not None:
        _check_folder(folder, wanted)
    whole = sum(SHARES[part] for part in wanted)
    console = Console(stderr=True)
    found: list[Constant] = []
    findings: list[str] = []
    date = now().text()
    for part in SHARES:
        if part in wanted:
            with console.status(f"measuring {part}"):
                share = seconds * SHARES[part] / whole
                constants = list(_measured(part, folder or Path(), file_mebibytes * MIB, card, share))
            found.extend(constants)
            if part in parts or (part == SSD and folder is not None):
                findings.extend(_nothing_of(part, constants))
    calibration = Calibration(date, described(), tuple(found))
    form = Format(output)
    if form in (Format.TABLE, Format.WIDE):
        answer_as(calibration_screen(calibration, findings), form)
        return
    # No findings in the document: it is the file that others read.
    click.echo(render_document(to_document(calibration), form))
    for finding in findings:
        click.echo(finding, err=True)
    if findings:
        sys.exit(ExitCode.FINDINGS)


def _check_folder(folder: Path, parts: Sequence[str]) -> None:
    """Refuse before a minute of other measurements what --folder cannot be."""
    if SSD not in parts:
        raise CliError(f"--folder {folder} is for the SSD: add --part {SSD}, or leave it out")
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "is not there"
        raise CliError(f"--folder {folder} {what}: name a folder on the SSD to measure")


def _nothing_of(part: str, constants: Sequence[Constant]) -> Iterator[str]:
    """What is to be said of a part that was asked for and of which nothing is known."""
    if all(constant.value is None for constant in constants):
        yield f"nothing of {part} was measured: {constants[0].reason}"


def _measured(
    part: str, folder: Path, file_bytes: int, card: str | None, seconds: float
) -> Iterator[Constant]:
    if part == "memory":
        return measure_host_memory(memory_nodes(), limits(), seconds)
    if part == SSD:
        return measure_ssd(folder, file_bytes, seconds)
    if part == "network":
        return measure_loopback(seconds)
    return measure_accelerator(cuda.opened, card, seconds)
