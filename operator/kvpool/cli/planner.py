"""`kvpool`: the planner and the simulator as a command line of its own, which needs no cluster.

It imports none of kopf, kubernetes and grpc, so that it runs where only click, rich and PyYAML are; and of
its own verbs only the one that is asked for.
"""

from importlib.metadata import version
from pathlib import Path
from typing import Final

import click

from kvpool.cli.ending import run_to_end
from kvpool.cli.faults import CliError
from kvpool.cli.lazy_group import LazyGroup, Verb
from kvpool.plan.nearest_name import nearest_name

_PLACE: Final = "kvpool.cli.planning"

SIMULATIONS: Final = {
    "run": Verb(f"{_PLACE}.simulate", "simulate_run", "Simulate a scenario, a YAML or JSON file."),
    "cache": Verb(f"{_PLACE}.cache", "cache", "Hit rates of a trace, by capacity and eviction rule."),
    "threshold": Verb(
        f"{_PLACE}.threshold", "threshold_verb", "From which pool size on completion-time routing pays."
    ),
    "validate": Verb(f"{_PLACE}.validate", "validate", "Hold the simulator against a real Mooncake store."),
    "claims": Verb(f"{_PLACE}.claims", "claims", "Run published claims again."),
}
"""Below `simulate`; the one named `run` is what `kvpool simulate FILE` means."""
TRACES: Final = {
    "import": Verb(f"{_PLACE}.trace", "import_trace", "Make a trace of a log, without its texts."),
}
"""Below `trace`."""
VERBS: Final = {
    "size": Verb(f"{_PLACE}.size", "size", "Compare hardware options: sessions, limits, cost."),
    "ratio": Verb(f"{_PLACE}.ratio", "ratio", "How many instances should prefill, and how many decode."),
    "calibrate": Verb(f"{_PLACE}.calibrate", "calibrate", "Measure the constants of this machine."),
    "simulate": Verb(__name__, "simulate", "Run workloads through the planner's own decisions."),
    "trace": Verb(__name__, "trace", "Make traces from what your own servers have logged."),
}


class FileOrVerb(LazyGroup):
    """A group whose first argument may be a file: `simulate FILE` is `simulate run FILE`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Put `run` before a first argument that is no verb.

        Raises CliError when it is no file either, and looks like a verb.
        """
        if args and args[0] not in self.verbs:
            near = nearest_name(args[0], self.verbs)
            if near and not Path(args[0]).exists():
                raise CliError(
                    f"{args[0]!r} is neither a file nor a verb of {self.name}; did you mean {near!r}?"
                )
            args = ["run", *args]
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 findings, 2 wrong usage or a file that cannot be used.",
)
@click.version_option(version("kvpool"), prog_name="kvpool")
def kvpool() -> None:
    """KV-cache memory of AI supernodes: how much, where, to whom, and what if."""


@click.group(cls=FileOrVerb, verbs=SIMULATIONS)
def simulate() -> None:
    """Run workloads through the planner's own decisions: `kvpool simulate SCENARIO.yaml`."""


@click.group(cls=LazyGroup, verbs=TRACES)
def trace() -> None:
    """Make traces from what your own servers have logged."""


def main() -> None:
    """Run the command line; expected faults end with one message and exit code 2."""
    run_to_end(kvpool, "kvpool")
