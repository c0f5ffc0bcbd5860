"""`kubectl kvpool report`: what is in the bundle, and what must not be."""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path
from typing import Any

import yaml

from devcluster.controlplane import ControlPlane
from kvpool.cli.redaction import REMOVED, redacted
from tests.cli.conftest import Plugin, own, put

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "operator-0",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "stays"},
        "managedFields": [{"manager": "x"}],
    },
    "spec": {
        "containers": [
            {
                "name": "operator",
                "image": "kvpool-operator",
                "args": ["--mode=Enforce", "--hub-token=hf_123"],
                "env": [
                    {"name": "HF_TOKEN", "value": "hf_123"},
                    {"name": "MODE", "value": "Enforce"},
                    {"name": "KEY_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
            }
        ]
    },
}


def test_secrets_are_taken_out_and_the_rest_stays() -> None:
    clean = redacted(POD)
    container = clean["spec"]["containers"][0]
    assert container["args"] == ["--mode=Enforce", f"--hub-token={REMOVED}"]
    assert container["env"][0] == {"name": "HF_TOKEN", "value": REMOVED}
    assert container["env"][1]["value"] == "Enforce"
    assert container["env"][2] == POD["spec"]["containers"][0]["env"][2]
    assert "managedFields" not in clean["metadata"]
    assert clean["metadata"]["annotations"]["note"] == "stays"
    assert clean["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] == REMOVED


def test_data_of_secrets_and_of_others_configuration_is_taken_out() -> None:
    for kind, name in (("Secret", "kvpool-ca"), ("ConfigMap", "somebody-else")):
        obj = {"kind": kind, "metadata": {"name": name}, "data": {"a": "b"}}
        assert redacted(obj)["data"] == {"a": REMOVED}
    ours = {"kind": "ConfigMap", "metadata": {"name": "kvpool-pause"}, "data": {"paused": "true"}}
    assert redacted(ours)["data"] == {"paused": "true"}


def test_the_bundle_holds_objects_versions_and_status_and_no_secret(
    kvpool_plane: ControlPlane, namespace: str, operator_namespace: str, plugin: Plugin, tmp_path: Path
) -> None:
    put(kvpool_plane, own("KVPool", "chat", {"store": {"none": {}}}, namespace))
    put(kvpool_plane, {**POD, "metadata": {"name": "operator-0", "namespace": operator_namespace}})
    secret = {"apiVersion": "v1", "kind": "Secret", "stringData": {"key": "top-secret-text"}}
    put(kvpool_plane, {**secret, "metadata": {"name": "kvpool-ca", "namespace": operator_namespace}})
    path = tmp_path / "bundle.tar.gz"
    ran = plugin("report", "--out", str(path))
    assert ran.code == 0, ran.err
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with tarfile.open(path) as archive:
        files = {
            entry.name.removeprefix("kvpool-report/"): (archive.extractfile(entry) or path.open("rb"))
            .read()
            .decode()
            for entry in archive.getmembers()
        }
    assert "name: chat" in files["kvpools.yaml"]
    assert "POOLS" in files["status.txt"]
    assert "hf_123" not in files["operator/pods.yaml"]
    assert "top-secret-text" not in "".join(files.values())
    versions = yaml.safe_load(files["versions.yaml"])
    assert versions["customResources"]["kvpools.kvpool.dev"] == ["v1alpha1"]
    assert versions["plugin"]

    ran = plugin("report", "--out", str(path))
    assert (ran.code, ran.err) == (2, f"error: {path} exists: name another file with --out\n")
