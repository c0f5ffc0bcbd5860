"""Rows of amounts that lie between others: where half of a set lies, and where its slowest lie."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kvpool.cli.planning.html.axes import amount_scale
from kvpool.cli.planning.html.drawing import WIDTH, Entry, Plot, fitted, label, line
from kvpool.cli.planning.html.markup import Markup, element, joined, text

ROW: Final = 42
EDGE: Final = 14
DOTS: Final = (("c1", 4.5), ("c3", 5.5), ("c6", 6.5))
"""Colour and radius of the marks of a row, from the shortest to the longest: equal ones show as rings."""


@dataclass(frozen=True, slots=True)
class Spread:
    """One row: amounts, such as durations from the shortest to the longest."""

    name: str
    told: str
    """Written at the right end."""
    values: Sequence[float]


def spreads(
    rows: Sequence[Spread],
    names: Sequence[str],
    say: Callable[[float], str],
    spoken: str,
    references: Sequence[tuple[str, float]] = (),
    referred_to_as: str = "promised",
) -> Plot:
    """Return a row of marks for each set; `names` are those of the marks.

    References are lines across all rows; those beyond all amounts are left out.
    """
    seen = [value for row in rows for value in row.values if value > 0]
    scale, ticks = amount_scale(seen, EDGE, WIDTH - EDGE, 6)
    bottom = max(1, len(rows)) * ROW + 4
    marks: list[Markup] = []
    for tick in ticks:
        marks.append(line(scale.at(tick), 0, scale.at(tick), bottom, "grid"))
        anchor = "start" if tick == ticks[0] else "end" if tick == ticks[-1] else "middle"
        x = {"start": 0.0, "end": float(WIDTH)}.get(anchor, scale.at(tick))
        marks.append(label(say(tick) if tick else "0", x, bottom + 14, anchor=anchor))
    shown = [(name, value) for name, value in references if scale.low <= value <= scale.high]
    for name, value in shown:
        told = element("title", text(f"{referred_to_as}, {name}: {say(value)}"))
        x = scale.at(value)
        marks.append(element("g", told, line(x, 0, x, bottom, "stroke promise")))
    marks += [_row(row, place * ROW, scale.at, names, say) for place, row in enumerate(rows)]
    legend = [
        Entry(name, colour) for name, colour in zip(names, (colour for colour, _ in DOTS), strict=False)
    ]
    if shown:
        legend.append(Entry(referred_to_as, "promise", dashed=True))
    return Plot(bottom + 20, marks, spoken, legend)


def _row(
    row: Spread, top: float, at: Callable[[float], float], names: Sequence[str], say: Callable[[float], str]
) -> Markup:
    y = top + 28
    places = [at(value) for value in row.values]
    parts = [
        label(fitted(row.name, row.told), 0, top + 12, "label strong halo"),
        label(row.told, WIDTH, top + 12, "label halo", "end"),
        line(min(places), y, max(places), y, "span"),
    ]
    for name, value, x, (colour, radius) in reversed(
        list(zip(names, row.values, places, DOTS, strict=False))
    ):
        told = element("title", text(f"{row.name}: {name} {say(value)}"))
        parts.append(element("circle", told, cx=x, cy=y, r=radius, class_=f"dot {colour}"))
    return joined(parts)
