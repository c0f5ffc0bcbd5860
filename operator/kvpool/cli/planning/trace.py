"""`kvpool trace import`: logs of one's own servers made traces, without their texts."""

import os
import tempfile
from contextlib import nullcontext, suppress
from pathlib import Path

import click

from kvpool.cli.answer import answer_as
from kvpool.cli.faults import CliError
from kvpool.cli.options import Format
from kvpool.cli.planning.number_range import NumberRange
from kvpool.cli.planning.output import output_flag
from kvpool.cli.planning.salt import fresh_salt, kept, salt_from
from kvpool.cli.planning.trace_files import part_flags, trace_file
from kvpool.cli.views.traces import imported_screen
from kvpool.sim.imports.log_forms import LOGS, log_opened
from kvpool.sim.imports.salted import SaltedIds
from kvpool.sim.workloads.load import load_with
from kvpool.sim.workloads.own import written
from kvpool.sim.workloads.reading import Reading
from kvpool.sim.workloads.request import Workload


@click.command("import")
@click.argument("log_file", metavar="LOG", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--to", "target", required=True, type=click.Path(path_type=Path), help="Trace to write.")
@click.option("--log", type=click.Choice(LOGS), help="Kind of log, if not recognised.")
@click.option(
    "--salt-file",
    type=click.Path(path_type=Path),
    help="Salt of the block ids; without it one is made and kept beside the trace, as TRACE.salt.",
)
@click.option(
    "--bytes-per-token",
    type=NumberRange(0.25, 64),
    help="Of texts; without it measured by the usage of the first requests.",
)
@click.option("--overwrite", is_flag=True, help="Replace a trace that is already there.")
@output_flag
@part_flags
def import_trace(
    log_file: Path,
    target: Path,
    log: str | None,
    salt_file: Path | None,
    bytes_per_token: float | None,
    overwrite: bool,
    output: str,
    reading: Reading,
) -> None:
    """Make a trace of a LOG of requests (OpenAI-style JSON lines) or of KV-cache events.

    Blocks have 64 tokens, or what events tell. Texts and token ids are hashed here, with a salt, and are
    not written. `-` is standard input.
    """
    if target.exists() and not overwrite:
        raise CliError(f"{target} is already there: give another name with --to, or --overwrite")
    for source, what in ((log_file, "the log itself"), (salt_file, "the salt")):
        if source is not None and target.exists() and source.exists() and target.samefile(source):
            raise CliError(f"{target} is {what}, and would be lost: give another name with --to")
    if target.exists() and not target.is_file():
        raise CliError(f"{target} is no file that can be replaced: give another name with --to")
    if not target.parent.is_dir():
        raise CliError(
            f"{target} cannot be written: {target.parent} is no folder; make it, or give another name"
        )
    beside = target.with_name(target.name + ".salt")
    made = salt_file is None and not beside.exists()
    salt = fresh_salt() if made else salt_from(salt_file or beside)
    ids = SaltedIds(salt)
    with trace_file(log_file) as file:
        workload = load_with(
            file.lines(),
            file.name,
            lambda first: log_opened(first, log, ids, reading.block_tokens, bytes_per_token),
            reading,
        )
    with kept(salt, beside) if made else nullcontext():
        _write(workload, target)
    answer_as(imported_screen(workload, target.name, beside.name if made else ""), Format(output))


def _write(workload: Workload, target: Path) -> None:
    """Write beside the target and put it in place when it is whole. Raises CliError."""
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as stream:
                stream.writelines(written(workload))
            Path(name).replace(target)
        except BaseException:  # whatever ends it, Ctrl-C too: no half file is left
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise CliError(f"{target} cannot be written: {error.strerror or error}") from None
