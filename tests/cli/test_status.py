"""`kubectl kvpool status` against the real API server, with statuses as an operator writes them."""

from __future__ import annotations

import os
import subprocess

from devcluster import recipe
from devcluster.controlplane import ControlPlane
from tests.cli.conftest import PLUGIN, Plugin, ago, condition, own, put

GIB = 1 << 30
STORE = {"mooncake": {"master": {"serviceRef": {"name": "mooncake-master"}}}}


def looked_at_pool(namespace: str, **status: object) -> dict[str, object]:
    """A pool in Observe whose store holds 4Gi of others."""
    foreign = "the master answers; others brought 4Gi: node-1 2Gi, node-2 2Gi"
    figures = {"name": "DRAM", "foreign": "4Gi", "observedAt": ago(4)}
    by_node = [
        {"node": node, "tier": "DRAM", "size": "2Gi", "segments": 1, "observedAt": ago(4)}
        for node in ("node-1", "node-2")
    ]
    return own(
        "KVPool",
        "chat",
        {"store": STORE},
        namespace,
        status={
            "tiers": [figures],
            "foreign": by_node,
            "conditions": [condition("StoreReachable", "True", "Answers", foreign)],
            **status,
        },
    )


def test_an_observed_store_shows_foreign_bytes_by_node_and_their_age(
    kvpool_plane: ControlPlane, namespace: str, plugin: Plugin
) -> None:
    put(kvpool_plane, looked_at_pool(namespace))
    ran = plugin("status", "-n", namespace)
    row = next(line for line in ran.out.splitlines() if line.startswith(f"{namespace}/chat  DRAM"))
    assert row.split()[1:7] == ["DRAM", "0", "0", "0", "0", "4Gi"]
    assert row.split()[-1].endswith("s")
    others = [line.split() for line in ran.out.splitlines() if line.startswith(f"{namespace}/chat  node-")]
    assert [cells[1:5] for cells in others] == [[node, "DRAM", "2Gi", "1"] for node in ("node-1", "node-2")]
    assert all(cells[5].endswith("s") for cells in others)


def test_figures_are_bytes_for_programs(kvpool_plane: ControlPlane, namespace: str, plugin: Plugin) -> None:
    put(kvpool_plane, looked_at_pool(namespace))
    document = plugin("status", "-n", namespace, "-o", "json").document
    (row,) = document["pools"]
    assert row["name"] == f"{namespace}/chat"
    assert row["foreignBytes"] == 4 * GIB
    assert 4 <= row["ageSeconds"] < 60
    assert document["operator"]["leader"] == "operator-a"
    assert document["operator"]["operatorEpoch"] == 3
    assert document["operator"]["pause"]["paused"] is False


def test_a_finding_is_told_and_makes_the_exit_code_1(
    kvpool_plane: ControlPlane, namespace: str, plugin: Plugin
) -> None:
    lost = condition("StoreContentsLost", "True", "MasterRestarted", "the master forgot every key")
    put(kvpool_plane, looked_at_pool(namespace, conditions=[lost]))
    ran = plugin("status", "-n", namespace)
    assert ran.code == 1
    assert f"! KVPool {namespace}/chat: StoreContentsLost is True (MasterRestarted)" in ran.out


def test_every_line_fits_100_columns(kvpool_plane: ControlPlane, namespace: str, plugin: Plugin) -> None:
    long = "others brought much: " + ", ".join(
        f"node-with-a-long-name-{index} 123.45Gi" for index in range(8)
    )
    answers = condition("StoreReachable", "True", "Answers", long)
    put(kvpool_plane, looked_at_pool(namespace, conditions=[answers]))
    ran = plugin("status", "-n", namespace)
    assert max(len(line) for line in ran.out.splitlines()) <= 100


def test_a_missing_operator_is_a_finding(kvpool_plane: ControlPlane, namespace: str, plugin: Plugin) -> None:
    ran = plugin("status", "-n", namespace, "--operator-namespace", "nobody-here")
    assert ran.code == 1
    assert "no operator leads in namespace nobody-here" in " ".join(ran.out.split())


def test_kubectl_itself_finds_the_plugin(kvpool_plane: ControlPlane, operator_namespace: str) -> None:
    environment = {
        "PATH": f"{PLUGIN.parent}{os.pathsep}{os.environ['PATH']}",
        "KUBECONFIG": str(kvpool_plane.kubeconfig),
        "KVPOOL_OPERATOR_NAMESPACE": operator_namespace,
    }
    command = [str(recipe.binary("kubectl")), "kvpool", "status", "-n", operator_namespace]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.stdout.startswith("Operator: operator-a leads, operator epoch 3"), done.stderr
