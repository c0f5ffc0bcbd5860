"""`kvpool size`: hardware options side by side."""

from pathlib import Path

import click

from kvpool.cli.answer import answer_as
from kvpool.cli.faults import CliError
from kvpool.cli.options import Format
from kvpool.cli.planning.documents import read_document, read_model
from kvpool.cli.planning.output import output_flag
from kvpool.cli.planning.sizing.asking import ask, instance_of
from kvpool.cli.planning.sizing.measured import Measured
from kvpool.cli.planning.sizing.options import SizingFile
from kvpool.cli.planning.sizing.spares import ask_spares
from kvpool.cli.planning.sizing.view import size_screen


@click.command()
@click.option(
    "-f", "--filename", "file", required=True, metavar="FILE", help="Options file; - is standard input."
)
@output_flag
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
    answer_as(size_screen(sizing, instance, answers, spares), Format(output))
