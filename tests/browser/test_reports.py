"""Reports as a real browser shows them."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.planner.asking import ask
from tests.harness.browser import Page

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
WIDTHS = (1280, 400)
LONG = "a class of service with a name that nobody would give it, WIDE LETTERS AND ALL"
CROWDED = f"""
name: a name that is as long as a name may be, without a single place where it breaks{"x" * 14}
fleet:
  instances: 20
  kvMemory: 4Gi
  tiers:
    - {{tier: DRAM, size: 8Gi, link: {{preset: PCIe5-x16}}}}
    - {{tier: CXL, size: 8Gi, link: {{preset: CXL2-x8}}}}
    - {{tier: SSD, size: 64Gi, link: {{preset: NVMe-Gen5}}}}
promises: {{interactive: {{ttft: 50ms, tpot: 8ms}}, {LONG!r}: {{}}}}
workload: {{name: agents, parameters: {{loops: 80, seconds: 60}}}}
"""
WIDE = f"""
model: {{preset: Qwen3-8B}}
serving: {{accelerator: H200, price: 19900}}
sessions: {{context: 16000, newTokens: 500, returns: 1h, ttft: 2s}}
options:
  - name: {"an option " * 5}xx
    links: [{{name: pcie, preset: PCIe5-x16}}]
    tiers:
      - {{name: {LONG[:60]!r}, modules: 16, size: 53G, path: [pcie], price: 9, watts: 8}}
  - name: {"W" * 60}
    links: [{{name: pcie, preset: PCIe5-x16}}]
    tiers: [{{name: {"M" * 60}, modules: 16, size: 53G, path: [pcie], price: 9, watts: 8}}]
"""
# Boxes of what stands where: figures, and the texts of each drawing, with the width of the page.
BOXES = """
(() => {
  const box = one => { const b = one.getBoundingClientRect();
    return {left: b.left, top: b.top, right: b.right, bottom: b.bottom, words: one.textContent}; };
  return {
    page: document.documentElement.scrollWidth,
    mode: document.compatMode,
    figures: [...document.querySelectorAll('figure')].map(figure => ({
      id: figure.id, box: box(figure), drawing: box(figure.querySelector(':scope > svg')),
      texts: [...figure.querySelectorAll(':scope > svg text')].map(box),
      marks: [...figure.querySelectorAll(':scope > svg :is(.fill, .stroke, .dot)')].map(box),
    })),
    past: [...document.querySelectorAll('h1, h2, h3, p, li, dl div, pre, .scroll')].map(box),
  };
})()
"""
TAGS = "[...document.querySelectorAll('*')].map(one => one.tagName.toLowerCase())"


def report(folder: Path, *arguments: str, stdin: str | None = None) -> Path:
    file = folder / "report.html"
    answered = ask(*arguments, "-o", "html", stdin=stdin)
    assert answered.code in (0, 1)
    file.write_text(answered.out, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {
        name: report(tmp_path_factory.mktemp(name), "simulate", str(EXAMPLES / f"simulate-{name}.yaml"))
        for name in ("tiers", "split", "agents", "failure")
    }
    made["wide"] = report(tmp_path_factory.mktemp("wide"), "size", "-f", "-", stdin=WIDE)
    for name in ("size-ratio", "size-outside-the-rack"):
        made[name] = report(tmp_path_factory.mktemp(name), "size", "-f", str(EXAMPLES / f"{name}.yaml"))
    made["crowded"] = report(
        tmp_path_factory.mktemp("crowded"), "simulate", "-", "--seeds", "2", stdin=CROWDED
    )
    return made


NAMES = ("tiers", "split", "agents", "failure", "crowded", "wide", "size-ratio", "size-outside-the-rack")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_a_report_asks_for_nothing_but_itself_and_complains_of_nothing(
    tab: Page, reports: dict[str, Path], name: str, width: int
) -> None:
    tab.show(reports[name], width)
    assert tab.requests == [reports[name].as_uri()]
    assert tab.complaints == []


def inside(box: dict[str, Any], left: float, right: float) -> bool:
    """Letters are placed on whole pixels, so one pixel may be missing."""
    return bool(left - 1 <= box["left"] and box["right"] <= right + 1)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_every_plot_has_room_within_the_page_and_its_texts_within_the_plot(
    tab: Page, reports: dict[str, Path], name: str, width: int
) -> None:
    tab.show(reports[name], width)
    seen = tab.value(BOXES)
    assert seen["page"] == width
    assert [box["words"] for box in seen["past"] if not inside(box, 0, width)] == []
    assert len(seen["figures"]) >= 5
    for figure in seen["figures"]:
        drawing = figure["drawing"]
        assert inside(figure["box"], 0, width)
        assert inside(drawing, figure["box"]["left"], figure["box"]["right"])
        assert drawing["right"] - drawing["left"] > 250
        assert drawing["bottom"] - drawing["top"] > 20
        for box in (*figure["texts"], *figure["marks"]):
            assert inside(box, drawing["left"], drawing["right"]), (figure["id"], box)
            assert drawing["top"] - 2 <= box["top"], (figure["id"], box)
            assert box["bottom"] <= drawing["bottom"] + 2, (figure["id"], box)


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two boxes share more than a touch: line boxes are higher than their letters."""
    across = min(one["right"], other["right"]) - max(one["left"], other["left"])
    down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
    return bool(across > 1 and down > 0.35 * (one["bottom"] - one["top"]))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_no_text_of_a_plot_lies_on_another(
    tab: Page, reports: dict[str, Path], name: str, width: int
) -> None:
    tab.show(reports[name], width)
    for figure in tab.value(BOXES)["figures"]:
        texts = figure["texts"]
        pairs = [
            (one["words"], other["words"])
            for place, one in enumerate(texts)
            for other in texts[place + 1 :]
            if overlap(one, other)
        ]
        assert pairs == [], figure["id"]


@pytest.mark.parametrize("name", NAMES)
def test_the_browser_reads_the_very_elements_that_were_written(
    tab: Page, reports: dict[str, Path], name: str
) -> None:
    written = ET.fromstring(reports[name].read_text(encoding="utf-8").partition("\n")[2])
    tab.show(reports[name], 1280)
    assert tab.value("document.compatMode") == "CSS1Compat"
    assert tab.value(TAGS) == [element.tag.lower() for element in written.iter()]


def pixels(picture: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height and the rows of a PNG of 8-bit RGB or RGBA."""
    at, data = 8, b""
    width = height = size = 0
    while at < len(picture):
        length, kind = struct.unpack(">I4s", picture[at : at + 8])
        body = picture[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", body[:10])
            size = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            data += body
        at += length + 12
    raw, step = zlib.decompress(data), width * size
    # Filtered rows do as well as true ones to tell whether anything but one colour is there.
    return width, height, [raw[place * (step + 1) : (place + 1) * (step + 1)] for place in range(height)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_picture_of_a_report_is_not_blank(
    tab: Page, reports: dict[str, Path], width: int, dark: bool
) -> None:
    tab.show(reports["agents"], width, dark=dark)
    across, down, rows = pixels(tab.picture())
    assert across == width
    assert down > 1500
    used = sum(len(Counter(row[1:])) > 4 for row in rows)
    assert used > down / 4


def rgb(colour: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", colour)[:3]]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_report_is_light_or_dark_as_the_reader_has_chosen_and_texts_stand_out(
    tab: Page, reports: dict[str, Path], dark: bool
) -> None:
    tab.show(reports["tiers"], 1280, dark=dark)
    ground = rgb(tab.value("getComputedStyle(document.body).backgroundColor"))
    assert (sum(ground) < 3 * 64) is dark
    inks = tab.value(
        "[...document.querySelectorAll('h1, figcaption span, .legend li, svg text, td, .note')]"
        ".map(one => one.ownerSVGElement ? getComputedStyle(one).fill : getComputedStyle(one).color)"
    )
    for ink in sorted(set(inks)):
        assert contrast(rgb(ink), ground) >= 4.5, ink


def contrast(one: list[int], other: list[int]) -> float:
    """Contrast ratio of two colours (WCAG 2.2, definitions of contrast ratio and relative luminance)."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: list[int]) -> float:
    shares = [part / 255 for part in colour]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_report_can_be_printed_on_a_few_pages(tab: Page, reports: dict[str, Path]) -> None:
    tab.show(reports["agents"], 1280, dark=True)
    paper = tab.paper()
    assert paper.startswith(b"%PDF-")
    counted = max(int(count) for count in re.findall(rb"/Count (\d+)", paper))
    assert 1 < counted <= 8


def test_screen_readers_are_told_what_each_plot_shows(tab: Page, reports: dict[str, Path]) -> None:
    tab.show(reports["tiers"], 1280)
    nodes = tab.tell("Accessibility.getFullAXTree")["nodes"]
    told = [node["name"]["value"] for node in nodes if node.get("role", {}).get("value") in ("image", "img")]
    assert len(told) == 8
    assert any("Time to first token" in name and "DRAM" in name for name in told)
