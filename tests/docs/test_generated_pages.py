"""The pages that are made from code are current, and the check can tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs import __main__ as docs


def test_the_generated_pages_say_what_the_code_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert docs.main(["--check"]) == 0, capsys.readouterr().out


def test_a_page_that_drifted_fails_the_check_and_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(docs, "REFERENCE", tmp_path)
    assert docs.main(["--check"]) == 1
    assert docs.main([]) == 0
    (tmp_path / "metrics.md").write_text("drifted")
    capsys.readouterr()
    assert docs.main(["--check"]) == 1
    assert "metrics.md" in capsys.readouterr().out
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0


def test_every_field_that_people_write_has_a_row_of_its_own() -> None:
    page = docs.generated()[docs.REFERENCE / "fields.md"]
    for field in ("`tiers[].perNode`", "`store.mooncake.master.rpcPort`", "`failover.fence.require`"):
        assert f"| {field} |" in page
    assert "| `cohort` |  |  | *Not supported yet.* |" in page
