"""The answer of `kvpool simulate cache`: a table for people, a document and CSV for programs."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from kvpool.cli.screen import Column, Lines, Screen, Table
from kvpool.cli.views.traces import notes_told
from kvpool.sim.caches.hit_rates import HitRate, Sweep
from kvpool.sim.workloads.request import Workload


@dataclass(frozen=True, slots=True)
class Row:
    """What came out for one policy at one capacity."""

    capacity: str
    """As it was written."""
    capacity_bytes: int
    found: HitRate


def csv_text(rows: Sequence[Row]) -> str:
    """Return the rows as CSV with a header; rates are between 0 and 1."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = "policy,capacity,capacity_bytes,capacity_blocks,hit_rate,hit_tokens,measured_tokens,filled"
    writer.writerow(names.split(","))
    for row in rows:
        found = row.found
        rate, filled = f"{found.rate:.6f}", str(found.filled).lower()
        writer.writerow(
            (
                found.policy,
                row.capacity,
                row.capacity_bytes,
                found.capacity_blocks,
                rate,
                found.hit_tokens,
                found.measured_tokens,
                filled,
            )
        )
    return text.getvalue()


def hit_rates_screen(workload: Workload, sweep: Sweep, rows: Sequence[Row], bytes_per_token: int) -> Screen:
    """Return the screen: a line for each capacity, a column for each policy."""
    policies = dict.fromkeys(row.found.policy for row in rows)
    by_capacity: dict[str, list[HitRate]] = {}
    for row in rows:
        by_capacity.setdefault(row.capacity, []).append(row.found)
    unfilled = dict.fromkeys(row.capacity for row in rows if not row.found.filled)
    table = Table(
        "hit rates, percent of the prompt tokens",
        tuple(Column(name, right=True) for name in ("capacity", "blocks", *policies)),
        [
            (written, f"{cells[0].capacity_blocks:,}", *(f"{100 * cell.rate:.1f}" for cell in cells))
            for written, cells in by_capacity.items()
        ],
        note=f"not full before measuring began: {', '.join(unfilled)}" if unfilled else "",
    )
    size = f"{sweep.requests:,} requests, {sweep.distinct_blocks:,} prefix blocks"
    grain = f"{workload.block_tokens} tokens, {bytes_per_token:,} bytes a token"
    ceiling = f"a cache that never evicts: {100 * sweep.ceiling.rate:.1f} %"
    about = [
        f"{workload.source}: {size} of {grain}",
        f"measured over the last {sweep.measured_requests:,} requests; {ceiling}",
        *notes_told(workload.notes),
    ]
    return Screen([Lines("", about), table], _document(workload, sweep, rows, bytes_per_token))


def _document(
    workload: Workload, sweep: Sweep, rows: Sequence[Row], bytes_per_token: int
) -> dict[str, JsonValue]:
    return {
        "trace": workload.source,
        "checksum": workload.checksum,
        "notes": dict(workload.notes),
        "requests": sweep.requests,
        "measuredRequests": sweep.measured_requests,
        "measuredTokens": sweep.ceiling.measured_tokens,
        "distinctBlocks": sweep.distinct_blocks,
        "blockTokens": workload.block_tokens,
        "bytesPerToken": bytes_per_token,
        "ceiling": sweep.ceiling.rate,
        "rows": [
            {
                "policy": row.found.policy,
                "capacity": row.capacity,
                "capacityBytes": row.capacity_bytes,
                "capacityBlocks": row.found.capacity_blocks,
                "hitRate": row.found.rate,
                "hitTokens": row.found.hit_tokens,
                "filled": row.found.filled,
            }
            for row in rows
        ],
    }
