"""Real nodes for a person outlive their starter, are entered, lose power by hand, and end without a trace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import __main__ as command
from devcluster import build, recipe
from devcluster.kubectl import ClusterError
from devcluster.nodes import cgroups, held, requirements
from tests.devcluster.test_real_nodes import why_not
from tests.harness.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
START = """
import pathlib, sys
from devcluster.nodes import held
held.start(pathlib.Path(sys.argv[1]), 2, [])
"""
ENTER = """
import pathlib, sys
from devcluster.nodes import held
held.enter(pathlib.Path(sys.argv[1]), sys.argv[2:])
"""


def run(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where two nodes are held."""
    if reason := why_not():
        pytest.skip(reason)
    for part in (recipe.HELM, recipe.GATEWAY_API):
        if not part.built:
            pytest.skip(f"{part.name} is not built yet: run `python -m devcluster.build {part.name}`")
    folder = tmp_path / "nodes"
    started = run(START, folder)
    try:
        assert started.returncode == 0, started.stderr
        yield folder
    finally:
        held.stop(folder)


@pytest.mark.real
def test_nodes_outlive_their_starter_and_do_what_is_asked(folder: Path) -> None:
    groups = f"*/{(folder / 'cluster' / 'name').read_text()}"
    assert held.running(folder)
    assert list(cgroups.ROOT.glob(groups))

    def nodes() -> str:
        return run(ENTER, folder, "kubectl", "get", "nodes", "--no-headers").stdout

    assert nodes().split().count("Ready") == 2
    assert "v4" in run(ENTER, folder, "helm", "version", "--short").stdout
    kinds = run(ENTER, folder, "kubectl", "api-resources", "--output=name").stdout.split()
    assert {"pdgroups.kvpool.dev", "httproutes.gateway.networking.k8s.io"} <= set(kinds)
    held.act(folder, "cut", "node2")
    wait_until(lambda: "NotReady" in nodes(), 30, "node2 to be NotReady")
    held.act(folder, "start", "node2")
    wait_until(lambda: "NotReady" not in nodes(), 30, "node2 to be Ready again")
    with pytest.raises(ClusterError, match="'node7' is none of the nodes node1, node2"):
        held.act(folder, "cut", "node7")
    with pytest.raises(ClusterError, match="'explode' is none of cut, start"):
        held.act(folder, "explode", "node1")
    held.stop(folder)
    assert not held.running(folder)
    assert not folder.exists()
    assert not list(cgroups.ROOT.glob(groups))
    with pytest.raises(ClusterError, match="no nodes are running"):
        held.act(folder, "cut", "node2")


def up_with(monkeypatch: pytest.MonkeyPatch, folder: Path, nodes: str, chosen: str = "") -> int:
    """Exit status of `python -m devcluster up` with its state in `folder` and nothing to build."""
    monkeypatch.setattr(command, "FOLDER", folder)
    for name in ("KUBECONFIG", "NODES", "PLANE", "CHOSEN"):
        monkeypatch.setattr(command, name, folder / name.lower())
    monkeypatch.setattr(build, "build", lambda _: None)
    monkeypatch.setenv("NODES", nodes)
    monkeypatch.setenv("DEVCLUSTER", chosen)
    monkeypatch.setattr(sys, "argv", ["devcluster", "up"])
    return command.main()


def test_a_machine_without_what_nodes_need_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(requirements, "missing", lambda: "real nodes need root")
    assert up_with(monkeypatch, tmp_path, nodes="3") == 1
    assert capsys.readouterr().err == "devcluster: real nodes need root\n"


@pytest.mark.parametrize(
    ("nodes", "chosen", "told"),
    [("3", "kind", "leave one of them out"), ("ten", "", "NODES: invalid literal"), ("10", "", "use 1 to 9")],
)
def test_a_number_of_nodes_that_cannot_be_had_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    nodes: str,
    chosen: str,
    told: str,
) -> None:
    assert up_with(monkeypatch, tmp_path, nodes, chosen) == 1
    assert told in capsys.readouterr().err
