"""What the demonstration reads of real nodes: where memory lies, which containers live, what they take."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from demo.cluster import RACKS
from demo.real_nodes import working_set
from demo.real_nodes.cluster import NodesCluster
from demo.real_nodes.working_set import working_set_bytes
from devcluster.nodes.cluster import RealCluster
from devcluster.rest import JsonObject


@pytest.fixture
def cluster(tmp_path: Path) -> NodesCluster:
    """Nodes that are folders, and whose power can be cut."""
    real = SimpleNamespace(root=lambda name: tmp_path / name, power_cut=lambda _: None)
    return NodesCluster(cast("RealCluster", real))


def pod(node: str, state: str = "running") -> JsonObject:
    return {
        "metadata": {"name": "agent", "uid": "1234"},
        "spec": {"nodeName": node},
        "status": {"containerStatuses": [{"containerID": "containerd://abc", "state": {state: {}}}]},
    }


@pytest.mark.parametrize(
    ("segment", "lies"),
    [
        ("10.88.0.12:17100", True),
        ("10.89.2.7:17001", True),
        ("10.89.3.7:17001", False),
        ("10.88.0.1:17900", False),
        ("10.88.0.1", False),
        ("some-host:17001", False),
    ],
)
def test_segments_lie_on_the_node_whose_address_or_pods_they_name(
    cluster: NodesCluster, segment: str, lies: bool
) -> None:
    assert cluster.lies_on("node2", segment) is lies


def test_every_node_has_its_accelerators_where_the_agent_looks(cluster: NodesCluster, tmp_path: Path) -> None:
    for node in RACKS:
        found = json.loads((tmp_path / node / "var/lib/kvpool/devices.json").read_text())
        assert [device["uuid"] for device in found["devices"]] == [f"GPU-{node}-0", f"GPU-{node}-1"]


def test_a_container_lives_while_it_runs_on_a_node_that_has_power(cluster: NodesCluster) -> None:
    assert cluster.life_of(pod("node2")) == "containerd://abc"
    assert cluster.life_of(pod("node2", "waiting")) == ""
    cluster.take_away("node2")
    assert cluster.life_of(pod("node2")) == ""
    assert cluster.life_of(pod("node3")) == "containerd://abc"


def test_page_cache_that_is_not_in_use_is_no_part_of_what_a_pod_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_set, "ROOT", tmp_path)
    group = tmp_path / "memory" / "kvpool-1" / "node2" / "kubepods" / "burstable" / "pod1234"
    group.mkdir(parents=True)
    (group / "memory.usage_in_bytes").write_text("1000\n")
    (group / "memory.stat").write_text("cache 600\ninactive_file 1\ntotal_inactive_file 300\n")
    assert working_set_bytes("kvpool-1", pod("node2")) == 700
    with pytest.raises(FileNotFoundError, match="agent has no cgroup"):
        working_set_bytes("kvpool-1", pod("node3"))
