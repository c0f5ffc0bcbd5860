"""How a command line ends: expected faults are told in one message and exit code 2."""

import sys
from io import TextIOWrapper

import click

from kvpool.cli.faults import CliError, ExitCode


def run_to_end(root: click.Group, name: str) -> None:
    """Run a command line under its name; returns only after success without findings."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # As kubectl does, whatever the locale says: names and texts of objects may hold any character.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        root.main(prog_name=name, standalone_mode=False)
    except CliError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(ExitCode.TROUBLE)
    except click.ClickException as error:
        error.show()
        sys.exit(ExitCode.TROUBLE)
    except OSError as error:
        # What a verb itself reads and writes is told above; this is the answer, to a full disk for one.
        click.echo(f"error: the answer could not be written: {error}", err=True)
        sys.exit(ExitCode.TROUBLE)
    except click.exceptions.Abort:
        click.echo("stopped", err=True)
        sys.exit(ExitCode.TROUBLE)
