"""`kvpool`: the planner and the simulator as a command line of its own, which needs no cluster.

It imports none of kopf, kubernetes and grpc, so that it runs where only click, rich and PyYAML are.
"""

from importlib.metadata import version
from pathlib import Path
from typing import Final

import click

from kvpool.cli.ending import run_to_end
from kvpool.cli.faults import CliError
from kvpool.cli.planning.cache import cache
from kvpool.cli.planning.calibrate import calibrate
from kvpool.cli.planning.claims import claims
from kvpool.cli.planning.ratio import ratio
from kvpool.cli.planning.simulate import simulate_run
from kvpool.cli.planning.size import size
from kvpool.cli.planning.suggestions import suggestion
from kvpool.cli.planning.threshold import threshold_verb
from kvpool.cli.planning.trace import import_trace
from kvpool.cli.planning.validate import validate


class FileOrVerb(click.Group):
    """A group whose first argument may be a file: `simulate FILE` is `simulate run FILE`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Put `run` before a first argument that is no verb.

        Raises CliError when it is no file either, and looks like a verb.
        """
        if args and "run" in self.commands and args[0] not in self.commands:
            near = suggestion(args[0], self.commands)
            if near and not Path(args[0]).exists():
                raise CliError(f"{args[0]!r} is neither a file nor a verb of {self.name}{near}")
            args = ["run", *args]
        return super().resolve_command(ctx, args)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 findings, 2 wrong usage or a file that cannot be used.",
)
@click.version_option(version("kvpool"), prog_name="kvpool")
def kvpool() -> None:
    """KV-cache memory of AI supernodes: how much, where, to whom, and what if."""


@click.group(cls=FileOrVerb)
def simulate() -> None:
    """Run workloads through the planner's own decisions: `kvpool simulate SCENARIO.yaml`."""


@click.group()
def trace() -> None:
    """Make traces from what your own servers have logged."""


VERBS: Final[tuple[click.Command, ...]] = (size, ratio, calibrate)
SIMULATIONS: Final[tuple[click.Command, ...]] = (
    simulate_run,
    cache,
    threshold_verb,
    validate,
    claims,
)
"""Below `simulate`; the one named `run` is what `kvpool simulate FILE` means."""
TRACES: Final[tuple[click.Command, ...]] = (import_trace,)
"""Below `trace`."""

for group, verbs in ((kvpool, VERBS), (simulate, SIMULATIONS), (trace, TRACES)):
    for verb in verbs:
        group.add_command(verb)
    if group is not kvpool and verbs:
        kvpool.add_command(group)


def main() -> None:
    """Run the command line; expected faults end with one message and exit code 2."""
    run_to_end(kvpool, "kvpool")
