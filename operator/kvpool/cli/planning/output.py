"""The flag of every verb of `kvpool` that says how its answer is printed."""

from typing import Final

import click

from kvpool.cli.options import Format

output_flag: Final = click.option(
    "-o",
    "--output",
    type=click.Choice([Format.TABLE.value, Format.JSON.value, Format.YAML.value]),
    default=Format.TABLE.value,
    show_default=True,
    help="How to print; json and yaml give bytes as integers.",
)
"""Gives a verb the argument `output`; `Format(output)` is what `answer_as` takes."""
