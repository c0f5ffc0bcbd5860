"""The flag of every verb of `kvpool` that says how its answer is printed."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from kvpool.cli.options import Format

_F = TypeVar("_F", bound=Callable[..., Any])


def output_flag_with(*more: str, programs: str) -> Callable[[_F], _F]:
    """Return the flag of a verb that prints in more forms than all do.

    It gives the verb the argument `output`; unless that is one of `more`, `Format(output)` is what
    `answer_as` takes. `programs` ends the help: what programs read.
    """
    return click.option(
        "-o",
        "--output",
        type=click.Choice([*(known.value for known in Format), *more]),
        default=Format.TABLE.value,
        show_default=True,
        help=f"How to print; wide has every column in long lines, {programs}.",
    )


output_flag: Final = output_flag_with(programs="json and yaml give bytes as integers")
"""Of a verb that prints in no other form."""
