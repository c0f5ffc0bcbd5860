"""The table of pool sizes: where clever routing pays."""

import csv
from io import StringIO

from kvpool.cli.screen import Column, Lines, Screen, Table
from kvpool.cli.views.figures import as_document
from kvpool.sim.pools.threshold import Cell, Question, Threshold

FIELDS = (
    "decodeInstances",
    "slowestCard",
    "requestsPerSecond",
    "cleverGoodput",
    "simpleGoodput",
    "bestSimpleRule",
    "gainPoints",
    "leastGainPoints",
    "mostGainPoints",
    "standardErrorPoints",
    "pays",
)


def threshold_screen(question: Question, found: Threshold) -> Screen:
    """Return the screen of `kvpool simulate threshold`."""
    columns = (
        Column("INSTANCES", right=True),
        Column("SLOWEST CARD", right=True),
        Column("REQUESTS/S", right=True),
        Column("BEST SIMPLE RULE"),
        Column("GOODPUT", right=True),
        Column("CLEVER", right=True),
        Column("GAIN", right=True),
        Column("OVER LOGS", right=True),
        Column("PAYS"),
    )
    note = (
        f"GAIN is in points of goodput, mean of {len(question.logs)} logs; it pays from "
        f"{question.least_points:g} point and twice its standard error on"
    )
    says = [_says(slowest, size) for slowest, size in found.pays_from.items()]
    sections = (
        Table("Pools", columns, [_row(cell) for cell in found.cells], note),
        Lines("Clever routing pays", says),
        Lines("Requests", list(dict.fromkeys(log.source for log in question.logs))),
    )
    findings = [_burst(cell) for cell in found.cells if cell.is_one_burst]
    return Screen(sections, as_document(_document(question, found)), findings)


def _burst(cell: Cell) -> str:
    return (
        f"{cell.size} instances, slowest {cell.slowest:g}: to load them the log had to come within "
        f"{cell.log_seconds:.2g} s, and a request takes {cell.request_seconds:.2g} s: that is one burst; "
        "give a longer log, fewer parts of it, or smaller pools"
    )


def threshold_csv(found: Threshold) -> str:
    """Return one line for each pool, below a line of names."""
    text = StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_figures(cell) for cell in found.cells)
    return text.getvalue()


def _document(question: Question, found: Threshold) -> dict[str, object]:
    return {
        "pools": [_figures(cell) for cell in found.cells],
        "paysFrom": [
            {"slowestCard": slowest, "decodeInstances": size} for slowest, size in found.pays_from.items()
        ],
        "leastGainPoints": question.least_points,
        "wantedGoodput": question.wanted_goodput,
        "logs": [{"source": log.source, "sha256": log.checksum} for log in question.logs],
        "seed": question.seed,
    }


def _figures(cell: Cell) -> dict[str, object]:
    values = (
        cell.size,
        cell.slowest,
        round(cell.requests_per_second, 3),
        round(cell.clever_goodput, 4),
        round(cell.simple_goodput, 4),
        cell.simple_rule,
        round(cell.gain_points, 2),
        round(min(cell.gains_points), 2),
        round(max(cell.gains_points), 2),
        round(cell.error_points, 2),
        cell.pays,
    )
    return dict(zip(FIELDS, values, strict=True))


def _row(cell: Cell) -> tuple[str, ...]:
    return (
        str(cell.size),
        f"{cell.slowest:g}",
        f"{cell.requests_per_second:.2f}",
        cell.simple_rule,
        f"{cell.simple_goodput:.3f}",
        f"{cell.clever_goodput:.3f}",
        f"{cell.gain_points:+.1f}",
        f"{min(cell.gains_points):+.1f}..{max(cell.gains_points):+.1f}",
        "yes" if cell.pays else "no",
    )


def _says(slowest: float, size: int | None) -> str:
    cards = "equal cards" if slowest == 1 else f"cards from 1 down to {slowest:g}"
    if size is None:
        return f"{cards}: not in the largest pool of the table: count requests"
    return f"{cards}: from {size} instances on"
