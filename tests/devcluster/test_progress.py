"""Progress on a terminal: one line that fits, and keeps its figures."""

from __future__ import annotations

import io

import pytest

from devcluster.progress import Progress

LONG = "compiling kube-apiserver, kube-controller-manager, kube-scheduler, kubectl"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_line_fits_the_terminal_and_keeps_its_figures(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal = Terminal()
    Progress(LONG, 2647, terminal).update(1324, "k8s.io/kubernetes/pkg/apis/core/v1/helper/a-long-name")
    line = terminal.getvalue().removeprefix("\r\033[K")
    assert "1324/2647  50%  0:00" in line
    assert len(line) < columns
    assert "\n" not in line


def test_elsewhere_a_line_is_whole() -> None:
    stream = io.StringIO()
    progress = Progress(LONG, 2, stream)
    progress.finish("2 packages compiled")
    assert stream.getvalue() == f"{LONG}: 2 packages compiled (0:00)\n"
