"""A control plane with hand-written objects, and the plugin run as people run it: as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from devcluster.controlplane import ControlPlane
from devcluster.rest import JsonObject

PLUGIN = Path(sys.executable).with_name("kubectl-kvpool")
RUN_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of the plugin gave."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Standard output as JSON."""
        parsed: dict[str, Any] = json.loads(self.out)
        return parsed


Plugin = Callable[..., Ran]


@pytest.fixture(scope="session")
def kvpool_plane(control_plane: ControlPlane) -> ControlPlane:
    """The worker's shared control plane, with the CRDs installed and a place for an operator."""
    control_plane.install_crds()
    return control_plane


@pytest.fixture
def operator_namespace(kvpool_plane: ControlPlane, namespace: str) -> str:
    """A namespace in which an operator has just renewed its Lease; only its pause counts for the plugin."""
    kvpool_plane.admin.create(lease(namespace))
    return namespace


@pytest.fixture
def plugin(kvpool_plane: ControlPlane, operator_namespace: str) -> Plugin:
    """Runs `kubectl kvpool ...` against the control plane, in the test's own namespaces."""

    def run(verb: str, *arguments: str, stdin: str | None = None) -> Ran:
        flags = [
            "--kubeconfig",
            str(kvpool_plane.kubeconfig),
            "--operator-namespace",
            operator_namespace,
        ]
        return run_plugin(verb, *flags, *arguments, stdin=stdin)

    return run


def run_plugin(*arguments: str, stdin: str | None = None, environment: dict[str, str] | None = None) -> Ran:
    """Run the real entry point as a process."""
    done = subprocess.run(
        [str(PLUGIN), *arguments],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
        input=stdin,
        env=environment,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


def put(plane: ControlPlane, manifest: JsonObject) -> JsonObject:
    """Apply an object, and its status where it has one."""
    made = plane.admin.apply(manifest, field_manager="test")
    if "status" in manifest:
        made = plane.admin.apply(manifest, field_manager="test-status", subresource="status")
    return made


def ago(seconds: float) -> str:
    """A moment before now, as objects write it."""
    moment = datetime.now(UTC) - timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def condition(kind: str, status: str, reason: str, message: str = "", seconds: float = 60) -> JsonObject:
    """A condition that is as it is since `seconds`."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": ago(seconds),
    }


def lease(namespace: str) -> JsonObject:
    """The leader Lease of an operator."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "kvpool-operator",
            "namespace": namespace,
            "annotations": {"kvpool.dev/operator-epoch": "3"},
        },
        "spec": {
            "holderIdentity": "operator-a",
            "leaseDurationSeconds": 6,
            "renewTime": ago(1).replace("Z", "000Z"),
        },
    }


def own(
    kind: str, name: str, spec: JsonObject, namespace: str | None = None, **rest: JsonObject
) -> JsonObject:
    """A manifest of one of our kinds; `labels`, `annotations` go into metadata, `status` as it is."""
    metadata: JsonObject = {"name": name} | ({"namespace": namespace} if namespace else {})
    metadata |= {key: rest.pop(key) for key in ("labels", "annotations") if key in rest}
    return {"apiVersion": "kvpool.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec, **rest}
