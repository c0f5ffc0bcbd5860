"""The report of `kvpool size` as one HTML file."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvpool.cli.planning.sizing.options import SizingFile
from tests.cli.planner.asking import ask

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
FILES = sorted(EXAMPLES.glob("size-*.yaml"))


def page(document: Any, code: int) -> ET.Element:  # noqa: ANN401 - what a YAML file holds
    answered = ask("size", "-f", "-", "-o", "html", stdin=yaml.safe_dump(document))
    assert answered.code == code
    return ET.fromstring(answered.out.partition("\n")[2])


def words(element: ET.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def verdict(found: ET.Element) -> str:
    return words(next(part for part in found.iter("div") if "verdict" in (part.get("class") or "")))


def example(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((EXAMPLES / f"size-{name}.yaml").read_text())
    return read


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_example_becomes_a_page_with_all_that_the_terminal_shows(file: Path) -> None:
    told = ask("size", "-f", str(file))
    found = page(yaml.safe_load(file.read_text()), told.code)
    shown = {figure.get("id") for figure in found.iter("figure")}
    assert {"sessions", "limits", "price", "watts", "first-tokens"} <= shown
    captions = [words(caption) for caption in found.iter("caption")]
    assert len(captions) > 2 * len(yaml.safe_load(file.read_text())["options"])
    assert [caption for caption in captions if caption.upper() not in told.out] == []
    lines = "".join(next(found.iter("pre")).itertext())
    assert SizingFile.model_validate(yaml.safe_load(lines)).options


def test_the_verdict_names_the_option_with_the_most_sessions_and_what_limits_it() -> None:
    told = verdict(page(example("ratio"), 1))
    assert told.startswith("ideal-drives keeps the most sessions: Capacity binds at 3,279 sessions")
    assert "real-drives: Endurance of SSD binds at 1,122 sessions" in told
    assert "tier DRAM costs 3.50 per GB and pays up to 2.96 only" in told


def test_an_impossible_promise_is_said_of_every_option() -> None:
    document = example("ratio")
    document["sessions"]["ttft"] = "10ms"
    told = verdict(page(document, 1))
    assert told.startswith("Nobody can be served by any of the options.")
    for option in document["options"]:
        assert f"{option['name']}: Nobody can be served: from HBM the first token takes 20.1 ms" in told


def test_without_prices_and_watts_there_are_no_plots_of_them() -> None:
    document = example("ratio")
    document["serving"] |= {"price": 0, "watts": 0}
    for option in document["options"]:
        for tier in option["tiers"]:
            tier |= {"price": 0, "watts": 0}
    answered = ask("size", "-f", "-", "-o", "html", stdin=yaml.safe_dump(document))
    found = ET.fromstring(answered.out.partition("\n")[2])
    assert not {"price", "watts"} & {figure.get("id") for figure in found.iter("figure")}
