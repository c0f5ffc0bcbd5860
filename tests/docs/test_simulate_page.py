"""The page about simulations shows what `kvpool simulate` really answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
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


@pytest.mark.parametrize("place", [0, 1])
def test_the_rules_of_the_page_work(place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = [fence.text for fence in PAGE.fences if fence.language == "python"][place]
    (tmp_path / f"rule_of_the_page_{place}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    (name,) = re.findall(r"^class (\w+)", text, re.MULTILINE)
    small = {
        "fleet": {"instances": 2, "kvMemory": "16Gi"},
        "workload": {"name": "mix", "parameters": {"seconds": 5, "rate_per_second": 6}},
    }
    named = f"rule_of_the_page_{place}:{name}"
    assert ask("simulate", "-", "--policy", named, stdin=yaml.safe_dump(small)).code == 0


def test_the_picture_of_the_page_is_small() -> None:
    assert (ROOT / "docs" / "how-to" / "simulate-report.png").stat().st_size < 200_000


def test_every_example_of_simulating_is_named_on_the_page() -> None:
    files = sorted(path.name for path in EXAMPLES.glob("simulate-*.yaml"))
    assert [name for name in files if name not in PAGE.text] == []
