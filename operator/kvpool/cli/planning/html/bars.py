"""Rows of bars with their values written above them; the parts of a row are stacked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kvpool.cli.planning.html.axes import Scale
from kvpool.cli.planning.html.drawing import WIDTH, Entry, Plot, bar, fitted, label
from kvpool.cli.planning.html.markup import Markup

ROW: Final = 36
THICK: Final = 12


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a bar."""

    name: str
    colour: str
    value: float
    said: str
    """Its value in words."""


@dataclass(frozen=True, slots=True)
class Row:
    """One bar."""

    name: str
    told: str
    """Its value in words, written at its right end."""
    parts: Sequence[Part]


def bars(rows: Sequence[Row], spoken: str, whole: float | None = None) -> Plot:
    """Return a bar for each row. `whole` is the value of the full width; None: the largest row."""
    largest = max((sum(part.value for part in row.parts) for row in rows), default=0.0)
    scale = Scale(0.0, whole if whole is not None else largest or 1.0, 0, WIDTH)
    marks: list[Markup] = []
    for place, row in enumerate(rows):
        top = place * ROW
        marks.append(label(fitted(row.name, row.told), 0, top + 12, "label strong"))
        marks.append(label(row.told, WIDTH, top + 12, anchor="end"))
        marks.append(bar(0, top + 18, WIDTH, THICK, "track"))
        done = 0.0
        for part in row.parts:
            x = scale.at(done)
            done += part.value
            said = f"{row.name}: {part.name}, {part.said}"
            marks.append(bar(x, top + 18, scale.at(done) - x, THICK, f"fill {part.colour}", said))
    legend = {part.name: Entry(part.name, part.colour) for row in rows for part in row.parts if part.name}
    return Plot(max(1, len(rows)) * ROW, marks, spoken, list(legend.values()) if len(legend) > 1 else [])
