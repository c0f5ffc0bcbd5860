"""The generated files: current, fit to apply, and complete."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kvpool.api import KINDS
from tools.crdgen import __main__ as crdgen
from tools.crdgen.definition import definition
from tools.crdgen.samples import bad_samples
from tools.crdgen.structural import findings
from tools.crdgen.validation_page import cel_rules

CRDS = [definition(model) for model in KINDS]


@pytest.mark.parametrize("crd", CRDS, ids=lambda crd: crd["metadata"]["name"])
def test_a_definition_has_no_findings(crd: dict[str, object]) -> None:
    assert [str(finding) for finding in findings(crd)] == []


def test_the_generated_files_say_what_the_models_say() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.crdgen", "--check"],
        cwd=crdgen.ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_drifted_a_missing_and_a_left_over_file_fail_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(crdgen, "ROOT", tmp_path)
    monkeypatch.setattr(crdgen, "CRDS", tmp_path / "crds")
    monkeypatch.setattr(crdgen, "CHART_CRDS", tmp_path / "chart")
    monkeypatch.setattr(crdgen, "VALIDATION_PAGE", tmp_path / "validation.md")
    assert crdgen.main([]) == 0
    assert crdgen.main(["--check"]) == 0
    (tmp_path / "crds" / "kvpool.dev_kvpools.yaml").write_text("drifted")
    (tmp_path / "crds" / "kvpool.dev_remaps.yaml").unlink()
    (tmp_path / "chart" / "kvpool.dev_gone.yaml").write_text("left over")
    capsys.readouterr()
    assert crdgen.main(["--check"]) == 1
    named = [line.split(" ", 1)[0] for line in capsys.readouterr().err.splitlines()]
    assert sorted(named) == [
        "chart/kvpool.dev_gone.yaml",
        "crds/kvpool.dev_kvpools.yaml",
        "crds/kvpool.dev_remaps.yaml",
    ]
    assert crdgen.main([]) == 0
    assert crdgen.main(["--check"]) == 0


def test_every_cel_rule_is_tried_by_a_bad_sample() -> None:
    samples = bad_samples()
    untried = [rule.message for rule in cel_rules(CRDS) if not any(rule.is_tried_by(one) for one in samples)]
    assert untried == []
