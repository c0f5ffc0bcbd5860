"""How far the simulator's hit rates are from those of a real store."""

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from kvpool.cli.planning.validating.comparison import MEAN_FILL, Comparison
from kvpool.cli.screen import Column, Lines, Screen, Table
from kvpool.sim.workloads.request import Workload

MOST_ERROR_POINTS: Final = 3.0
COLUMNS: Final = (
    Column("MEMORY", right=True),
    Column("BLOCKS", right=True),
    Column("FOUND IN"),
    Column("REAL", right=True),
    Column("SIMULATED", right=True),
    Column("ERROR", right=True),
)


def validation_screen(workload: Workload, comparisons: Sequence[Comparison]) -> Screen:
    """Return the table; what is off by more than 3 points, or came back wrong, is a finding."""
    rows = [row for each in comparisons for row in _rows(each)]
    lookups = comparisons[0].real.lookups
    note = (
        f"hit rates of {lookups:,} look-ups of blocks by {len(workload.requests):,} requests; errors in "
        f"points. The simulator has {MEAN_FILL:.1%} of the memory: Mooncake evicts 5 % at once when 95 % are "
        "full. A prefix ends at a prompt's first missing block."
    )
    source = f"{workload.source}, sha256 {workload.checksum}"
    return Screen(
        sections=(Table("", COLUMNS, rows, note), Lines("", [source])),
        document={
            "source": workload.source,
            "checksum": workload.checksum,
            "requests": len(workload.requests),
            "lookups": lookups,
            "meanFill": MEAN_FILL,
            "stores": [_document(each) for each in comparisons],
        },
        findings=[text for each in comparisons for text in _findings(each)],
    )


def _rows(each: Comparison) -> list[tuple[str, ...]]:
    real, simulated, errors = each.real.rates(), each.simulated.rates(), each.errors_points()
    size, blocks = f"{each.memory_bytes >> 20} MiB", f"{each.memory_bytes // each.block_bytes:,}"
    return [
        (size, blocks, name, f"{real[name]:.2%}", f"{simulated[name]:.2%}", f"{errors[name]:+.2f}")
        for name in errors
    ]


def _document(each: Comparison) -> JsonValue:
    real, simulated, errors = each.real.rates(), each.simulated.rates(), each.errors_points()
    return {
        "memoryBytes": each.memory_bytes,
        "blockBytes": each.block_bytes,
        "hitRates": {
            name: {"real": real[name], "simulated": simulated[name], "errorPoints": errors[name]}
            for name in errors
        },
        "wrongBytes": each.wrong_bytes,
    }


def _findings(each: Comparison) -> list[str]:
    size = f"{each.memory_bytes >> 20} MiB of memory"
    found = [
        f"{size}: {name} is off by {error:+.2f} points, more than {MOST_ERROR_POINTS:g}"
        for name, error in each.errors_points().items()
        if abs(error) > MOST_ERROR_POINTS
    ]
    if each.wrong_bytes:
        found.append(f"{size}: {each.wrong_bytes} blocks came back with bytes of others")
    return found
