"""The report of a simulation as one HTML file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvpool.sim.scenario import Scenario
from tests.cli.planner.asking import ask

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
PLAIN: dict[str, Any] = {
    "name": "a small fleet",
    "fleet": {
        "instances": 2,
        "kvMemory": "4Gi",
        "tiers": [{"tier": "DRAM", "size": "4Gi", "link": {"preset": "PCIe5-x16"}}],
    },
    "workload": {"name": "agents", "parameters": {"loops": 12, "seconds": 60}},
    "seed": 3,
}
SVG = "{http://www.w3.org/2000/svg}"


def page(document: object, *flags: str) -> str:
    answered = ask("simulate", "-", "-o", "html", *flags, stdin=yaml.safe_dump(document))
    assert answered.code == 0
    return answered.out


def parsed(said: str) -> ET.Element:
    """The page as XML, which it is as well: every element is closed where it should be."""
    first, _, rest = said.partition("\n")
    assert first == "<!DOCTYPE html>"
    return ET.fromstring(rest)


def words(element: ET.Element) -> str:
    return " ".join("".join(element.itertext()).split())


@pytest.fixture(scope="module")
def whole() -> ET.Element:
    return parsed(page(PLAIN))


def test_the_page_shows_every_plot_with_a_caption_and_words_for_who_cannot_see_it(whole: ET.Element) -> None:
    figures = {figure.get("id"): figure for figure in whole.iter("figure")}
    assert list(figures) == [
        "requests",
        "occupancy",
        "ttft",
        "tpot",
        "e2e",
        "goodput",
        "boundaries",
        "links",
    ]
    for figure in figures.values():
        drawing = figure.findall("svg")[-1]
        assert drawing.get("role") == "img"
        title = drawing.find("title")
        assert title is not None
        assert drawing.get("aria-labelledby") == title.get("id")
        assert words(title).endswith(".")
        assert words(figure.findall("figcaption")[0])


def test_the_verdict_stands_before_all_else_and_where_it_is_from_at_the_end(whole: ET.Element) -> None:
    body = whole.find("body")
    assert body is not None
    assert [part.tag for part in body] == ["header", "main", "footer"]
    assert re.search(r"[Bb]inds?: \d+\.\d % of the requests had what was promised", words(body[0]))
    for said in ("constants of all instances", "sha256", "seed 3", "kvpool 0.", "kvMemory: 4294967296"):
        assert said in words(body[2])


def test_the_tables_of_the_terminal_are_in_the_page_too(whole: ET.Element) -> None:
    said = ask("simulate", "-", stdin=yaml.safe_dump(PLAIN)).out
    cells = {
        words(cell) for table in whole.iter("table") for cell in table.iter() if cell.tag in ("th", "td")
    }
    rows = [
        line.split() for line in said.split("BY DEEPEST TIER")[1].splitlines() if line.startswith("DRAM ")
    ]
    assert rows
    assert {rows[0][0], rows[0][1], rows[0][2]} <= cells


def test_the_scenario_in_the_page_is_the_one_that_was_simulated(whole: ET.Element) -> None:
    lines = "".join(next(whole.iter("pre")).itertext())
    assert Scenario.model_validate(yaml.safe_load(lines)) == Scenario.model_validate(PLAIN)


def test_nothing_is_fetched_or_run(whole: ET.Element) -> None:
    said = page(PLAIN)
    assert not re.search(r"https?:|//|url\(|@import", said.replace("<!DOCTYPE html>", ""))
    tags = {element.tag for element in whole.iter()}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "image", "use", "a", "form"}
    assert not any(name.startswith("on") for element in whole.iter() for name in element.keys())  # noqa: SIM118 - not a mapping
    policy = next(meta for meta in whole.iter("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert (policy.get("content") or "").startswith("default-src 'none'")


def test_identifiers_are_unique(whole: ET.Element) -> None:
    found = [element.get("id") for element in whole.iter() if element.get("id")]
    assert len(found) == len(set(found))


NASTY = "</title><script>alert(1)</script>&amp;\"'\u202e\x85\U0001f600 " + "W" * 30


def test_names_from_a_scenario_are_text_whatever_they_hold() -> None:
    document = {**PLAIN, "name": NASTY, "promises": {"interactive": {}, NASTY * 3: {}}}
    found = parsed(page(document))
    assert not list(found.iter("script"))
    heading = next(found.iter("h1"))
    assert "</title><script>alert(1)</script>&amp;\"'" in words(heading)


def test_characters_that_no_page_may_have_are_replaced() -> None:
    said = json.dumps({**PLAIN, "name": "a\x00b\x07c\x85d"})
    answered = ask("simulate", "-", "-o", "html", stdin=said)
    assert words(next(parsed(answered.out).iter("h1"))) == "a\ufffdb\ufffdc\ufffdd"


def test_several_seeds_are_shown_side_by_side() -> None:
    found = parsed(page(PLAIN, "--seeds", "3"))
    seeds = next(figure for figure in found.iter("figure") if figure.get("id") == "seeds")
    assert [f"seed {seed}" in words(seeds) for seed in (3, 4, 5)] == [True] * 3


def test_a_report_without_a_timeline_leaves_those_plots_out() -> None:
    found = parsed(page({**PLAIN, "timelinePoints": 0}))
    assert "requests" not in {figure.get("id") for figure in found.iter("figure")}


def test_a_table_without_rows_says_so_and_is_none() -> None:
    found = parsed(page({**PLAIN, "fleet": {"instances": 1}}))
    assert "Links" not in {words(caption) for caption in found.iter("caption")}
    links = next(part for part in found.iter("section") if words(part).startswith("Links"))
    assert [words(part) for part in links] == ["Links", "none"]


def test_a_rule_of_ones_own_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_newest_rule.py").write_text(
        "class Newest:\n    def key(self, use):\n        return (-use.turn,)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "own_newest_rule:Newest" in page(PLAIN, "--policy", "own_newest_rule:Newest")


def test_equal_scenarios_give_equal_bytes_whatever_the_hash_seed() -> None:
    program = "from kvpool.cli.planner import main; main()"
    said = [
        subprocess.run(
            [sys.executable, "-c", program, "simulate", "-", "-o", "html"],
            input=yaml.safe_dump(PLAIN).encode(),
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            timeout=60,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert b"<svg" in said[0]
