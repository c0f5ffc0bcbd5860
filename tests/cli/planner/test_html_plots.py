"""Axes, labels and marks of the plots."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.cli.planning.html.axes import Scale, amount_scale, log_ticks, round_ticks
from kvpool.cli.planning.html.bars import Part, Row, bars
from kvpool.cli.planning.html.drawing import LETTERS, WIDTH, Plot, figure, fitted
from kvpool.cli.planning.html.lines import Moment, Panel, Series, over_time
from kvpool.cli.planning.html.markup import number, text
from kvpool.cli.planning.html.quantiles import Spread, spreads

AMOUNTS = st.floats(1e-6, 1e15)


@given(AMOUNTS, st.integers(2, 8))
def test_round_ticks_begin_at_0_and_enclose_the_value_in_few_even_steps(high: float, most: int) -> None:
    ticks = round_ticks(high, most)
    assert ticks[0] == 0
    assert ticks[-1] >= high * (1 - 1e-6)
    assert 2 <= len(ticks) <= most + 1
    assert re.fullmatch(r"[125](\.0+)?e[+-]\d+", f"{ticks[1]:.6e}")


@pytest.mark.parametrize(
    ("high", "ticks"),
    [(0, [0, 1]), (7, [0, 2, 4, 6, 8]), (10, [0, 5, 10]), (1.0, [0, 0.5, 1.0]), (60, [0, 20, 40, 60])],
)
def test_ticks_are_the_numbers_that_people_would_take(high: float, ticks: list[float]) -> None:
    assert round_ticks(high, 4) == ticks


@given(AMOUNTS, st.floats(1, 1e12), st.integers(3, 8))
def test_logarithmic_ticks_enclose_both_values_and_rise(low: float, ratio: float, most: int) -> None:
    high = low * ratio
    ticks = log_ticks(low, high, most)
    assert ticks[0] <= low * (1 + 1e-6)
    assert ticks[-1] >= high * (1 - 1e-6)
    assert ticks == sorted(ticks)
    assert 2 <= len(ticks) <= most + 1


@given(st.lists(AMOUNTS, max_size=6), AMOUNTS)
def test_a_scale_draws_nothing_beyond_its_ends(values: list[float], other: float) -> None:
    scale, ticks = amount_scale(values, 10, 100, 6)
    for value in (*values, *ticks, other):
        assert 10 <= scale.at(value) <= 100
    assert scale.at(ticks[0]) == 10
    assert scale.at(ticks[-1]) == pytest.approx(100)


def test_a_logarithmic_scale_gives_each_factor_the_same_way() -> None:
    scale = Scale(1, 100, 0, 200, logarithmic=True)
    assert [scale.at(value) for value in (1, 10, 100)] == pytest.approx([0, 100, 200])


@given(st.text(max_size=200), st.text(max_size=20))
def test_two_labels_of_a_line_fit_into_it(words: str, beside: str) -> None:
    shown = fitted(words, beside)
    assert shown == words or shown.endswith("\u2026")
    assert len(shown) <= max(1, LETTERS)


def test_wide_letters_take_more_room() -> None:
    assert len(fitted("W" * 100)) < len(fitted("i" * 100))


@given(st.text())
def test_any_text_is_escaped_and_kept_but_for_what_no_page_may_have(words: str) -> None:
    found = ET.fromstring(f"<p>{text(words)}</p>").text or ""
    assert len(found) == len(words)
    for letter, shown in zip(words, found, strict=True):
        assert shown == letter or (shown == "\ufffd" and not letter.isprintable())


@pytest.mark.parametrize(("value", "said"), [(1.0, "1"), (-0.04, "0"), (12.34, "12.3"), (1e6, "1000000")])
def test_coordinates_are_short(value: float, said: str) -> None:
    assert number(value) == said


def drawn(plot: Plot) -> ET.Element:
    found = ET.fromstring(figure("x", "A plot", "a note", plot)).findall("svg")[-1]
    assert isinstance(found, ET.Element)
    return found


def test_the_parts_of_a_bar_follow_each_other_over_its_whole_length() -> None:
    parts = (Part("a", "c1", 1, "1"), Part("b", "c2", 3, "3"))
    svg = drawn(bars([Row("one", "4", parts), Row("none", "0", ())], "Bars.", whole=4))
    filled = [rect for rect in svg.iter("rect") if "fill" in (rect.get("class") or "")]
    assert [(rect.get("x"), rect.get("width")) for rect in filled] == [("0", "115"), ("115", "345")]


def test_a_stacked_panel_draws_each_series_on_top_of_the_one_before() -> None:
    series = (Series("below", "c1", (1.0, 1.0)), Series("above", "c2", (1.0, 3.0)))
    plot = over_time([0, 10**9], [Panel("p", series, str, stacked=True, high=4.0)], 100, "Areas.")
    below, above = (path.get("d") or "" for path in drawn(plot).iter("path"))
    edge = below.removesuffix("Z").split("L")[:2]
    assert [point.removeprefix("M") for point in edge] == above.removesuffix("Z").split("L")[:1:-1]


def test_what_happens_is_marked_in_all_panels_at_its_time() -> None:
    series = (Series("s", "c1", (1.0, 2.0)),)
    plot = over_time([0, 2 * 10**9], [Panel("", series, str)], 100, "Lines.", [Moment(10**9, "it broke")])
    mark = next(group for group in drawn(plot).iter("g"))
    assert "".join(mark.itertext()) == "it broke"


@pytest.mark.parametrize(
    ("end_ns", "unit"), [(5 * 10**9, "seconds"), (600 * 10**9, "minutes"), (4 * 3600 * 10**9, "hours")]
)
def test_the_axis_of_time_has_a_unit_that_fits(end_ns: int, unit: str) -> None:
    plot = over_time([0, end_ns], [Panel("", (Series("s", "c1", (1.0, 2.0)),), str)], 100, "Lines.")
    assert any(unit in "".join(label.itertext()) for label in drawn(plot).iter("text"))


def test_promises_within_sight_are_drawn_and_others_are_not() -> None:
    rows = [Spread("DRAM", "told", (1e6, 5e6, 90e6))]
    svg = drawn(spreads(rows, ("p50", "p95", "p99"), str, "Dots.", [("a", 50e6), ("b", 1e12)]))
    assert [line.get("class") for line in svg.iter("line")].count("stroke promise") == 1
    places = [float(dot.get("cx") or 0) for dot in svg.iter("circle")]
    assert places == sorted(places, reverse=True)
    assert all(0 < place < WIDTH for place in places)


@pytest.mark.parametrize(
    "plot",
    [
        bars([], "Nothing."),
        spreads([], ("p50",), str, "Nothing."),
        over_time([], [Panel("", (Series("s", "c1", ()),), str)], 100, "Nothing."),
        over_time([0], [Panel("", (Series("s", "c1", (0.0,)),), str, stacked=True)], 100, "Nothing."),
    ],
    ids=["bars", "spreads", "lines", "one moment"],
)
def test_a_plot_of_nothing_is_a_plot_still(plot: Plot) -> None:
    assert "NaN" not in ET.tostring(drawn(plot), encoding="unicode")
    assert plot.height > 0
