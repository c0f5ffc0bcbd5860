"""What a simulation says, as tables for people and a document for programs."""

from collections.abc import Sequence

from kvpool.cli.screen import Column, Lines, Screen, Section, Table
from kvpool.cli.views.figures import as_document, joined, size_text
from kvpool.cli.views.traces import notes_told
from kvpool.sim.report.binding import binding_of
from kvpool.sim.report.document import document
from kvpool.sim.report.figures import Latencies, Report

NS_PER_MS = 1e6
LATENCY_COLUMNS = (
    Column("TTFT p50", right=True),
    Column("p95", right=True),
    Column("p99", right=True),
    Column("TPOT p50", right=True),
    Column("p99", right=True),
    Column("E2E p50", right=True),
    Column("p99", right=True),
)


def simulation_screen(reports: Sequence[Report]) -> Screen:
    """Build the screen: the first run in full, and all of them side by side when there are several."""
    first = reports[0]
    sections: list[Section] = [_summary(first)]
    if len(reports) > 1:
        sections.append(_seeds(reports))
    sections.append(_classes(first))
    sections.append(_tiers(first))
    if first.boundaries:
        sections.append(_boundaries(first))
    sections.append(_links(first))
    sections.append(_origin(first))
    found = [line for report in reports for line in binding_of(report).impossible]
    document = as_document({"runs": [_document(report) for report in reports]})
    return Screen(sections, document, list(dict.fromkeys(found)))


def _document(report: Report) -> dict[str, object]:
    return {**document(report), "binding": binding_of(report)}


def milliseconds(time_ns: int) -> str:
    """`12.3 ms`, `4.56 s`; a dash for 0."""
    if time_ns == 0:
        return "-"
    if time_ns >= 10_000_000_000:
        return f"{time_ns / 1e9:.1f} s"
    if time_ns >= 1_000_000_000:
        return f"{time_ns / 1e9:.2f} s"
    return f"{time_ns / NS_PER_MS:.1f} ms"


def percent(share: float) -> str:
    """`93.1 %`."""
    return f"{100 * share:.1f} %"


def _summary(report: Report) -> Lines:
    totals = report.totals
    lines = [
        binding_of(report).verdict,
        f"{totals.served} of {totals.requests} requests served in {totals.end_ns / 1e9:.1f} s",
        f"goodput {percent(report.goodput)}; {totals.output_tokens_per_second:.0f} output tokens/s",
        f"{percent(totals.hit_share)} of the prompt tokens were cached",
        f"{totals.preempted} preemptions; {totals.recomputed_tokens} tokens were computed again",
        f"{percent(totals.unique_share)} of the resident prefix blocks are the only copy",
    ]
    lines += [f"refused {count}: {why}" for why, count in totals.refused.items()]
    lines += [f"at {milliseconds(event.time_ns)}: {event.text}" for event in report.events]
    return Lines(report.name, lines)


def _spread(found: Latencies) -> tuple[str, ...]:
    return tuple(
        milliseconds(value)
        for value in (
            found.ttft.p50_ns,
            found.ttft.p95_ns,
            found.ttft.p99_ns,
            found.tpot.p50_ns,
            found.tpot.p99_ns,
            found.e2e.p50_ns,
            found.e2e.p99_ns,
        )
    )


def _seeds(reports: Sequence[Report]) -> Table:
    columns = (
        Column("SEED"),
        Column("GOODPUT", right=True),
        Column("CACHED", right=True),
        Column("SERVED", right=True),
        Column("SECONDS", right=True),
    )
    rows = [
        (
            str(report.inputs.seed),
            percent(report.goodput),
            percent(report.totals.hit_share),
            str(report.totals.served),
            f"{report.totals.end_ns / 1e9:.1f}",
        )
        for report in reports
    ]
    shares = [report.goodput for report in reports]
    mean = percent(sum(shares) / len(shares))
    note = f"mean goodput {mean}, {percent(min(shares))} to {percent(max(shares))}; the first run follows"
    return Table("Seeds", columns, rows, note)


def _classes(report: Report) -> Table:
    goodput = Column("GOODPUT", right=True)
    columns = (Column("CLASS"), Column("REQUESTS", right=True), goodput, *LATENCY_COLUMNS)
    rows = [
        (one.slo_class, str(one.requests), percent(one.goodput), *_spread(one.latencies))
        for one in report.classes
        if one.requests
    ]
    promises = joined(
        f"{one.slo_class} {milliseconds(one.ttft_promise_ns)} / {milliseconds(one.tpot_promise_ns)}"
        for one in report.classes
        if one.requests
    )
    return Table("By class of service", columns, rows, f"promised TTFT / TPOT: {promises}")


def _tiers(report: Report) -> Table:
    columns = (Column("TIER"), Column("REQUESTS", right=True), Column("LOADED", right=True), *LATENCY_COLUMNS)
    rows = [
        (one.tier, str(one.requests), size_text(one.loaded_bytes), *_spread(one.latencies))
        for one in report.tiers
    ]
    note = (
        "NEW: the prefix was never seen; RECOMPUTE: some of it was held once, and nothing could be brought up"
    )
    return Table("By deepest tier that the prefix came from", columns, rows, note)


def _boundaries(report: Report) -> Table:
    columns = (Column("TIER"), Column("BROUGHT UP", right=True), Column("WRITTEN", right=True))
    rows = [
        (one.tier, size_text(one.promoted_bytes), size_text(one.demoted_bytes)) for one in report.boundaries
    ]
    return Table("Bytes over the boundary above each tier", columns, rows)


def _links(report: Report) -> Table:
    columns = (Column("LINK"), Column("CARRIED", right=True), Column("BUSY", right=True))
    rows = [(one.name, size_text(one.moved_bytes), percent(one.busy_share)) for one in report.links]
    return Table("Links", columns, rows)


def _origin(report: Report) -> Lines:
    return Lines("Made from", origin_lines(report))


def origin_lines(report: Report) -> list[str]:
    """Say where constants, workload and scenario are from."""
    inputs = report.inputs
    lines = [
        f"constants of {one.instances} instances: {one.provenance}, {one.source}"
        + (f", worst error {percent(one.worst_error)}" if one.worst_error is not None else "")
        for one in report.calibration
    ]
    lines.append(f"workload: {inputs.source}, sha256 {inputs.workload_sha256}")
    lines += [f"  {note}" for note in notes_told(inputs.notes)]
    lines.append(f"scenario: sha256 {inputs.scenario_sha256}, seed {inputs.seed}")
    return lines
