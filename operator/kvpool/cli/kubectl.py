"""`kubectl kvpool`: the plugin's verbs, and how their faults end."""

import sys
from importlib.metadata import version
from typing import Final

import click

from kvpool.cli.ending import run_to_end
from kvpool.cli.faults import ExitCode
from kvpool.cli.lazy_group import LazyGroup, Verb

_PLACE: Final = "kvpool.cli.verbs"

VERBS: Final = {
    "status": Verb(f"{_PLACE}.status", "status", "Show where the memory went, with the age of each figure."),
    "top": Verb(f"{_PLACE}.top", "top", "Show how full pools and nodes are, and the weights of slots."),
    "explain": Verb(f"{_PLACE}.explain", "explain", "Say why an object is as it is, and what comes next."),
    "timeline": Verb(f"{_PLACE}.timeline", "timeline", "List what happened, oldest first."),
    "plan": Verb(f"{_PLACE}.plan", "plan", "Say what applying a file would do, without doing it."),
    "whatif": Verb(f"{_PLACE}.whatif", "whatif", "Say what would follow: memory, moves, spares."),
    "drain": Verb(f"{_PLACE}.drain", "drain", "Put a node or one device on its maintenance list."),
    "undrain": Verb(f"{_PLACE}.drain", "undrain", "Take a node or one device off its maintenance list."),
    "pause": Verb(f"{_PLACE}.pause", "pause", "Stop new actions, for the cluster or one object."),
    "resume": Verb(f"{_PLACE}.pause", "resume", "Let new actions start again."),
    "report": Verb(
        f"{_PLACE}.report", "report", "Write objects and events into one archive, without secrets."
    ),
    "adopt": Verb(f"{_PLACE}.adopt", "adopt", "Find Mooncake masters, engines and gateways in a namespace."),
    "uninstall": Verb(f"{_PLACE}.uninstall", "uninstall", "Show what `helm uninstall` leaves, or clear it."),
}


@click.group(
    cls=LazyGroup,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 findings, 2 wrong usage or the cluster could not be asked.",
)
@click.version_option(version("kvpool"), prog_name="kubectl-kvpool")
def kvpool() -> None:
    """KV-cache memory of AI supernodes: where it is, why, and what to do."""


def main() -> None:
    """Run the plugin; expected faults end with one message and exit code 2."""
    try:
        run_to_end(kvpool, "kubectl kvpool")
    except ModuleNotFoundError as error:
        package = (error.name or "kvpool").partition(".")[0]
        if package == "kvpool":
            raise
        # `pip install kvpool` alone is the planner, and brings this command all the same.
        click.echo(f"error: {package} is not installed: install kvpool[cli], not kvpool alone", err=True)
        sys.exit(ExitCode.TROUBLE)
