"""How far the simulator's hit rates are from those of a real store."""

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from kvpool.cli.planning.validating.comparison import MEAN_FILL, Comparison
from kvpool.cli.screen import Column, Lines, Screen, Table
from kvpool.sim.workloads.request import Workload

MOST_ERROR_POINTS: Final = 2.0
TIER: Final = "store memory"
COLUMNS: Final = (
    Column("TIER"),
    Column("SIZE", right=True),
    Column("BLOCKS", right=True),
    Column("REAL", right=True),
    Column("SIMULATED", right=True),
    Column("ERROR", right=True),
    Column("PREFIX REAL", right=True),
    Column("SIMULATED", right=True),
    Column("ERROR", right=True),
)


def validation_screen(workload: Workload, comparisons: Sequence[Comparison]) -> Screen:
    """Return the table; what is off by more than 2 points, or came back wrong, is a finding."""
    rows = [
        (
            TIER,
            f"{each.memory_bytes >> 20} MiB",
            f"{each.memory_bytes // each.block_bytes:,}",
            f"{each.real.rate:.2%}",
            f"{each.simulated.rate:.2%}",
            f"{each.error_points:+.2f}",
            f"{each.real.prefix_rate:.2%}",
            f"{each.simulated.prefix_rate:.2%}",
            f"{each.prefix_error_points:+.2f}",
        )
        for each in comparisons
    ]
    lookups = comparisons[0].real.lookups
    note = (
        f"hit rates of {lookups:,} look-ups of blocks by {len(workload.requests):,} requests; errors in "
        f"points. The simulator has {MEAN_FILL:.1%} of the memory: Mooncake evicts 5 % at once when 95 % are "
        "full."
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
            "tiers": [_document(each) for each in comparisons],
        },
        findings=[text for each in comparisons for text in _findings(each)],
    )


def _document(each: Comparison) -> JsonValue:
    return {
        "tier": TIER,
        "memoryBytes": each.memory_bytes,
        "blockBytes": each.block_bytes,
        "hitRate": {
            "real": each.real.rate,
            "simulated": each.simulated.rate,
            "errorPoints": each.error_points,
        },
        "prefixHitRate": {
            "real": each.real.prefix_rate,
            "simulated": each.simulated.prefix_rate,
            "errorPoints": each.prefix_error_points,
        },
        "wrongBytes": each.wrong_bytes,
    }


def _findings(each: Comparison) -> list[str]:
    found = []
    size = f"{each.memory_bytes >> 20} MiB"
    if abs(each.error_points) > MOST_ERROR_POINTS:
        found.append(
            f"{TIER} of {size}: the simulator is off by {each.error_points:+.2f} points, more than "
            f"{MOST_ERROR_POINTS:g}"
        )
    if each.wrong_bytes:
        found.append(f"{TIER} of {size}: {each.wrong_bytes} blocks came back with bytes of others")
    return found
