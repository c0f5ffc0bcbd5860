"""The report of `kvpool size` as a page."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Final

import yaml

from kvpool.cli.planning.html.bars import Part, Row, bars
from kvpool.cli.planning.html.drawing import figure
from kvpool.cli.planning.html.markup import Markup
from kvpool.cli.planning.html.page import Page, Verdict, page_text
from kvpool.cli.planning.html.quantiles import Spread, spreads
from kvpool.cli.planning.sizing.amounts import bytes_text, count_text, money_text, time_text
from kvpool.cli.planning.sizing.asking import Instance, OptionAnswer
from kvpool.cli.planning.sizing.options import SizingFile
from kvpool.cli.planning.sizing.verdicts import limit_text, limit_words
from kvpool.cli.screen import Lines, Screen

COLOURS: Final = ("c1", "c3", "c5", "c4", "c2", "c6", "c0")
"""Of tiers, by where they first stand in an option; more than these are shown alike."""
TIGHTEST: Final = 2
"""Limits of each option that are drawn."""
FARTHEST: Final = 4
"""Limits are drawn up to so many times the most sessions of any option."""


def size_page(
    file: SizingFile, instance: Instance, answers: Sequence[OptionAnswer], screen: Screen, version: str
) -> str:
    """Return the HTML file. `screen` is what a terminal shows: its tables are in the page too."""
    best = max(answers, key=lambda answer: answer.plan.sessions)
    written = yaml.safe_dump(
        file.model_dump(mode="json", by_alias=True, exclude_none=True), sort_keys=False, allow_unicode=True
    )
    checksum = hashlib.sha256(written.encode()).hexdigest()
    about = next(section for section in screen.sections if isinstance(section, Lines))
    return page_text(
        Page(
            title=f"{instance.model} on {file.serving.cards} x {file.serving.accelerator}",
            kind="kvpool size",
            verdict=Verdict(
                f"{best.name} keeps the most sessions: {limit_text(best)}."
                if best.plan.sessions
                else "Nobody can be served by any of the options.",
                [
                    f"{one.name}: {limit_text(one)}"
                    for one in answers
                    if one is not best or not one.plan.sessions
                ]
                + list(screen.findings),
                not screen.findings,
            ),
            tiles=_tiles(file, instance, answers),
            figures=list(_figures(file, answers)),
            tables=screen.sections,
            provenance=[about.lines[-1], f"options as below: sha256 {checksum}", f"kvpool {version}"],
            inputs=[("The options, with all that they leave to defaults", written)],
        )
    )


def _tiles(file: SizingFile, instance: Instance, answers: Sequence[OptionAnswer]) -> list[tuple[str, str]]:
    each = [(one.cost.price_per_session, one.name) for one in answers if one.cost.price_per_session]
    tiles = [
        ("a session", bytes_text(instance.session_bytes)),
        ("KV memory of the cards", bytes_text(instance.kv_memory_bytes)),
        ("returns every", time_text(file.sessions.returns * 1e9)),
        ("most sessions", count_text(max(one.plan.sessions for one in answers))),
    ]
    if each:
        price, name = min(each)
        tiles.append((f"cheapest session, {name}", f"{money_text(price)} {file.currency or ''}".strip()))
    return tiles


def _figures(file: SizingFile, answers: Sequence[OptionAnswer]) -> Iterator[Markup]:
    yield _sessions(answers)
    yield _limits(answers)
    if any(one.cost.price_per_session for one in answers):
        yield _each(answers, "price", f"Price of a session{f', {file.currency}' if file.currency else ''}")
    if any(one.cost.watts_per_session for one in answers):
        yield _each(answers, "watts", "Watts of a session")
    yield _first_tokens(file, answers)
    for place, answer in enumerate(answers):
        if answer.plan.sessions and answer.sensitivity:
            yield _sways(place, answer)


def _sessions(answers: Sequence[OptionAnswer]) -> Markup:
    names = list(dict.fromkeys(tier.name for one in answers for tier in one.plan.tiers))
    colours = {name: COLOURS[min(place, len(COLOURS) - 1)] for place, name in enumerate(names)}
    rows = [
        Row(
            one.name,
            f"{count_text(one.plan.sessions)}: {limit_words(one.plan.binding)}",
            [
                Part(tier.name, colours[tier.name], tier.sessions, count_text(tier.sessions))
                for tier in one.plan.tiers
            ],
        )
        for one in answers
    ]
    note = "By the tier that keeps them, and what limits them."
    return figure("sessions", "Sessions", note, bars(rows, _spoken(rows)))


def _limits(answers: Sequence[OptionAnswer]) -> Markup:
    most = max(1, *(one.plan.sessions for one in answers))
    rows = [
        Row(
            f"{one.name}: {limit_words(limit)}",
            "any number" if limit.sessions is None else count_text(limit.sessions),
            (
                Part(
                    "binds" if limit is one.plan.binding else "would bind later",
                    "c6" if limit is one.plan.binding else "c2",
                    min(FARTHEST * most, math.inf if limit.sessions is None else limit.sessions),
                    count_text(limit.sessions),
                ),
            ),
        )
        for one in answers
        for limit in one.plan.limits[:TIGHTEST]
    ]
    note = "Sessions that the tightest limits alone would allow; a full bar is that many or more."
    return figure("limits", "Limits", note, bars(rows, _spoken(rows), whole=float(FARTHEST * most)))


def _each(answers: Sequence[OptionAnswer], what: str, title: str) -> Markup:
    rows = []
    for one in answers:
        value = one.cost.price_per_session if what == "price" else one.cost.watts_per_session
        rows.append(Row(one.name, money_text(value), (Part("", "c3", value or 0.0, money_text(value)),)))
    return figure(what, title, "", bars(rows, _spoken(rows)))


def _first_tokens(file: SizingFile, answers: Sequence[OptionAnswer]) -> Markup:
    late = f"P{file.sessions.quantile * 100:.4g}"
    rows = [
        Spread(
            f"{one.name}: {tier.name}",
            f"{time_text(tier.ttft_alone_ns)} to {time_text(tier.ttft_quantile_ns)}",
            [value for value in (tier.ttft_alone_ns, tier.ttft_quantile_ns) if math.isfinite(value)],
        )
        for one in answers
        for tier in one.plan.tiers
    ]
    target = file.sessions.ttft
    promises = [] if target is None else [("target", target * 1e9)]
    note = f"Of a return that nobody disturbs, and {late} of all." + (
        "" if target is None else f" Promised: {time_text(target * 1e9)}."
    )
    plot = spreads(rows, ("alone", late), time_text, _spoken(rows), promises)
    return figure("first-tokens", "Time to first token, by tier", note, plot)


def _sways(place: int, answer: OptionAnswer) -> Markup:
    rows = [
        Spread(
            sway.constant,
            " or ".join(count_text(plan.sessions) for plan in sway.plans),
            [float(plan.sessions) for plan in sway.plans],
        )
        for sway in answer.sensitivity
        if {plan.sessions for plan in sway.plans} != {answer.plan.sessions}
    ]
    unmoved = len(answer.sensitivity) - len(rows)
    note = "Sessions." + (f" {unmoved} more constants change nothing." if unmoved else "")
    reference = [("sessions", float(answer.plan.sessions))]
    plot = spreads(
        rows, ("half", "twice"), lambda count: count_text(round(count)), _spoken(rows), reference, "as it is"
    )
    return figure(f"sway-{place}", f"{answer.name}: if a constant were half, or twice", note, plot)


def _spoken(rows: Sequence[Row] | Sequence[Spread]) -> str:
    return " ".join(f"{row.name}: {row.told}." for row in rows)
