"""The report of `kvpool simulate` as a page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import yaml

from kvpool.cli.planning.html.bars import Part, Row, bars
from kvpool.cli.planning.html.drawing import figure
from kvpool.cli.planning.html.lines import TITLED, Moment, Panel, Series, over_time
from kvpool.cli.planning.html.markup import Markup
from kvpool.cli.planning.html.page import Page, Verdict, page_text
from kvpool.cli.planning.html.quantiles import Spread, spreads
from kvpool.cli.screen import Lines, Section
from kvpool.cli.views.figures import size_text
from kvpool.cli.views.simulation import milliseconds, origin_lines, percent, simulation_screen
from kvpool.sim.report.binding import binding_of
from kvpool.sim.report.figures import Quantiles, Report, TierFigures
from kvpool.sim.scenario import Scenario

MOST_LINKS: Final = 24
TIMES: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "us"))
SINGLE: Final = 180
"""Height of a panel that stands alone."""
SMALL: Final = 64
"""Of one of several."""
QUANTILES: Final = ("p50", "p95", "p99")
TIER_COLOURS: Final[Mapping[str, str]] = {"DRAM": "c3", "CXL": "c4", "SSD": "c5"}


def simulation_page(scenario: Scenario, reports: Sequence[Report], version: str, rule: str = "") -> str:
    """Return the HTML file. `rule` names a rule of one's own that took the place of the scenario's."""
    first = reports[0]
    binding = binding_of(first)
    sections = simulation_screen(reports).sections
    return page_text(
        Page(
            title=first.name,
            kind="kvpool simulate",
            verdict=Verdict(
                binding.verdict, [*binding.impossible, *binding.reasons], binding.limit == "Nothing"
            ),
            tiles=_tiles(first),
            figures=list(_figures(reports)),
            tables=[section for section in sections if not _is_origin(section)],
            provenance=_provenance(first, version, rule),
            inputs=[("The scenario, with all that it leaves to defaults", _scenario_text(scenario))],
        )
    )


def _is_origin(section: Section) -> bool:
    return isinstance(section, Lines) and section.title == "Made from"


def _provenance(report: Report, version: str, rule: str) -> list[str]:
    own = [f"rule of your own in the scenario's place: {rule}"] if rule else []
    return [*origin_lines(report), *own, f"kvpool {version}"]


def _scenario_text(scenario: Scenario) -> str:
    said = scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    return yaml.safe_dump(said, sort_keys=False, allow_unicode=True)


def _tiles(report: Report) -> list[tuple[str, str]]:
    totals = report.totals
    lost = totals.requests - totals.served
    slowest = max((one.latencies.ttft.p99_ns for one in report.classes), default=0)
    return [
        ("goodput", percent(report.goodput)),
        ("requests served", f"{totals.served:,}" + (f" of {totals.requests:,}" if lost else "")),
        ("output tokens a second", f"{totals.output_tokens_per_second:,.0f}"),
        ("prompt tokens cached", percent(totals.hit_share)),
        ("slowest TTFT p99", milliseconds(slowest)),
        ("simulated", f"{totals.end_ns / 1e9:,.0f} s"),
    ]


def _figures(reports: Sequence[Report]) -> Iterator[Markup]:
    report = reports[0]
    if report.timeline:
        yield _requests(report)
        yield _occupancy(report)
    for what, title in (
        ("ttft", "Time to first token, by deepest tier"),
        ("tpot", "Time per token, by deepest tier"),
        ("e2e", "Time to last token, by deepest tier"),
    ):
        yield _latencies(report, what, title)
    yield _goodput(report)
    if len(reports) > 1:
        yield _seeds(reports)
    if report.boundaries:
        yield _boundaries(report)
    if report.links:
        yield _links(report)


def _requests(report: Report) -> Markup:
    samples = report.timeline
    running = [sample.running for sample in samples]
    waiting = [sample.waiting for sample in samples]
    panel = Panel(
        "",
        (
            Series("running", "c1", running),
            Series("waiting", "c5", waiting, dashed=True),
        ),
        _compact,
        high=4.0,
    )
    spoken = f"At most {max(running):,} requests ran and {max(waiting):,} waited at one moment."
    moments = [Moment(event.time_ns, event.text) for event in report.events]
    beside = 1 + len(report.totals.lower_capacity_tokens)
    height = max(SINGLE, beside * (SMALL + TITLED) - TITLED)
    plot = over_time([sample.time_ns for sample in samples], [panel], height, spoken, moments)
    note = "All instances together, at single moments."
    if moments:
        note += " Dotted: what happened to the fleet, told before the tables."
    return figure("requests", "Requests running and waiting", note, plot)


def _occupancy(report: Report) -> Markup:
    samples, totals = report.timeline, report.totals
    room = max(1, totals.capacity_tokens)
    running = Series("of running requests", "c1", [sample.used_tokens / room for sample in samples])
    kept = Series("kept for returns", "c2", [sample.idle_tokens / room for sample in samples])
    panels = [
        Panel(f"HBM: {_compact(room)} tokens of room", (running, kept), percent_short, stacked=True, high=1.0)
    ]
    for tier, fits in totals.lower_capacity_tokens.items():
        shares = [sample.lower_tokens.get(tier, 0) / max(1, fits) for sample in samples]
        series = (Series(f"kept in {tier}", TIER_COLOURS.get(tier, "c4"), shares),)
        title = f"{tier}: {_compact(fits)} tokens of room"
        panels.append(Panel(title, series, percent_short, stacked=True, high=1.0))
    last = panels[-1].series[-1].values
    spoken = f"At the end the last tier is {percent_short(last[-1] if last else 0.0)} full."
    height = SINGLE if len(panels) == 1 else SMALL
    plot = over_time([sample.time_ns for sample in samples], panels, height, spoken)
    return figure("occupancy", "How full each tier is", "Share of its room, all instances together.", plot)


def _latencies(report: Report, what: str, title: str) -> Markup:
    found = [(tier, _quantiles(tier, what)) for tier in report.tiers]
    rows = [
        Spread(
            tier.tier,
            f"{tier.requests:,} requests, p99 {milliseconds(spread.p99_ns)}",
            (spread.p50_ns, spread.p95_ns, spread.p99_ns),
        )
        for tier, spread in found
        if spread.count
    ]
    promises = [
        (one.slo_class, float(one.ttft_promise_ns if what == "ttft" else one.tpot_promise_ns))
        for one in report.classes
        if one.requests and what != "e2e"
    ]
    told = ", ".join(f"{name} {milliseconds(round(value))}" for name, value in promises)
    note = f"Promised: {told}." if told else "From arrival to the end of the answer."
    spoken = " ".join(f"{row.name}: {row.told}." for row in rows)
    plot = spreads(rows, QUANTILES, _axis_time, spoken, promises)
    return figure(what, title, note, plot)


def _quantiles(tier: TierFigures, what: str) -> Quantiles:
    found = tier.latencies
    return {"ttft": found.ttft, "tpot": found.tpot, "e2e": found.e2e}[what]


def _goodput(report: Report) -> Markup:
    rows = []
    for one in report.classes:
        if one.requests:
            late = one.requests - one.met - one.refused
            parts = (
                Part("as promised", "c3", one.met / one.requests, f"{one.met:,}"),
                Part("later", "c5", late / one.requests, f"{late:,}"),
                Part("refused", "c6", one.refused / one.requests, f"{one.refused:,}"),
            )
            rows.append(Row(one.slo_class, f"{percent(one.goodput)} of {one.requests:,}", parts))
    spoken = " ".join(f"{row.name}: {row.told} as promised." for row in rows)
    note = "Share of the requests of each class that were served within both promises."
    return figure("goodput", "Goodput, by class of service", note, bars(rows, spoken, whole=1.0))


def _seeds(reports: Sequence[Report]) -> Markup:
    rows = [
        Row(
            f"seed {one.inputs.seed}",
            percent(one.goodput),
            (Part("", "c3", one.goodput, percent(one.goodput)),),
        )
        for one in reports[:MOST_LINKS]
    ]
    spoken = " ".join(f"{row.name}: {row.told}." for row in rows)
    note = "All other plots are of the first."
    return figure("seeds", "Goodput, by seed", note, bars(rows, spoken, whole=1.0))


def _boundaries(report: Report) -> Markup:
    rows = []
    for one in report.boundaries:
        for name, colour, count_bytes in (
            ("brought up", "c1", one.promoted_bytes),
            ("written", "c4", one.demoted_bytes),
        ):
            told = size_text(count_bytes)
            rows.append(Row(f"{one.tier}, {name}", told, (Part(name, colour, count_bytes, told),)))
    spoken = " ".join(f"{row.name}: {row.told}." for row in rows)
    note = "Brought up includes what comes through from tiers below it."
    return figure("boundaries", "Bytes over the boundary above each tier", note, bars(rows, spoken))


def _links(report: Report) -> Markup:
    busiest = sorted(report.links, key=lambda link: (-link.busy_share, link.name))[:MOST_LINKS]
    rows = [
        Row(
            one.name,
            f"{percent(one.busy_share)} of the time, {size_text(one.moved_bytes)}",
            (Part("in use", "c1", one.busy_share, percent(one.busy_share)),),
        )
        for one in busiest
    ]
    spoken = " ".join(f"{row.name}: {row.told}." for row in rows)
    note = "Share of the run with something on it, the busiest first."
    if len(report.links) > len(busiest):
        note += f" {len(busiest)} of {len(report.links)}; the table has all."
    return figure("links", "Links", note, bars(rows, spoken, whole=1.0))


def percent_short(share: float) -> str:
    """`93 %`."""
    return f"{100 * share:.0f} %"


def _axis_time(time_ns: float) -> str:
    scale, name = next(((size, unit) for size, unit in TIMES if time_ns >= size), TIMES[-1])
    amount = time_ns / scale
    return f"{amount:,.0f} {name}" if amount >= 1000 else f"{amount:.4g} {name}"


def _compact(count: float) -> str:
    for least, name, scale in ((1e9, "G", 1e9), (1e6, "M", 1e6), (1e4, "k", 1e3)):
        if count >= least:
            return f"{count / scale:.3g} {name}"
    return f"{count:,.10g}"
