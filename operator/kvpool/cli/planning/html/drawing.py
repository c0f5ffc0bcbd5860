"""What all plots share: a drawing with a title that screen readers tell, its legend, and its caption."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from unicodedata import east_asian_width

from kvpool.cli.planning.html.markup import Markup, element, joined, number, text

WIDTH: Final = 460
"""Units of a drawing's width; it is scaled to the width that the page has for it."""
LETTERS: Final = 54
"""Lower-case letters of a label that are sure to fit in the whole width, in any usual font."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a legend."""

    name: str
    colour: str
    """Class of the style sheet, as `c1`."""
    dashed: bool = False
    """Whether it stands for a line that is dashed."""


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot, without its caption."""

    height: float
    marks: Sequence[Markup]
    spoken: str
    """What it shows, in a sentence or two, for who cannot see it."""
    legend: Sequence[Entry] = ()


def figure(ident: str, title: str, note: str, plot: Plot) -> Markup:
    """Return a plot as a figure of a page. `ident` is unique in the page."""
    said = element("title", text(f"{title}. {plot.spoken}"), id=f"{ident}-title")
    drawing = element(
        "svg",
        said,
        *plot.marks,
        viewBox=f"0 0 {WIDTH} {number(plot.height)}",
        role="img",
        aria_labelledby=f"{ident}-title",
    )
    caption = [element("strong", text(title))]
    if note:
        caption.append(element("span", text(note)))
    parts = [element("figcaption", *caption)]
    if plot.legend:
        parts.append(element("ul", *(_entry(entry) for entry in plot.legend), class_="legend"))
    return element("figure", joined(parts), drawing, id=ident)


def label(words: str, x: float, y: float, class_: str = "label", anchor: str = "start") -> Markup:
    """Return text on a drawing; `y` is its base line."""
    return element("text", text(words), x=x, y=y, class_=class_, text_anchor=anchor)


def fitted(words: str, beside: str = "") -> str:
    """Return words as a label that fits into a line beside another, with an ellipsis for what does not."""
    left = LETTERS - sum(_breadth(letter) for letter in beside)
    for place, letter in enumerate(words):
        left -= _breadth(letter)
        if left < 0:
            return words[: max(0, place - 1)] + "\u2026"
    return words


def _breadth(letter: str) -> float:
    """In lower-case letters; rather too much than too little."""
    if letter in "mwMW@%" or east_asian_width(letter) in "WF":
        return 1.6
    return 1.25 if letter.isupper() else 1.0


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Return a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def bar(x: float, y: float, width: float, height: float, class_: str, said: str = "") -> Markup:
    """Return a filled rectangle; `said` is shown when one points at it."""
    told = [element("title", text(said))] if said else []
    return element("rect", *told, x=x, y=y, width=max(0.0, width), height=height, class_=class_)


def _entry(entry: Entry) -> Markup:
    mark = (
        element("line", x1=0, y1=6, x2=18, y2=6, class_=f"stroke {entry.colour} dashed")
        if entry.dashed
        else element("rect", x=0, y=1, width=18, height=10, class_=f"fill {entry.colour}")
    )
    swatch = element("svg", mark, viewBox="0 0 18 12", class_="swatch", aria_hidden="true")
    return element("li", swatch, text(entry.name))
