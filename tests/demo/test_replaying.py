"""What the demonstration says when the trace that it replays is not on the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.replaying import WITHOUT_TRACE, find_trace
from demo.screen import Screen
from demo.trace import TraceUnreadableError


def test_a_missing_trace_is_not_as_expected_and_says_where_it_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(WITHOUT_TRACE, raising=False)
    screen = Screen()
    assert find_trace(screen, tmp_path / "trace.jsonl") is None
    (broken,) = screen.broken
    assert str(tmp_path / "trace.jsonl") in broken
    assert f"{WITHOUT_TRACE}=1" in broken


def test_a_missing_trace_is_fine_for_those_who_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(WITHOUT_TRACE, "1")
    screen = Screen()
    assert find_trace(screen, tmp_path / "trace.jsonl") is None
    assert screen.broken == []
    assert "no hit rates" in capsys.readouterr().out


def test_a_trace_that_is_there_is_read_whatever_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WITHOUT_TRACE, "1")
    (tmp_path / "trace.jsonl").write_text("not a trace\n")
    with pytest.raises(TraceUnreadableError, match=r"trace\.jsonl:1"):
        find_trace(Screen(), tmp_path / "trace.jsonl")
