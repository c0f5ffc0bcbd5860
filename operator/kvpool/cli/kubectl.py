"""`kubectl kvpool`: the plugin's verbs, and how their faults end."""

import sys
from importlib.metadata import version
from io import TextIOWrapper

import click

from kvpool.cli.faults import CliError, ExitCode
from kvpool.cli.verbs.adopt import adopt
from kvpool.cli.verbs.drain import drain, undrain
from kvpool.cli.verbs.explain import explain
from kvpool.cli.verbs.pause import pause, resume
from kvpool.cli.verbs.plan import plan
from kvpool.cli.verbs.report import report
from kvpool.cli.verbs.status import status
from kvpool.cli.verbs.timeline import timeline
from kvpool.cli.verbs.top import top
from kvpool.cli.verbs.uninstall import uninstall


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 findings, 2 wrong usage or the cluster could not be asked.",
)
@click.version_option(version("kvpool"), prog_name="kubectl-kvpool")
def kvpool() -> None:
    """KV-cache memory of AI supernodes: where it is, why, and what to do."""


for verb in (status, top, explain, timeline, plan, drain, undrain, pause, resume, report, adopt, uninstall):
    kvpool.add_command(verb)


def main() -> None:
    """Run the plugin; expected faults end with one message and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # As kubectl does, whatever the locale says: names and texts of objects may hold any character.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        kvpool.main(prog_name="kubectl kvpool", standalone_mode=False)
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
