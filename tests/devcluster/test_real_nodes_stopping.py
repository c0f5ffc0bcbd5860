"""A cluster of real nodes that cannot be stopped in one thing is stopped in all others, and says why."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from devcluster.nodes import cabling, cgroups, requirements
from devcluster.nodes import cluster as module
from devcluster.nodes.cabling import CablingError
from devcluster.nodes.cgroups import CgroupError
from devcluster.nodes.cluster import RealCluster
from devcluster.nodes.headquarters import Headquarters
from devcluster.nodes.layers import LayerStore
from devcluster.process import ProcessError

STEPS = ["headquarters", "bridge", "cgroups", "layers"]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps of stopping as they are taken; those up to the cgroups fail."""
    taken: list[str] = []

    def step(name: str, error: Exception | None = None) -> None:
        taken.append(name)
        if error is not None:
            raise error

    monkeypatch.setattr(Headquarters, "stop", lambda _: step("headquarters", OSError("no such process")))
    monkeypatch.setattr(cabling, "remove_bridge", lambda _: step("bridge", CablingError("no end after 10 s")))
    monkeypatch.setattr(cgroups, "remove", lambda _: step("cgroups", CgroupError("still has processes")))
    monkeypatch.setattr(LayerStore, "close", lambda _: step("layers"))
    return taken


def test_every_step_of_stopping_is_taken_whatever_another_raises(taken: list[str], tmp_path: Path) -> None:
    cluster = RealCluster(tmp_path, 1)
    node = cluster._machine("node1")
    node.disk.mkdir(parents=True)
    with pytest.raises(CgroupError, match="still has processes"):
        cluster.stop()
    assert taken == STEPS
    assert not node.disk.exists()
    assert cluster.nodes == []


@pytest.fixture
def startable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a cluster seem to be startable here."""
    monkeypatch.setattr(requirements, "require", lambda _: None)
    monkeypatch.setattr(cabling, "bridge_exists", lambda: False)
    monkeypatch.setattr(module, "NEEDED", ())
    monkeypatch.setattr(cgroups, "prune", list)


@pytest.mark.usefixtures("startable")
def test_why_a_cluster_did_not_start_is_told_before_what_could_not_be_stopped(
    taken: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: RealCluster) -> None:
        raise ProcessError("kubelet: ended with 1")

    monkeypatch.setattr(RealCluster, "_start", start)
    with pytest.raises(ProcessError, match="kubelet: ended with 1") as raised:
        RealCluster(tmp_path, 1).start()
    assert raised.value.__notes__ == ["Nor could all of it be stopped: still has processes"]
    assert taken == STEPS


@pytest.mark.usefixtures("startable")
def test_an_error_beside_running_nodes_is_told_before_what_could_not_be_stopped(
    taken: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RealCluster, "_start", lambda _: None)
    with pytest.raises(AssertionError, match="a test failed") as raised, RealCluster(tmp_path, 1):
        raise AssertionError("a test failed")
    assert raised.value.__notes__ == ["Nor could all of it be stopped: still has processes"]
    assert taken == STEPS


def test_a_command_without_an_end_is_an_error_of_the_cabling(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 10)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(CablingError, match="ip -batch -`: no end after 10 s"):
        cabling.cut("node1")
    with pytest.raises(CablingError, match="ip link delete node1`: no end after 10 s"):
        cabling.remove_bridge(["node1"])
