"""The page about sizing shows what `kvpool size` really answers."""

from __future__ import annotations

import yaml

from tests.cli.planner.asking import ask
from tests.docs.pages import ROOT, pages

PAGE = next(page for page in pages() if page.name == "docs/how-to/size-a-node.md")
EXAMPLE = ROOT / "docs" / "examples" / "size-ratio.yaml"
SHOWN = [fence.text for fence in PAGE.fences if fence.language == "console"]


def test_the_tables_of_the_page_are_those_of_the_example() -> None:
    said = ask("size", "-f", str(EXAMPLE)).out
    assert [table for table in SHOWN[:2] if table.strip() not in said] == []


def test_the_spares_of_the_page_are_those_of_the_rack() -> None:
    said = ask("size", "-f", str(EXAMPLE.with_name("size-outside-the-rack.yaml"))).out
    assert SHOWN[2].strip() in said


def test_the_finding_of_the_page_is_that_of_an_impossible_target() -> None:
    document = yaml.safe_load(EXAMPLE.read_text())
    document["sessions"]["ttft"] = "10ms"
    said = ask("size", "-f", "-", stdin=yaml.safe_dump(document)).out
    assert " ".join(SHOWN[3].split()) in " ".join(said.split())


def test_the_options_on_the_page_are_those_of_the_example() -> None:
    shown = next(yaml.safe_load(fence.text) for fence in PAGE.fences if fence.language == "yaml")
    example = yaml.safe_load(EXAMPLE.read_text())
    same_option = next(one for one in example["options"] if one["name"] == shown["options"][0]["name"])
    assert shown == {**example, "options": [same_option]}


def test_every_example_of_sizing_is_named_on_the_page() -> None:
    files = sorted(path.name for path in EXAMPLE.parent.glob("size-*.yaml"))
    assert [name for name in files if name not in PAGE.text] == []
