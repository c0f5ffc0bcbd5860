"""Alerts, their runbooks, and the metrics that both speak of."""

from __future__ import annotations

import re
from typing import Any

import yaml

from kvpool.api.conditions import ConditionType
from tests.docs.pages import ROOT, pages
from tools.docs.metrics_page import known_names

RUNBOOKS = ROOT / "docs" / "runbooks"
SECTIONS = (
    "Meaning",
    "Impact",
    "Diagnosis",
    "What kvpool does by itself",
    "Mitigation",
    "How to stop kvpool",
)
_SERIES = re.compile(r"\bkvpool_[a-z0-9_]+\b")
# Packages, which look like series.
_PACKAGES = {"kvpool_agent", "kvpool_keeper"}


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "alerts" / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    names = {alert["alert"].lower() for alert in alerts()}
    assert names == {path.stem for path in RUNBOOKS.glob("*.md")}


def test_every_alert_points_to_its_own_runbook() -> None:
    wrong = [
        alert["alert"]
        for alert in alerts()
        if not alert["annotations"]["runbook_url"].endswith(f"/runbooks/{alert['alert'].lower()}")
    ]
    assert wrong == []


def test_every_runbook_answers_the_same_questions_under_the_name_of_its_alert() -> None:
    titles = {alert["alert"].lower(): alert["alert"] for alert in alerts()}
    for path in RUNBOOKS.glob("*.md"):
        text = path.read_text()
        assert text.startswith(f"# {titles[path.stem]}\n"), path.name
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(SECTIONS), path.name


def test_every_metric_that_alerts_and_pages_name_exists() -> None:
    texts = {page.name: page.text for page in pages()}
    texts["alerts/alerts.yaml"] = (ROOT / "alerts" / "alerts.yaml").read_text()
    named = {f"{where}: {name}" for where, text in texts.items() for name in _SERIES.findall(text)}
    known = known_names() | _PACKAGES
    assert {entry for entry in named if entry.rpartition(" ")[2] not in known} == set()


def test_every_condition_that_a_runbook_or_how_to_page_names_exists() -> None:
    known = {kind.value for kind in ConditionType}
    named = {
        f"{page.name}: {found}"
        for page in pages()
        if page.name.startswith(("docs/runbooks/", "docs/how-to/", "docs/quickstart"))
        for found in re.findall(r"`([A-Z]\w+)=(?:True|False|Unknown)`", page.text)
    }
    assert {entry for entry in named if entry.rpartition(" ")[2] not in known} == set()
