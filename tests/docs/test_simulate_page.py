"""The page about simulations shows what `kvpool simulate` really answers."""

from __future__ import annotations

import yaml

from tests.cli.planner.asking import ask
from tests.docs.pages import ROOT, pages

PAGE = next(page for page in pages() if page.name == "docs/how-to/simulate.md")
EXAMPLES = ROOT / "docs" / "examples"
TRACE = ROOT / "traces" / "mooncake_fast25_conversation_trace.jsonl.gz"
SHOWN = [fence.text for fence in PAGE.fences if fence.language == "console"]
WRITTEN = [yaml.safe_load(fence.text) for fence in PAGE.fences if fence.language == "yaml"]


def test_the_scenario_of_the_page_is_that_of_the_example() -> None:
    assert WRITTEN[0] == yaml.safe_load((EXAMPLES / "simulate-agents.yaml").read_text())


def test_the_answers_of_the_page_are_those_of_the_agents() -> None:
    said = ask("simulate", str(EXAMPLES / "simulate-agents.yaml")).out
    assert [text for text in SHOWN[:2] if text.strip() not in said] == []


def test_the_answers_of_the_page_are_those_of_the_conversations_without_and_with_a_pool() -> None:
    chat = yaml.safe_load((EXAMPLES / "simulate-chat.yaml").read_text())
    for shown, scenario in ((SHOWN[2], chat), (SHOWN[3], {**chat, **WRITTEN[1]})):
        said = ask("simulate", "-", "--trace", str(TRACE), stdin=yaml.safe_dump(scenario)).out
        assert shown.strip() in said


def test_the_picture_of_the_page_is_small() -> None:
    assert (ROOT / "docs" / "how-to" / "simulate-report.png").stat().st_size < 200_000


def test_every_example_of_simulating_is_named_on_the_page() -> None:
    files = sorted(path.name for path in EXAMPLES.glob("simulate-*.yaml"))
    assert [name for name in files if name not in PAGE.text] == []
