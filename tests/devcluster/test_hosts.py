"""Simulated hosts behave, towards the API and the network, as the real ones tests stand them in for."""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Callable

import pytest

from devcluster import sandbox
from devcluster.controlplane import ControlPlane
from devcluster.process import ManagedProcess, port_answers
from devcluster.rest import JsonObject
from tests.harness.hosts import LEASES, SimulatedHost
from tests.harness.waiting import wait_until

PORT = 7001
AddHost = Callable[..., SimulatedHost]


@pytest.fixture
def node_name() -> str:
    return f"node-{secrets.token_hex(4)}"


def pod(name: str, namespace: str, **spec: object) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "none"}], **spec},
    }


def serve(host: SimulatedHost, pod: JsonObject) -> ManagedProcess:
    """Stand for a Pod with a server on the host's own address."""
    argv = [sys.executable, "-m", "http.server", "--bind", host.address, str(PORT)]
    process = host.start(pod["metadata"]["name"], argv)
    process.wait_for_port(PORT, host.address)
    return process


def phase_and_address(plane: ControlPlane, namespace: str, name: str) -> tuple[str, str]:
    status = plane.admin.get("v1", "Pod", name, namespace)["status"]
    return status.get("phase", ""), status.get("podIP", "")


def is_ready(plane: ControlPlane, namespace: str, name: str) -> bool:
    conditions = plane.admin.get("v1", "Pod", name, namespace)["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def test_a_host_is_a_ready_node_that_renews_its_lease(
    control_plane: ControlPlane, add_host: AddHost, node_name: str
) -> None:
    host = add_host(control_plane, node_name, labels={"kvpool.dev/rack": "a"})
    node = control_plane.admin.get("v1", "Node", node_name)
    assert node["metadata"]["labels"]["kvpool.dev/rack"] == "a"
    assert {"type": "InternalIP", "address": host.address} in node["status"]["addresses"]
    assert [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"] == ["True"]

    def renewed_at() -> str:
        lease = control_plane.admin.get("coordination.k8s.io/v1", "Lease", node_name, LEASES)
        return str(lease["spec"]["renewTime"])

    first = renewed_at()
    wait_until(lambda: renewed_at() > first, 10, "the lease to be renewed")


def test_a_pod_bound_to_a_host_runs_with_its_address(
    control_plane: ControlPlane, namespace: str, add_host: AddHost, node_name: str
) -> None:
    host = add_host(control_plane, node_name, runner=serve)
    control_plane.admin.create(pod("web", namespace, nodeName=node_name))
    wait_until(
        lambda: phase_and_address(control_plane, namespace, "web") == ("Running", host.address),
        10,
        "the Pod to run",
    )
    assert port_answers(PORT, host.address)


def test_a_deleted_pod_ends_its_process_and_goes(
    control_plane: ControlPlane, namespace: str, add_host: AddHost, node_name: str
) -> None:
    host = add_host(control_plane, node_name, runner=serve)
    made = host.add_pod(pod("web", namespace))
    process = host.process_of(made)
    assert process is not None
    control_plane.admin.delete("v1", "Pod", "web", namespace)
    wait_until(
        lambda: control_plane.admin.find("v1", "Pod", "web", namespace) is None, 10, "the Pod to be deleted"
    )
    assert process.returncode == -15


def test_a_pod_whose_process_died_is_not_ready(
    control_plane: ControlPlane, namespace: str, add_host: AddHost, node_name: str
) -> None:
    host = add_host(control_plane, node_name, runner=serve)
    made = host.add_pod(pod("web", namespace))
    assert is_ready(control_plane, namespace, "web")
    process = host.process_of(made)
    assert process is not None
    process.kill()
    wait_until(lambda: not is_ready(control_plane, namespace, "web"), 10, "the Pod to be not ready")
    process.start()
    wait_until(lambda: is_ready(control_plane, namespace, "web"), 10, "the Pod to be ready again")


def test_a_host_taken_away_goes_silent_and_its_objects_stay(
    control_plane: ControlPlane, namespace: str, add_host: AddHost, node_name: str
) -> None:
    host = add_host(control_plane, node_name, runner=serve)
    made = host.add_pod(pod("web", namespace))
    process = host.process_of(made)
    assert process is not None
    host.take_away()
    assert not process.running
    assert not port_answers(PORT, host.address)
    assert control_plane.admin.find("v1", "Node", node_name) is not None
    assert phase_and_address(control_plane, namespace, "web") == ("Running", host.address)
    first_boot = host.boot_id
    host.bring_up()
    wait_until(lambda: port_answers(PORT, host.address), 10, "the Pod's process to be back")
    node = control_plane.admin.get("v1", "Node", node_name)
    assert node["status"]["nodeInfo"]["bootID"] == host.boot_id != first_boot


@pytest.mark.skipif(not sandbox.inside(), reason="hosts have addresses of their own only in the sandbox")
def test_nobody_hears_a_goodbye_from_a_host_that_lost_its_power(
    control_plane: ControlPlane, namespace: str, add_host: AddHost, node_name: str
) -> None:
    host = add_host(control_plane, node_name, runner=serve)
    host.add_pod(pod("web", namespace))
    with socket.create_connection((host.address, PORT), timeout=5) as open_connection:
        host.take_away()
        open_connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            open_connection.recv(1)
