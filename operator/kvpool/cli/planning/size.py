"""`kvpool size`: hardware options side by side."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

import click

from kvpool.cli.answer import answer_as
from kvpool.cli.faults import CliError, ExitCode
from kvpool.cli.options import Format
from kvpool.cli.planning.documents import read_document, read_model
from kvpool.cli.planning.html.sizing import size_page
from kvpool.cli.planning.output import output_flag_with
from kvpool.cli.planning.sizing.asking import ask, instance_of
from kvpool.cli.planning.sizing.measured import Measured
from kvpool.cli.planning.sizing.options import SizingFile
from kvpool.cli.planning.sizing.spares import ask_spares
from kvpool.cli.planning.sizing.view import size_screen

HTML: Final = "html"


@click.command()
@click.option(
    "-f", "--filename", "file", required=True, metavar="FILE", help="Options file; - is standard input."
)
@output_flag_with(HTML, programs="json and yaml give bytes as integers, html is one file with plots")
def size(file: str, output: str) -> None:
    """Compare hardware options: how many sessions each serves, what limits it, and what a session costs.

    FILE names a model, the instance that serves it, what its sessions do, and the options.
    """

    def read(path: str) -> object:
        if file == "-" and not Path(path).is_absolute():
            message = f"{path}: give its whole path when the options come from standard input"
            raise CliError(message)
        return read_document(str(Path(file).parent / path))

    sizing = read_model(file, SizingFile)
    named = sizing.calibration
    measured = Measured(named, None if named is None else read(named))
    instance = instance_of(sizing, read, measured)
    answers = ask(sizing, instance, measured)
    domain = sizing.domain
    cards = sizing.serving.cards
    spares = None if domain is None else ask_spares(domain, instance.weight_bytes or 0, cards)
    screen = size_screen(sizing, instance, answers, spares)
    if output != HTML:
        answer_as(screen, Format(output))
        return
    click.echo(size_page(sizing, instance, answers, screen, version("kvpool")), nl=False)
    if screen.findings:
        sys.exit(ExitCode.FINDINGS)
