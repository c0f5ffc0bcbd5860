"""The end of a verb: its screen on standard output, and the exit code that goes with it."""

import sys

import click

from kvpool.cli.faults import ExitCode
from kvpool.cli.options import Format, Options
from kvpool.cli.printing import render
from kvpool.cli.screen import Screen


def answer(screen: Screen, options: Options) -> None:
    """Print a screen; exits with code 1 when it has findings."""
    answer_as(screen, options.output)


def answer_as(screen: Screen, output: Format) -> None:
    """Print a screen in one form; exits with code 1 when it has findings."""
    click.echo(render(screen, output))
    if screen.findings:
        sys.exit(ExitCode.FINDINGS)
