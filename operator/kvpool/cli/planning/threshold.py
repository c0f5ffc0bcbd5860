"""`kvpool simulate threshold`: from how many instances on clever routing pays."""

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from kvpool.cli.answer import answer_as
from kvpool.cli.faults import CliError, ExitCode
from kvpool.cli.options import Format
from kvpool.cli.planning.documents import read_model
from kvpool.cli.planning.output import output_flag_with
from kvpool.cli.planning.own_rule import ROUTING, own_rule
from kvpool.cli.planning.trace_files import open_workload, reading_flags
from kvpool.cli.views.threshold import threshold_csv, threshold_screen
from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.plan.routing.router import RouterFactory
from kvpool.sim.building import bytes_per_token, link_of, objectives_of, room_tokens, timing_of
from kvpool.sim.claims.router_settings import CLEVER, RouterMix
from kvpool.sim.pools.density import alone, parts
from kvpool.sim.pools.pool import Card, Pool
from kvpool.sim.pools.threshold import Question, Threshold, threshold
from kvpool.sim.scenario import Scenario
from kvpool.sim.simulation import workload_of
from kvpool.sim.workloads.generators.mix import Mix, mix
from kvpool.sim.workloads.reading import Reading
from kvpool.sim.workloads.request import Workload

CSV: Final = "csv"
LARGEST_POOL: Final = 64
DENSE: Final = 2.0
"""Requests a second for each card of the largest pool in the mix that is made: more than any load needs."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which pools the table has, and what they serve."""

    sizes: tuple[int, ...]
    slowest: tuple[float, ...]
    logs: int
    seconds: float
    goodput: float
    seed: int


class _Numbers(click.ParamType[tuple[float, ...]]):
    """Numbers with commas between them, each within bounds."""

    name = "NUMBERS"

    def __init__(self, least: float, most: float, *, whole: bool) -> None:
        self._least = least
        self._most = most
        self._whole = whole

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        found: list[float] = []
        kind = "whole numbers" if self._whole else "numbers"
        for text in str(value).split(","):
            try:
                number = float(int(text)) if self._whole else float(text)
            except ValueError:
                self.fail(f"{text.strip()!r}: write {kind} with commas between them", param, ctx)
            if not self._least <= number <= self._most:
                self.fail(f"{number:g} is not between {self._least:g} and {self._most:g}", param, ctx)
            found.append(number)
        return tuple(dict.fromkeys(found))


def _table_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the flags that say what the table has; it gets them as `wanted`."""

    @functools.wraps(verb)
    def with_wanted(
        *,
        sizes: tuple[float, ...],
        slowest: tuple[float, ...],
        logs: int,
        seconds: float,
        goodput: float,
        seed: int,
        **others: object,
    ) -> None:
        whole = tuple(sorted(int(size) for size in sizes))
        verb(wanted=Wanted(whole, slowest, logs, seconds, goodput, seed), **others)

    for flag in (
        click.option("--seed", type=int, default=1, show_default=True, help="Of everything that is drawn."),
        click.option(
            "--goodput",
            type=click.FloatRange(0.05, 0.999),
            default=0.9,
            show_default=True,
            help="Share of promises that counting requests keeps at the load that is used.",
        ),
        click.option(
            "--seconds",
            type=click.FloatRange(10, 86_400),
            default=200.0,
            show_default=True,
            help="Length of each log of the mix.",
        ),
        click.option(
            "--logs",
            type=click.IntRange(1, 50),
            default=5,
            show_default=True,
            help="Logs that each pool serves: seeds of the mix, or parts of the trace.",
        ),
        click.option(
            "--slowest",
            type=_Numbers(0.05, 1, whole=False),
            default="1,0.8,0.6",
            show_default=True,
            help="Speeds of the slowest card against the fastest; 1: all cards are equal.",
        ),
        click.option(
            "--sizes",
            type=_Numbers(1, LARGEST_POOL, whole=True),
            default="2,3,5,8",
            show_default=True,
            help="Decode instances of the pools.",
        ),
    ):
        flag(with_wanted)
    return with_wanted


@click.command("threshold")
@click.argument("scenario_file", metavar="[SCENARIO]", required=False)
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Log of your requests, plain or gzip; else the scenario's workload, or a mix of three kinds.",
)
@click.option("--policy", metavar="MODULE:CLASS", help="A routing rule of your own, for the clever one.")
@output_flag_with(CSV, programs="json, yaml and csv are for programs")
@_table_flags
@reading_flags
def threshold_verb(
    scenario_file: str | None,
    trace: Path | None,
    policy: str | None,
    output: str,
    wanted: Wanted,
    form: str | None,
    reading: Reading,
) -> None:
    """From how many decode instances on does completion-time routing pay?

    Prints what it gains over the best of the simple rules, by size of the pool and by how unequal its cards
    are, each at a load that tells. SCENARIO names the model, the card and the promises.
    """
    scenario = read_model(scenario_file, Scenario) if scenario_file is not None else None
    try:
        logs = (
            _made(scenario, wanted)
            if trace is None
            else _parts_of(open_workload(trace, form, reading), wanted.logs)
        )
        pool = RouterMix().pool(1, 1.0) if scenario is None else _pool_of(scenario, logs[0].block_tokens)
        for log in logs:
            _check_promises(log, pool)
        question = Question(
            pool,
            logs,
            wanted.sizes,
            wanted.slowest,
            _clever(policy),
            wanted_goodput=wanted.goodput,
            seed=wanted.seed,
        )
        with _progress(len(wanted.sizes) * len(wanted.slowest)) as told:
            found = threshold(question, told)
    except ValueError as error:
        raise CliError(str(error)) from None
    _print(question, found, output)


def _check_promises(log: Workload, pool: Pool) -> None:
    for slo_class in sorted({request.slo_class for request in log.requests} - set(pool.objectives)):
        raise CliError(
            f"{log.source} has requests of class {slo_class!r}, and there are promises for "
            f"{', '.join(sorted(pool.objectives))}: add promises.{slo_class} to a scenario"
        )


def _print(question: Question, found: Threshold, output: str) -> None:
    screen = threshold_screen(question, found)
    if output != CSV:
        answer_as(screen, Format(output))
        return
    click.echo(threshold_csv(found), nl=False)
    for finding in screen.findings:
        click.echo(f"! {finding}", err=True)
    if screen.findings:
        sys.exit(ExitCode.FINDINGS)


def _clever(policy: str | None) -> RouterFactory:
    if policy is None:
        return ROUTERS[CLEVER]
    rule = own_rule(policy).router
    if rule is None:
        raise CliError(f"--policy {policy}: this is an eviction rule; a routing rule has `choose`; {ROUTING}")
    return rule


def _made(scenario: Scenario | None, wanted: Wanted) -> tuple[Workload, ...]:
    seeds = range(wanted.seed, wanted.seed + wanted.logs)
    if scenario is None:
        parameters = Mix(wanted.seconds, DENSE * wanted.sizes[-1])
        return tuple(mix(parameters, seed) for seed in seeds)
    return tuple(alone(workload_of(scenario, seed)) for seed in seeds)


def _parts_of(workload: Workload, logs: int) -> tuple[Workload, ...]:
    if len(workload.requests) < 2 * logs:
        raise CliError(
            f"{workload.source} has {len(workload.requests)} requests, too few for {logs} logs: give a "
            "longer one, or fewer --logs"
        )
    return parts(alone(workload), logs)


def _pool_of(scenario: Scenario, block_tokens: int) -> Pool:
    timing, _ = timing_of(scenario.model)
    room = room_tokens(scenario, block_tokens)
    card = Card(timing, room, link_of(scenario.fleet.link), bytes_per_token(scenario.model))
    return replace(
        RouterMix().pool(1, 1.0),
        card=card,
        prediction_sigma=scenario.routing.length_error,
        report_interval_ns=round(scenario.routing.report_interval * 1e9),
        objectives=objectives_of(scenario),
    )


@contextmanager
def _progress(cells: int) -> Iterator[Callable[[int], None] | None]:
    """Show a bar on standard error while the block runs, on a terminal only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("pools"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("pools", total=cells)
        yield lambda done: bar.update(task, completed=done)
