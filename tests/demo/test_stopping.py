"""Stopping a demonstration takes the cgroups of its nodes along, which no sandbox ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo import places, stopping
from devcluster.nodes import cgroups
from devcluster.nodes.cluster import NAME_FILE


@pytest.fixture
def hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the one hierarchy of cgroups."""
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    monkeypatch.setattr(places, "NODES", tmp_path / "nodes")
    monkeypatch.setattr(places, "PIDFILE", tmp_path / "sandbox.pid")
    hierarchy = tmp_path / "memory"
    hierarchy.mkdir()
    (hierarchy / "cgroup.procs").touch()
    return hierarchy


def test_the_cgroups_of_nodes_go_and_those_of_others_stay(hierarchy: Path) -> None:
    places.NODES.mkdir()
    (places.NODES / NAME_FILE).write_text("kvpool-1")
    for name in ("kvpool-1", "kvpool-2"):
        (hierarchy / name / "node1" / "kubepods").mkdir(parents=True)
    stopping.stop()
    assert not (hierarchy / "kvpool-1").exists()
    assert (hierarchy / "kvpool-2" / "node1").exists()
    stopping.stop()


def test_there_may_be_nothing_to_stop(hierarchy: Path) -> None:
    stopping.stop()
    assert hierarchy.exists()
