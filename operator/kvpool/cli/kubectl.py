"""`kubectl kvpool`: the plugin's verbs, and how their faults end."""

from importlib.metadata import version

import click

from kvpool.cli.ending import run_to_end
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
from kvpool.cli.verbs.whatif import whatif


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 findings, 2 wrong usage or the cluster could not be asked.",
)
@click.version_option(version("kvpool"), prog_name="kubectl-kvpool")
def kvpool() -> None:
    """KV-cache memory of AI supernodes: where it is, why, and what to do."""


for verb in (
    status,
    top,
    explain,
    timeline,
    plan,
    whatif,
    drain,
    undrain,
    pause,
    resume,
    report,
    adopt,
    uninstall,
):
    kvpool.add_command(verb)


def main() -> None:
    """Run the plugin; expected faults end with one message and exit code 2."""
    run_to_end(kvpool, "kubectl kvpool")
