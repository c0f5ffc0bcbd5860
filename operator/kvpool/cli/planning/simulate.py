"""`kvpool simulate SCENARIO.yaml`: a workload through a fleet, and what comes out."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from kvpool.cli.answer import answer_as
from kvpool.cli.faults import CliError, ExitCode
from kvpool.cli.options import Format
from kvpool.cli.planning.documents import read_model
from kvpool.cli.planning.html.simulation import simulation_page
from kvpool.cli.planning.output import output_flag_with
from kvpool.cli.planning.own_rule import OwnRule, own_rule
from kvpool.cli.planning.trace_files import open_workload, reading_flags
from kvpool.cli.views.simulation import simulation_screen
from kvpool.sim.report.document import csv_text
from kvpool.sim.report.figures import Report
from kvpool.sim.scenario import Scenario
from kvpool.sim.simulation import run, workload_of
from kvpool.sim.workloads.reading import Reading
from kvpool.sim.workloads.request import Workload

CSV: Final = "csv"
HTML: Final = "html"
MOST_SEEDS: Final = 1000


@click.command("run")
@click.argument("scenario_file", metavar="SCENARIO", type=str)
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Trace to serve in the place of the scenario's workload, plain or gzip; - is standard input.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, MOST_SEEDS),
    default=1,
    show_default=True,
    help="Runs, with the scenario's seed and those after it.",
)
@click.option(
    "--policy", metavar="MODULE:CLASS", help="A routing or eviction rule of your own, for the scenario's."
)
@output_flag_with(
    CSV, HTML, programs="times of json, yaml and csv are nanoseconds, html is one file with plots"
)
@reading_flags
def simulate_run(
    scenario_file: str,
    trace: Path | None,
    seeds: int,
    policy: str | None,
    output: str,
    form: str | None,
    reading: Reading,
) -> None:
    """Simulate a SCENARIO, a YAML or JSON file (- is standard input).

    What is told: goodput by class of service, latencies by the deepest tier that a prefix came from, bytes
    over each boundary, links, and where all inputs are from. Equal seeds give equal answers.
    """
    scenario = read_model(scenario_file, Scenario)
    rule = OwnRule() if policy is None else own_rule(policy)
    workload = open_workload(trace, form, reading) if trace is not None else None
    reports = [_simulated(scenario, workload, scenario.seed + more, rule) for more in range(seeds)]
    screen = simulation_screen(reports)
    if output == CSV:
        click.echo(csv_text(reports), nl=False)
    elif output == HTML:
        click.echo(simulation_page(scenario, reports, version("kvpool"), policy or ""), nl=False)
    else:
        answer_as(screen, Format(output))
    if screen.findings:
        sys.exit(ExitCode.FINDINGS)


def _simulated(scenario: Scenario, workload: Workload | None, seed: int, rule: OwnRule) -> Report:
    try:
        served = workload_of(scenario, seed) if workload is None else workload
        with _progress(f"seed {seed}", len(served.requests)) as told:
            return run(scenario, served, seed=seed, router=rule.router, eviction=rule.eviction, told=told)
    except (ValueError, OverflowError) as error:  # the latter: figures too large for any clock
        raise CliError(f"{scenario.name}: {error}") from None


@contextmanager
def _progress(title: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """Show a bar on standard error while the block runs, on a terminal only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda left: bar.update(task, completed=total - left)
