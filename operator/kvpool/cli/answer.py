"""The end of a verb: its screen on standard output, and the exit code that goes with it."""

import sys

import click

from kvpool.cli.faults import ExitCode
from kvpool.cli.options import Options
from kvpool.cli.printing import render
from kvpool.cli.screen import Screen


def answer(screen: Screen, options: Options) -> None:
    """Print a screen; exits with code 1 when it has findings."""
    click.echo(render(screen, options.output))
    if screen.findings:
        sys.exit(ExitCode.FINDINGS)
