"""`python -m devcluster` refuses what it cannot do or should not, and says why in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster import __main__ as command
from devcluster import background, build, kind, recipe
from devcluster.kubectl import ClusterError, answers, kubectl
from tests.harness.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command keeps its state here, not in the checkout."""
    for name in ("KUBECONFIG", "CHOSEN", "PLANE", "NODES"):
        monkeypatch.setattr(command, name, tmp_path / name.lower())
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    return tmp_path


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_kind_of_cluster_that_does_not_exist_is_refused_with_those_that_do() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "devcluster", "up"],
        cwd=ROOT,
        env={**os.environ, "DEVCLUSTER": "minikube"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == "devcluster: DEVCLUSTER is 'minikube': use one of kind, go, nodes, existing\n"


def test_a_context_that_looks_like_production_is_used_only_when_named_twice(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEVCLUSTER_CONTEXT", raising=False)
    monkeypatch.setattr(command, "kubectl", lambda _: "prod-east\n")
    with pytest.raises(ClusterError, match=r"'prod-east'.*set DEVCLUSTER_CONTEXT=prod-east"):
        command._use_current_context()
    assert not command.KUBECONFIG.exists()
    monkeypatch.setenv("DEVCLUSTER_CONTEXT", "prod-east")
    command._use_current_context()
    assert command.KUBECONFIG.stat().st_mode & 0o077 == 0


def test_an_existing_cluster_without_a_current_context_says_what_to_choose(
    folder: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_context(_: object) -> str:
        raise ClusterError("kubectl config: error: current-context is not set")

    monkeypatch.setattr(command, "kubectl", no_context)
    with pytest.raises(ClusterError, match=r"current-context is not set.*kubectl config use-context"):
        command._use_current_context()
    assert not command.KUBECONFIG.exists()


def test_a_machine_without_kubectl_is_told_where_the_compiled_one_is(
    folder: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipe, "binary", lambda name: Path("/cache/bin") / name)
    exports = f"export KUBECONFIG={command.KUBECONFIG}"
    assert command.export_lines() == [exports, "export PATH=$PATH:/cache/bin"]
    program(programs, "kubectl", "exit 0")
    assert command.export_lines() == [exports]


def test_kind_is_not_usable_without_an_engine_that_answers(programs: Path) -> None:
    with pytest.raises(ClusterError, match="`kind` is not on PATH"):
        kind.usable()
    program(programs, "kind", "exit 0")
    program(programs, "docker", "exit 1")
    with pytest.raises(ClusterError, match=r"no container engine answers \(docker, podman\)"):
        kind.usable()
    program(programs, "docker", "exit 0")
    assert kind.usable() == "docker"


def test_where_kind_fails_one_line_says_so_and_the_compiled_control_plane_is_taken(
    folder: Path,
    programs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program(programs, "docker", "exit 0")
    program(programs, "kind", 'test "$1" = get || { echo "first line" >&2; echo "no image" >&2; exit 1; }')
    started: list[Path] = []

    def start(plane: Path) -> Path:
        started.append(plane)
        (folder / "started").write_text("kubeconfig of the plane")
        return folder / "started"

    monkeypatch.setattr(build, "build", lambda _: None)
    monkeypatch.setattr(background, "start", start)
    monkeypatch.setattr(command, "install_crds", lambda _: None)
    command._start("")
    told = "not kind (kind cannot create a cluster: no image): using the control plane compiled here"
    assert capsys.readouterr().err == f"devcluster: {told}\n"
    assert started == [command.PLANE]
    assert command.CHOSEN.read_text() == "go"
    assert command.KUBECONFIG.read_text() == "kubeconfig of the plane"
    with pytest.raises(ClusterError, match="no image"):
        command._start("kind")


@pytest.mark.real
def test_a_cluster_serves_the_kinds_has_no_node_and_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (recipe.CONTROL_PLANE.built and recipe.GATEWAY_API.built):
        pytest.skip("kube-apiserver is not built yet: run `python -m devcluster.build control-plane`")
    monkeypatch.setenv("DEVCLUSTER", "go")
    try:
        command.up()
        assert capsys.readouterr().out.splitlines()[0] == f"export KUBECONFIG={command.KUBECONFIG}"
        kinds = {"pdgroups.kvpool.dev", "httproutes.gateway.networking.k8s.io"}
        listed = ["api-resources", "--output=name"]
        wait_until(lambda: kinds <= set(kubectl(listed, command.KUBECONFIG).split()), 20, f"{kinds} served")
        assert kubectl(["get", "nodes", "--output=name"], command.KUBECONFIG) == ""
        assert len(background.running(command.PLANE)) == 3
    finally:
        command.down()
    assert background.running(command.PLANE) == []
    assert not command.PLANE.exists()
    assert not answers(command.KUBECONFIG)
