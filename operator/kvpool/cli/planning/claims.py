"""`kvpool simulate claims`: published claims, run again and held against their gates."""

import concurrent.futures
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import yaml
from pydantic import ValidationError
from rich.console import Console
from rich.progress import Progress

from kvpool.cli.answer import answer_as
from kvpool.cli.faults import CliError
from kvpool.cli.options import Format
from kvpool.cli.planning.claim_files import setting_of
from kvpool.cli.planning.output import output_flag
from kvpool.cli.planning.suggestions import faults_of, suggestion
from kvpool.cli.planning.trace_files import open_workload
from kvpool.cli.texts import documents_of
from kvpool.cli.views.claims import ClaimAnswer, claims_screen
from kvpool.sim.claims.experiment import Experiment
from kvpool.sim.claims.register import EXPERIMENTS
from kvpool.sim.claims.row import ClaimRow, Verdict

TRACE_FILES: Final = {
    "conversation": "mooncake_fast25_conversation_trace.jsonl",
    "synthetic": "mooncake_fast25_synthetic_trace.jsonl",
    "weka": "weka_claude_code_710.jsonl",
    "azure-conv": "azure_llm_2023_conv.csv",
    "azure-code": "azure_llm_2023_code.csv",
    "arxiv": "vidur_arxiv_summarization_lengths.csv",
}
"""The file of each trace, as published; it may be compressed."""


@dataclass(frozen=True, slots=True)
class _Order:
    """One claim to run: its number, its parameters, and where traces are."""

    number: str
    parameters: Mapping[str, Any]
    traces: Path


@click.command()
@click.argument("numbers", nargs=-1, metavar="[NUMBER]...")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="[NUMBER.]KEY=VALUE",
    help="Another value for a parameter of a claim, or of all that have it; may be repeated.",
)
@click.option("--reduced", is_flag=True, help="The short setting of each claim: seconds instead of minutes.")
@click.option(
    "--parameters",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Where the files of parameters are, such as c3.yaml; those that come with kvpool.",
)
@click.option(
    "--traces",
    type=click.Path(path_type=Path),
    default=Path("traces"),
    show_default=True,
    metavar="DIR",
    help="Where the public traces are.",
)
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Claims run at once; one for each processor.")
@output_flag
def claims(
    numbers: tuple[str, ...],
    settings: tuple[str, ...],
    reduced: bool,
    parameters: Path | None,
    traces: Path,
    jobs: int | None,
    output: str,
) -> None:
    """Run published claims again: all of them, or those with a NUMBER such as C3.

    Exit code 1 when one of them does not come out.
    """
    chosen = _chosen(numbers)
    orders = [
        _Order(one.claim.number, changed, traces)
        for one, changed in zip(
            chosen, _parameters(chosen, settings, parameters, reduced=reduced), strict=True
        )
    ]
    answers = {found.row.claim.number: found for found in _run_all(orders, jobs or os.cpu_count() or 1)}
    in_order = [answers[order.number] for order in orders]
    answer_as(claims_screen(in_order, wide=output == Format.WIDE), Format(output))


def _chosen(numbers: Sequence[str]) -> list[Experiment]:
    """The experiments with those numbers, in the register's order; all of them for none."""
    known = {experiment.claim.number: experiment for experiment in EXPERIMENTS}
    folded = {number.lower(): number for number in known}
    for number in numbers:
        if number.lower() not in folded:
            near = suggestion(number, known)
            raise CliError(f"there is no claim {number!r}{near or '; known are ' + ', '.join(known)}")
    wanted = {folded[number.lower()] for number in numbers} or set(known)
    return [experiment for number, experiment in known.items() if number in wanted]


def _parameters(
    chosen: Sequence[Experiment], settings: Sequence[str], folder: Path | None, *, reduced: bool
) -> Iterator[dict[str, Any]]:
    """The parameters of each, checked. Raises CliError."""
    changes = [_setting(text) for text in settings]
    for number, key, _ in changes:
        fits = [one for one in chosen if number in ("", one.claim.number.lower())]
        if not fits:
            raise CliError(
                f"--set {number.upper()}.{key}: {number.upper()} is none of the claims that are run"
            )
        if not any(key in one.parameters.model_fields for one in fits):
            known = sorted({name for one in fits for name in one.parameters.model_fields})
            near = suggestion(key, known) or f"; known are {', '.join(known) or 'none'}"
            raise CliError(f"--set {key}: no claim that is run has it{near}")
    for one in chosen:
        mine = setting_of(one, folder, reduced=reduced)
        for number, key, value in changes:
            if number in ("", one.claim.number.lower()) and key in one.parameters.model_fields:
                mine[key] = value
        try:
            yield one.parameters.model_validate(mine).model_dump(mode="json")
        except ValidationError as error:
            listed = "".join(f"\n  {fault}" for fault in faults_of(error, one.parameters))
            raise CliError(f"--set does not fit {one.claim.number}:{listed}") from None


def _setting(text: str) -> tuple[str, str, Any]:
    """Number in small letters (empty: all), key and value of one flag."""
    name, equals, value = text.partition("=")
    number, dot, key = name.rpartition(".")
    if not equals or not key or (dot and not number):
        raise CliError(f"--set {text!r} is not KEY=VALUE or NUMBER.KEY=VALUE: write C3.seed=2")
    try:
        documents = documents_of(value)
    except yaml.YAMLError as error:
        raise CliError(f"--set {text!r}: the value cannot be read: {' '.join(str(error).split())}") from None
    if len(documents) > 1:
        raise CliError(f"--set {text!r}: the value holds {len(documents)} documents; write one")
    return number.lower(), key, documents[0] if documents else None


def _run_all(orders: Sequence[_Order], jobs: int) -> Iterator[ClaimAnswer]:
    """Run them in processes of their own; what comes out does not depend on how many."""
    console = Console(stderr=True)
    context = multiprocessing.get_context("spawn")
    with (
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
        concurrent.futures.ProcessPoolExecutor(min(jobs, len(orders)), context, _end_with_command) as pool,
    ):
        task = progress.add_task("claims", total=len(orders))
        running = {pool.submit(_run, order): order for order in orders}
        try:
            # At the end the pool is waited for: its threads must not outlive the files that they read.
            for done in concurrent.futures.as_completed(running):
                found = done.result()
                progress.update(task, advance=1, description=f"claims ({found.row.claim.number} done)")
                yield found
        except BaseException:  # whatever ends it, Ctrl-C too: what has not begun is not to begin
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _end_with_command() -> None:
    """Let a worker end when the command was killed: else it would wait for work for ever."""
    command = multiprocessing.parent_process()

    def watch() -> None:
        if command is not None:
            command.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _run(order: _Order) -> ClaimAnswer:
    """Run one claim; a trace that is not there makes it NotRun, with what is missing."""
    experiment = next(one for one in EXPERIMENTS if one.claim.number == order.number)
    began = time.process_time()
    try:
        workloads = {name: open_workload(_trace_file(order.traces, name)) for name in experiment.traces}
    except CliError as error:
        row = ClaimRow(
            experiment.claim, ours="-", band="-", verdict=Verdict.NOT_RUN, knob=f"{error}: give --traces DIR"
        )
    else:
        try:
            row = experiment.run(experiment.parameters.model_validate(order.parameters), workloads)
        except (ValueError, ArithmeticError) as error:
            raise CliError(f"{order.number} cannot be run with these parameters: {error}") from None
    return ClaimAnswer(row, dict(order.parameters), time.process_time() - began)


def _trace_file(folder: Path, name: str) -> Path:
    plain = folder / TRACE_FILES[name]
    packed = plain.with_name(plain.name + ".gz")
    return packed if packed.exists() else plain
