"""A report as JSON types, and as the rows of a CSV file."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from io import StringIO
from typing import Any, Final

from pydantic.alias_generators import to_camel

from kvpool.sim.report.figures import ClassFigures, Latencies, Report, Totals

DERIVED: Final[Mapping[type, tuple[str, ...]]] = {
    Report: ("goodput",),
    Totals: ("hit_share", "output_tokens_per_second"),
    ClassFigures: ("goodput",),
}
"""Figures that follow from the fields and are written beside them."""


def document(report: Report) -> dict[str, Any]:
    """Return a report as JSON types; keys are the names of its fields in camelCase, with units."""
    found: dict[str, Any] = _plain(report)
    return found


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of a report, and any JSON type
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        names += DERIVED.get(type(value), ())
        return {to_camel(name): _plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def csv_text(reports: Sequence[Report]) -> str:
    """Return one row for each figure of each report: long form, for spreadsheets and data frames."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("name", "seed", "group", "of", "figure", "unit", "value"))
    for report in reports:
        for row in _rows(report):
            writer.writerow((report.name, report.inputs.seed, *row))
    return out.getvalue()


Row = tuple[str, str, str, str, int | float]


def _rows(report: Report) -> list[Row]:
    totals = report.totals
    rows: list[Row] = [
        ("total", "", "goodput", "share", report.goodput),
        ("total", "", "requests", "count", totals.requests),
        ("total", "", "served", "count", totals.served),
        ("total", "", "end", "ns", totals.end_ns),
        ("total", "", "prompt", "tokens", totals.prompt_tokens),
        ("total", "", "output", "tokens", totals.output_tokens),
        ("total", "", "hit", "share", totals.hit_share),
        ("total", "", "recomputed", "tokens", totals.recomputed_tokens),
        ("total", "", "unique", "share", totals.unique_share),
    ]
    rows += [("refused", why, "requests", "count", count) for why, count in totals.refused.items()]
    for one in report.classes:
        rows.append(("class", one.slo_class, "goodput", "share", one.goodput))
        rows.append(("class", one.slo_class, "requests", "count", one.requests))
        rows += _latency_rows("class", one.slo_class, one.latencies)
    for tier in report.tiers:
        rows.append(("tier", tier.tier, "requests", "count", tier.requests))
        rows.append(("tier", tier.tier, "loaded", "bytes", tier.loaded_bytes))
        rows += _latency_rows("tier", tier.tier, tier.latencies)
    for boundary in report.boundaries:
        rows.append(("boundary", boundary.tier, "promoted", "bytes", boundary.promoted_bytes))
        rows.append(("boundary", boundary.tier, "demoted", "bytes", boundary.demoted_bytes))
    for link in report.links:
        rows.append(("link", link.name, "moved", "bytes", link.moved_bytes))
        rows.append(("link", link.name, "busy", "share", link.busy_share))
    return rows


def _latency_rows(group: str, name: str, found: Latencies) -> list[Row]:
    return [
        (group, name, f"{what}_{which}", "ns", value)
        for what, spread in (("ttft", found.ttft), ("tpot", found.tpot), ("e2e", found.e2e))
        for which, value in (
            ("mean", spread.mean_ns),
            ("p50", spread.p50_ns),
            ("p95", spread.p95_ns),
            ("p99", spread.p99_ns),
        )
    ]
