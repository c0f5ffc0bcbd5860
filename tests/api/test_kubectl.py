"""What people see: ``kubectl explain`` and ``kubectl get``, with the real kubectl."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from devcluster import recipe
from devcluster.controlplane import ControlPlane
from kvpool.api import KINDS
from kvpool.api.schema import resource_of
from tests.api.placing import placed
from tests.harness.waiting import wait_until
from tools.crdgen.samples import good_samples

GOOD = good_samples()
NOW = "2026-01-05T10:00:00Z"


def kubectl(plane: ControlPlane, folder: Path, *arguments: str) -> str:
    """Output of a kubectl command that must succeed."""
    where = ["--kubeconfig", str(plane.kubeconfig), "--cache-dir", str(folder)]
    command = [str(recipe.binary("kubectl")), *where, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def explained(plane: ControlPlane, folder: Path, path: str) -> str:
    """The explanation, once the API server has published the schema."""
    return wait_until(
        lambda: kubectl(plane, folder, "explain", path),
        30,
        f"kubectl explain {path}",
        tolerate=(AssertionError,),
    )


def condition(kind: str, reason: str, message: str = "", status: str = "True") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": NOW}


def test_explain_says_what_a_tier_of_a_pool_takes(kvpool_plane: ControlPlane, tmp_path: Path) -> None:
    text = explained(kvpool_plane, tmp_path, "kvpool.spec.tiers")
    assert "Bytes wanted in one tier, over all nodes together." in text
    assert "DRAM, CXL or SSD." in text
    assert "enum: Adopt, Release" in text
    assert "size\t<string> -required-" in text
    assert "no description" not in text


@pytest.mark.parametrize("kind", [resource_of(model).singular for model in KINDS])
def test_explain_has_words_for_every_field(kvpool_plane: ControlPlane, tmp_path: Path, kind: str) -> None:
    for part in ("", ".spec", ".status"):
        text = explained(kvpool_plane, tmp_path, kind + part)
        assert "no description" not in text
        assert "``" not in text


STATUS: dict[str, dict[str, Any]] = {
    "tierbudget-full.yaml": {
        "nodes": {"matched": 12, "ready": 11, "stale": 1},
        "conditions": [condition("Ready", "AgentsStale", status="False")],
    },
    "kvpool-enforce.yaml": {
        "conditions": [
            condition("Ready", "Bound", "37Gi of 1Ti"),
            condition("Bound", "Bound", "1Ti of 1Ti"),
            condition("Admitted", "Admitted", "1Ti of 1Ti"),
        ],
    },
    "pdgroup-full.yaml": {"slots": 4, "serving": 3, "conditions": [condition("Ready", "SlotUnserved")]},
    "supernode-full.yaml": {
        "nodes": 8,
        "devices": {"active": 56, "spare": 7, "faulty": 1},
        "spares": {"ready": 7},
        "conditions": [condition("Ready", "SparesReady")],
    },
    "kvnode.yaml": {
        "appliedRevision": 12,
        "agentVersion": "0.1.0",
        "lastReport": NOW,
        "conditions": [
            condition("AgentConnected", "Connected"),
            condition("AgentHealthy", "LoopsSucceed"),
            condition("LeaseHeld", "Granted"),
        ],
    },
    "engineslot.yaml": {"weightAcknowledged": 100, "conditions": [condition("Serving", "Acknowledged")]},
    "remap.yaml": {
        "phase": "Succeeded",
        "stages": [{"name": "serving", "endedAt": NOW, "seconds": "2.41s"}],
        "fence": {"level": "Process", "proof": "ReleaseAck"},
    },
}
ROWS = {
    "tierbudget-full.yaml": ["MODE", "Enforce", "12", "11"],
    "kvpool-enforce.yaml": ["MODE", "Enforce", "1Ti of 1Ti", "37Gi of 1Ti", "REASON", "AGE"],
    "pdgroup-full.yaml": ["MODE", "Enforce", "SERVING", "4", "3", "SlotUnserved"],
    "supernode-full.yaml": ["NODES", "8", "ACTIVE", "56", "SPARES", "7", "FAULTY", "1", "SparesReady"],
    "kvnode.yaml": ["CONNECTED", "True", "HEALTHY", "LEASE", "LAST-REPORT"],
    "engineslot.yaml": ["GROUP", "chat", "Decode", "node-7", "3145729", "WEIGHT", "100", "True"],
    "remap.yaml": ["SLOT", "chat-decode-0", "Restorative", "node-7", "node-9", "Succeeded", "2.41s"],
}


@pytest.mark.parametrize("name", ROWS)
def test_get_shows_the_figures_people_ask_for(
    kvpool_plane: ControlPlane, namespace: str, tmp_path: Path, name: str
) -> None:
    api, manifest = kvpool_plane.admin, placed(GOOD[name], namespace)
    created = api.create(manifest)
    api.call("PUT", api.path_of(manifest, "status"), created | {"status": STATUS[name]})
    plural = api.resource(manifest["apiVersion"], manifest["kind"]).plural
    where = ["-n", namespace] if "namespace" in manifest["metadata"] else []
    table = kubectl(kvpool_plane, tmp_path, "get", plural, manifest["metadata"]["name"], *where)
    head, row = table.splitlines()
    assert head.split()[-1] == "AGE"
    assert [cell for cell in ROWS[name] if cell not in f"{head} {row}"] == []
    assert "<invalid>" not in table


def test_one_word_lists_every_kind_of_kvpool(
    kvpool_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    kvpool_plane.admin.create(placed(GOOD["kvpool-shortest.yaml"], namespace))
    kvpool_plane.admin.create(placed(GOOD["pdgroup-shortest.yaml"], namespace))
    listed = kubectl(kvpool_plane, tmp_path, "get", "kv", "-n", namespace, "-o", "name").split()
    assert {"kvpool.kvpool.dev/chat", "pdgroup.kvpool.dev/chat"} <= set(listed)


def test_a_pool_is_got_by_the_singular_of_its_kind(
    kvpool_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    kvpool_plane.admin.create(placed(GOOD["kvpool-shortest.yaml"], namespace))
    got = kubectl(kvpool_plane, tmp_path, "get", "kvpool", "chat", "-n", namespace, "-o", "name")
    assert got.split() == ["kvpool.kvpool.dev/chat"]


@pytest.mark.parametrize("short", ["tb", "kvp", "pdg", "sn", "kvn", "slot", "remap"])
def test_short_names_are_served(kvpool_plane: ControlPlane, tmp_path: Path, short: str) -> None:
    kubectl(kvpool_plane, tmp_path, "get", short, "-A")
