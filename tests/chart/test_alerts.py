"""Alerts fire when they should, on series that the operator really has."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import yaml
from prometheus_client import CollectorRegistry

from kvpool.control.metrics import OperatorMetrics
from tests.chart.rendering import ROOT

ALERTS = ROOT / "alerts"
PROMTOOL_SECONDS = 60
_SELECTED = re.compile(r"(kvpool_[a-z_]+)(?:\{([^}]*)\})?")


def promtool(*arguments: str) -> None:
    binary = shutil.which("promtool")
    if binary is None:
        pytest.skip("promtool is not installed: install Debian's prometheus")
    done = subprocess.run(
        [binary, *arguments],
        capture_output=True,
        text=True,
        timeout=PROMTOOL_SECONDS,
        check=False,
        cwd=ALERTS,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_are_sound() -> None:
    promtool("check", "rules", "alerts.yaml")


def test_every_alert_fires_as_its_test_says() -> None:
    promtool("test", "rules", "alerts_test.yaml")


def test_every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    rules = yaml.safe_load((ALERTS / "alerts.yaml").read_text())["groups"][0]["rules"]
    tests = yaml.safe_load((ALERTS / "alerts_test.yaml").read_text())["tests"]
    told = {
        (case["alertname"], bool(case["exp_alerts"])) for test in tests for case in test["alert_rule_test"]
    }
    assert told >= {(rule["alert"], fires) for rule in rules for fires in (True, False)}


def test_every_series_and_label_that_an_alert_selects_exists_in_the_operator() -> None:
    registry = CollectorRegistry()
    metrics = OperatorMetrics(registry)
    labels = {}
    for metric in (series for concern in vars(metrics).values() for series in vars(concern).values()):
        (described,) = metric.describe()
        name = described.name + ("_total" if described.type == "counter" else "")
        labels[name] = set(metric._labelnames)
    rules = yaml.safe_load((ALERTS / "alerts.yaml").read_text())["groups"][0]["rules"]
    for rule in rules:
        for name, selectors in _SELECTED.findall(rule["expr"]):
            used = {part.partition("=")[0].strip("!~ ") for part in selectors.split(",") if part}
            assert name in labels, f"{rule['alert']}: {name}"
            assert used <= labels[name], f"{rule['alert']}: {name}{selectors}"
