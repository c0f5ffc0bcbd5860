"""Panels over one axis of time: lines, or areas that are stacked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kvpool.cli.planning.html.axes import Scale, round_ticks
from kvpool.cli.planning.html.drawing import WIDTH, Entry, Plot, fitted, label, line
from kvpool.cli.planning.html.markup import Markup, element, joined, number, text

LEFT: Final = 46
RIGHT: Final = WIDTH - 12
TITLED: Final = 34
"""Height that a panel with a title has above the next."""
UNTITLED: Final = 30
NS: Final = 1e9
UNITS: Final = (("hours", 3600 * NS, 3 * 3600 * NS), ("minutes", 60 * NS, 180 * NS), ("seconds", NS, 0.0))
"""Name, nanoseconds, and from which length of the axis on."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values at the times of the axis."""

    name: str
    colour: str
    values: Sequence[float]
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """Series that share an axis of values, from 0."""

    title: str
    series: Sequence[Series]
    say: Callable[[float], str]
    """How a value of the axis is written."""
    stacked: bool = False
    high: float | None = None
    """Where the axis ends; None: at the largest value."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened, marked in all panels."""

    time_ns: int
    words: str


def over_time(
    times_ns: Sequence[int],
    panels: Sequence[Panel],
    height: float,
    spoken: str,
    moments: Sequence[Moment] = (),
) -> Plot:
    """Return panels of one height below each other; an axis of time below the last."""
    end = max((*times_ns, *(moment.time_ns for moment in moments), 1))
    unit, unit_ns = next((name, size) for name, size, least in UNITS if end >= least)
    across = Scale(0.0, float(end), LEFT, RIGHT)
    marks: list[Markup] = []
    top = 0.0
    for panel in panels:
        marks.append(_panel(panel, times_ns, across, top, height))
        top += height + (TITLED if panel.title else UNTITLED)
    bottom = top - 8
    ticks = [tick for tick in round_ticks(end / unit_ns, 6) if tick * unit_ns <= end]
    marks += [
        label(f"{tick:,.10g}", across.at(tick * unit_ns), bottom + 8, anchor="middle") for tick in ticks
    ]
    marks.append(label(f"{unit} since the first request", RIGHT, bottom + 24, "label quiet", "end"))
    marks += [_moment(moment, across, bottom - 6) for moment in moments]
    legend = {
        series.name: Entry(series.name, series.colour, series.dashed)
        for panel in panels
        for series in panel.series
        if series.name
    }
    return Plot(bottom + 30, marks, spoken, list(legend.values()))


def _panel(panel: Panel, times_ns: Sequence[int], across: Scale, top: float, height: float) -> Markup:
    heaps = _heaps(panel)
    high = max((value for heap in heaps for value in heap), default=0.0)
    ticks = round_ticks(high if panel.high is None else max(high, panel.high), 2 if height < 90 else 4)
    up = Scale(0.0, ticks[-1], top + 16 + height, top + 20)
    parts = [label(fitted(panel.title), 0, top + 11, "label strong")] if panel.title else []
    for tick in ticks:
        parts.append(line(LEFT, up.at(tick), RIGHT, up.at(tick), "grid"))
        parts.append(label(panel.say(tick), LEFT - 6, up.at(tick) + 4, anchor="end"))
    places = [across.at(time_ns) for time_ns in times_ns]
    if panel.stacked:
        floor = [0.0] * len(times_ns)
        for series, heap in zip(panel.series, heaps, strict=True):
            parts.append(_area(series, places, floor, heap, up))
            floor = heap
    else:
        parts += [
            element(
                "path",
                d=_path(places, [up.at(value) for value in heap]),
                class_=f"stroke {series.colour}" + (" dashed" if series.dashed else ""),
            )
            for series, heap in zip(panel.series, heaps, strict=True)
        ]
    return joined(parts)


def _heaps(panel: Panel) -> list[list[float]]:
    """The upper edge of each series."""
    heaps: list[list[float]] = []
    for series in panel.series:
        below = heaps[-1] if panel.stacked and heaps else [0.0] * len(series.values)
        heaps.append([value + under for value, under in zip(series.values, below, strict=True)])
    return heaps


def _area(
    series: Series, places: Sequence[float], floor: Sequence[float], heap: Sequence[float], up: Scale
) -> Markup:
    there = _path(places, [up.at(value) for value in heap])
    back = _path(list(reversed(places)), [up.at(value) for value in reversed(floor)])
    path = f"{there}L{back.removeprefix('M')}Z" if places else ""
    return element("path", element("title", text(series.name)), d=path, class_=f"fill {series.colour}")


def _path(across: Sequence[float], up: Sequence[float]) -> str:
    points = [f"{number(x)} {number(y)}" for x, y in zip(across, up, strict=True)]
    return "M" + "L".join(points) if points else ""


def _moment(moment: Moment, across: Scale, bottom: float) -> Markup:
    x = across.at(moment.time_ns)
    told = element("title", text(moment.words))
    return element("g", told, line(x, 18, x, bottom, "moment"))
