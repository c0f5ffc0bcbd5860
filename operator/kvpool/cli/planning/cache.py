"""`kvpool simulate cache`: hit rates of a prefix cache by capacity and eviction policy."""

from pathlib import Path

import click

from kvpool.api.duration import parse_duration
from kvpool.api.quantity import parse_quantity
from kvpool.cli.answer import answer_as
from kvpool.cli.faults import CliError
from kvpool.cli.options import Format
from kvpool.cli.planning.output import output_flag_with
from kvpool.cli.planning.policy import policy_of
from kvpool.cli.planning.trace_files import open_workload, reading_flags
from kvpool.cli.views.hit_rates import Row, csv_text, hit_rates_screen
from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.caches.hit_rates import Policy, hit_rates
from kvpool.sim.caches.paths import paths_of
from kvpool.sim.workloads.reading import Reading

CSV = "csv"


@click.command()
@click.option(
    "--trace",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Trace with prefix blocks, plain or gzip; - is standard input.",
)
@click.option(
    "--bytes-per-token", required=True, type=click.IntRange(min=1), help="KV of one token, all layers."
)
@click.option(
    "--capacity",
    "capacity_list",
    required=True,
    metavar="SIZE,...",
    help="Sizes of the cache, such as 64GiB,256GiB; of a part of a block nothing is used.",
)
@click.option(
    "--policy",
    "policy_list",
    default="FIFO,LRU,Belady",
    show_default=True,
    metavar="NAME,...",
    help="FIFO, LRU, LFU, Aged, EWMA, ClassWise, Belady (knows the future), or your own as module:Class.",
)
@click.option("--half-life", default="10m", show_default=True, metavar="TIME", help="Of the policy Aged.")
@output_flag_with(CSV, programs="the rates of json, yaml and csv are between 0 and 1")
@reading_flags
def cache(
    trace: Path,
    bytes_per_token: int,
    capacity_list: str,
    policy_list: str,
    half_life: str,
    output: str,
    form: str | None,
    reading: Reading,
) -> None:
    """Replay a trace against prefix caches and print their hit rates.

    A hit is a request's prompt from its start to the first missing block. The first half of the requests
    fills the cache, the last half is measured.
    """
    capacities = _capacities(capacity_list)
    policies = _policies(policy_list, half_life)
    workload = open_workload(trace, form, reading)
    try:
        paths = paths_of(workload)
    except ValueError as error:
        raise CliError(str(error)) from None
    block_bytes = bytes_per_token * workload.block_tokens
    blocks = {text: size // block_bytes for text, size in capacities.items()}
    sweep = hit_rates(paths, sorted(blocks.values()), policies)
    cells = {(row.policy, row.capacity_blocks): row for row in sweep.rows}
    rows = [
        Row(text, capacities[text], cells[name, count]) for text, count in blocks.items() for name in policies
    ]
    if output == CSV:
        click.echo(csv_text(rows), nl=False)
        return
    answer_as(hit_rates_screen(workload, sweep, rows, bytes_per_token), Format(output))


def _capacities(listed: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for part in filter(None, (text.strip() for text in listed.split(","))):
        try:
            # GiB and GB are common in writing; quantities leave the B out.
            sizes[part] = parse_quantity(part.removesuffix("B"))
        except ValueError as error:
            raise CliError(f"--capacity: {error}") from None
        if sizes[part] < 0:
            raise CliError(f"--capacity: {part} is below 0; give a size such as 64GiB")
    if not sizes:
        raise CliError(f"--capacity {listed!r} names no size; give one such as 64GiB,256GiB")
    return dict(sorted(sizes.items(), key=lambda item: item[1]))


def _policies(listed: str, half_life: str) -> dict[str, Policy]:
    try:
        half_life_ns = round(parse_duration(half_life) * NS_PER_SECOND)
    except ValueError as error:
        raise CliError(f"--half-life: {error}") from None
    if half_life_ns <= 0:
        raise CliError(f"--half-life must be above 0, not {half_life}")
    names = list(filter(None, (text.strip() for text in listed.split(","))))
    if not names:
        raise CliError(f"--policy {listed!r} names no policy; give one such as FIFO,LRU,Belady")
    return {name: policy_of(name, half_life_ns) for name in names}
