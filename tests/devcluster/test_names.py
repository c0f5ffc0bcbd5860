"""Names of headless Services are in the hosts file, and nobody else's."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster import sandbox
from devcluster.controlplane import ControlPlane
from devcluster.hosts import SimulatedHost
from devcluster.names import ServiceNames
from devcluster.rest import JsonObject
from tests.harness.waiting import wait_until


def service(namespace: str, name: str, **spec: object) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"port": 80}], **spec},
    }


def slice_of(namespace: str, service: str, **readiness: bool) -> JsonObject:
    addresses = {"up": "10.9.9.1", "down": "10.9.9.2"}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{service}-1",
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4",
        "ports": [{"port": 80}],
        "endpoints": [
            {"addresses": [addresses[key]], "conditions": {"ready": ready}}
            for key, ready in readiness.items()
        ],
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost\n")
    return path


def test_ready_addresses_of_headless_services_have_names(
    control_plane: ControlPlane, namespace: str, file: Path
) -> None:
    control_plane.admin.create(service(namespace, "agents", clusterIP="None"))
    control_plane.admin.create(slice_of(namespace, "agents", up=True, down=False))
    control_plane.admin.create(service(namespace, "ordinary"))
    control_plane.admin.create(slice_of(namespace, "ordinary", up=True))
    ServiceNames(control_plane.admin, file).update()
    text = file.read_text()
    name = f"agents.{namespace}.svc"
    assert text.startswith("127.0.0.1 localhost\n")
    assert f"10.9.9.1 {name} {name}.cluster.local\n" in text
    assert "10.9.9.2" not in text
    assert f"ordinary.{namespace}" not in text


def test_names_follow_the_slices_and_are_taken_back(
    control_plane: ControlPlane, namespace: str, file: Path
) -> None:
    with ServiceNames(control_plane.admin, file):
        control_plane.admin.create(service(namespace, "agents", clusterIP="None"))
        control_plane.admin.create(slice_of(namespace, "agents", up=True))
        wait_until(lambda: f"agents.{namespace}.svc" in file.read_text(), 10, "the name")
        control_plane.admin.delete("discovery.k8s.io/v1", "EndpointSlice", "agents-1", namespace)
        wait_until(lambda: f"agents.{namespace}.svc" not in file.read_text(), 10, "the name to go")
    assert file.read_text() == "127.0.0.1 localhost\n"


def test_two_control_planes_keep_their_names_beside_each_other(
    control_plane: ControlPlane, fresh_control_plane: Callable[..., ControlPlane], namespace: str, file: Path
) -> None:
    other = fresh_control_plane(crds=False)
    other.create_namespace("elsewhere")
    for plane, where in ((control_plane, namespace), (other, "elsewhere")):
        plane.admin.create(service(where, "agents", clusterIP="None"))
        plane.admin.create(slice_of(where, "agents", up=True))
    with ServiceNames(control_plane.admin, file) as ours:
        with ServiceNames(other.admin, file) as theirs:
            for names in (ours, theirs, ours):
                names.update()
            assert file.read_text().count("agents.elsewhere.svc ") == 1
            assert file.read_text().count(f"agents.{namespace}.svc ") == 1
        assert "elsewhere" not in file.read_text()
        assert f"agents.{namespace}.svc" in file.read_text()
    assert file.read_text() == "127.0.0.1 localhost\n"


@pytest.mark.skipif(not sandbox.inside(), reason="the hosts file is private only in the sandbox")
def test_a_service_of_pods_can_be_resolved(
    fresh_control_plane: Callable[..., ControlPlane], add_host: Callable[..., SimulatedHost]
) -> None:
    plane = fresh_control_plane(crds=False, controllers=True)
    namespace = f"named-{secrets.token_hex(4)}"
    plane.create_namespace(namespace)
    host = add_host(plane, "node-1")
    labels = {"app": "operator"}
    plane.admin.create(service(namespace, "agents", clusterIP="None", selector=labels))
    host.add_pod(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "operator", "namespace": namespace, "labels": labels},
            "spec": {"containers": [{"name": "main", "image": "none"}]},
        }
    )
    with ServiceNames(plane.admin, sandbox.NAMES):

        def resolved() -> str:
            return socket.gethostbyname(f"agents.{namespace}.svc.cluster.local")

        wait_until(lambda: resolved() == host.address, 20, "the name", tolerate=(OSError,))
