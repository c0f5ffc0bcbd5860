"""`kvpool calibrate`: the constants of this machine, measured, with method, samples, interval and date."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from kvpool.cli.clock import now
from kvpool.cli.faults import CliError
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
from kvpool.cli.printing import render, render_document
from kvpool.plan.calibration.constants import Calibration, Constant
from kvpool.plan.calibration.document import to_document
from kvpool.plan.timing.cards import CARDS

SHARES: Final = {"memory": 0.2, "ssd": 0.5, "network": 0.2, "accelerator": 0.1}
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
    default=Path(),
    show_default=True,
    metavar="DIR",
    help="A folder on the SSD to measure.",
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
    folder: Path,
    file_mebibytes: int,
    card: str | None,
    seconds: float,
    output: str,
) -> None:
    """Measure host memory, SSD, loopback network and accelerator of this machine.

    What cannot be measured says why. Keep the answer with -o yaml: `kvpool size` can name the file.
    """
    if not local:
        raise CliError("calibrate measures the machine that it runs on: say so with --local")
    wanted = parts or tuple(SHARES)
    whole = sum(SHARES[part] for part in wanted)
    console = Console(stderr=True)
    found: list[Constant] = []
    date = now().text()
    for part in SHARES:
        if part in wanted:
            with console.status(f"measuring {part}"):
                found.extend(
                    _measured(part, folder, file_mebibytes * MIB, card, seconds * SHARES[part] / whole)
                )
    calibration = Calibration(date, described(), tuple(found))
    form = Format(output)
    if form is Format.TABLE:
        click.echo(render(calibration_screen(calibration), form))
    else:
        click.echo(render_document(to_document(calibration), form))


def _measured(
    part: str, folder: Path, file_bytes: int, card: str | None, seconds: float
) -> Iterator[Constant]:
    if part == "memory":
        return measure_host_memory(memory_nodes(), limits(), seconds)
    if part == "ssd":
        return measure_ssd(folder, file_bytes, seconds)
    if part == "network":
        return measure_loopback(seconds)
    return measure_accelerator(cuda.opened, card, seconds)
