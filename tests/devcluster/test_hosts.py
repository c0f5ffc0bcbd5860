"""Simulated hosts behave, towards the API and the network, as the real ones tests stand them in for."""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster import hostfiles, sandbox
from devcluster.controlplane import ControlPlane
from devcluster.hosts import LEASES, SimulatedHost
from devcluster.process import ManagedProcess, port_answers
from devcluster.rest import JsonObject
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


def test_a_host_that_was_taken_for_silent_says_again_that_it_is_ready(
    control_plane: ControlPlane, add_host: AddHost, node_name: str
) -> None:
    add_host(control_plane, node_name)

    def readiness() -> str:
        node = control_plane.admin.get("v1", "Node", node_name)
        return next(str(one["status"]) for one in node["status"]["conditions"] if one["type"] == "Ready")

    silent = {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}
    control_plane.admin.patch("v1", "Node", node_name, {"status": silent}, subresource="status")
    wait_until(lambda: readiness() == "True", 15, "the host to say that it is ready")


def test_a_host_says_which_system_it_runs_as_kubelets_do(
    control_plane: ControlPlane, add_host: AddHost, node_name: str
) -> None:
    add_host(control_plane, node_name)
    labels = control_plane.admin.get("v1", "Node", node_name)["metadata"]["labels"]
    assert labels["kubernetes.io/os"] == "linux"


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


def container_status(plane: ControlPlane, namespace: str, name: str) -> JsonObject:
    status = plane.admin.get("v1", "Pod", name, namespace)["status"]
    return dict(status["containerStatuses"][0])


def test_a_pod_whose_process_died_is_started_again(
    control_plane: ControlPlane, namespace: str, add_host: AddHost, node_name: str
) -> None:
    host = add_host(control_plane, node_name, runner=serve)
    made = host.add_pod(pod("web", namespace))
    process = host.process_of(made)
    assert process is not None
    first = process.pid
    process.kill()

    def came_back() -> bool:
        return bool(container_status(control_plane, namespace, "web")["restartCount"] == 1)

    wait_until(came_back, 10, "the restart to be counted")
    assert process.pid != first
    assert container_status(control_plane, namespace, "web")["lastState"]["terminated"]["exitCode"] == 137
    wait_until(lambda: is_ready(control_plane, namespace, "web"), 10, "the Pod to be ready again")
    wait_until(lambda: port_answers(PORT, host.address), 10, "the server to answer again")


def test_a_pod_that_ends_at_once_is_started_ever_more_rarely(
    control_plane: ControlPlane, namespace: str, add_host: AddHost, node_name: str
) -> None:
    starts: list[float] = []

    def fail(host: SimulatedHost, pod: JsonObject) -> ManagedProcess:
        return host.start(pod["metadata"]["name"], ["sh", "-c", "date +%s.%N; exit 3"])

    host = add_host(control_plane, node_name, runner=fail)
    host.add_pod(pod("web", namespace))

    def four_starts() -> bool:
        starts[:] = [float(line) for line in (host.folder / "web.log").read_text().split()]
        return len(starts) >= 4

    wait_until(four_starts, 15, "four starts")
    waits = [later - earlier for earlier, later in itertools.pairwise(starts[:4])]
    assert waits[2] > 0.7, waits
    status = container_status(control_plane, namespace, "web")
    assert status["lastState"]["terminated"]["exitCode"] == 3
    wait_until(lambda: not is_ready(control_plane, namespace, "web"), 10, "the Pod to be not ready")


def test_a_pod_that_is_not_to_be_started_again_fails(
    control_plane: ControlPlane, namespace: str, add_host: AddHost, node_name: str
) -> None:
    host = add_host(control_plane, node_name, runner=serve)
    made = host.add_pod(pod("once", namespace, restartPolicy="Never"))
    process = host.process_of(made)
    assert process is not None
    process.kill()
    wait_until(
        lambda: phase_and_address(control_plane, namespace, "once")[0] == "Failed", 10, "the Pod to fail"
    )
    assert not process.running


def test_a_pod_whose_container_cannot_start_says_why_and_is_tried_again(
    control_plane: ControlPlane, namespace: str, add_host: AddHost, node_name: str
) -> None:
    tries: list[str] = []

    def refuse_twice(host: SimulatedHost, pod: JsonObject) -> ManagedProcess:
        tries.append(host.name)
        if len(tries) < 3:
            raise FileNotFoundError("no such program: engine")
        return serve(host, pod)

    host = add_host(control_plane, node_name, runner=refuse_twice)
    host.add_pod(pod("web", namespace))
    waiting = container_status(control_plane, namespace, "web")["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert "no such program: engine" in waiting["message"]
    assert phase_and_address(control_plane, namespace, "web")[0] == "Pending"
    wait_until(lambda: is_ready(control_plane, namespace, "web"), 10, "the third try to succeed")


def test_a_pod_with_a_readiness_probe_is_ready_when_it_says_so(
    control_plane: ControlPlane, namespace: str, add_host: AddHost, node_name: str, tmp_path: Path
) -> None:
    def serve_folder(host: SimulatedHost, pod: JsonObject) -> ManagedProcess:
        argv = [sys.executable, "-m", "http.server", "--bind", host.address, "--directory", tmp_path, PORT]
        process = host.start(pod["metadata"]["name"], [str(word) for word in argv])
        process.wait_for_port(PORT, host.address)
        return process

    host = add_host(control_plane, node_name, runner=serve_folder)
    probed = pod("web", namespace)
    probed["spec"]["containers"][0] |= {
        "ports": [{"name": "web", "containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "web"}},
    }
    host.add_pod(probed)
    assert not is_ready(control_plane, namespace, "web")
    (tmp_path / "ready").touch()
    wait_until(lambda: is_ready(control_plane, namespace, "web"), 10, "the probe to pass")


@pytest.mark.skipif(not sandbox.inside(), reason="hosts have addresses of their own only in the sandbox")
def test_pods_outside_the_hosts_network_have_addresses_of_their_own(
    control_plane: ControlPlane, namespace: str, add_host: AddHost, node_name: str
) -> None:
    def serve_there(host: SimulatedHost, pod: JsonObject) -> ManagedProcess:
        address = host.address_of(pod)
        argv = [sys.executable, "-m", "http.server", "--bind", address, str(PORT)]
        process = host.start(pod["metadata"]["name"], argv)
        process.wait_for_port(PORT, address)
        return process

    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    addresses = [f"10.77.{100 + worker}.{last}" for last in (1, 2)]
    host = add_host(control_plane, node_name, runner=serve_there, pod_addresses=addresses)
    for name in ("one", "two"):
        host.add_pod(pod(name, namespace))
    in_host = host.add_pod(pod("in-host", namespace, hostNetwork=True))
    found = [phase_and_address(control_plane, namespace, name)[1] for name in ("one", "two", "in-host")]
    assert found == [*addresses, host.address]
    assert in_host["status"]["hostIP"] == host.address
    assert all(port_answers(PORT, address) for address in found)
    control_plane.admin.delete("v1", "Pod", "one", namespace)
    wait_until(lambda: not port_answers(PORT, addresses[0]), 10, "the first address to go")
    host.take_away()
    assert not any(port_answers(PORT, address) for address in found)


@pytest.mark.skipif(not sandbox.inside(), reason="hosts have mounts of their own only in the sandbox")
def test_hosts_with_mounts_of_their_own_do_not_see_each_others(
    control_plane: ControlPlane, add_host: AddHost, node_name: str
) -> None:
    hosts = [add_host(control_plane, f"{node_name}-{index}", own_mounts=True) for index in (1, 2)]
    for host in hosts:
        script = "mkdir /mnt/kv /mnt/mem && mount -t tmpfs kvpool-test /mnt/mem && cat " + hostfiles.BOOT_ID
        process = host.start("mount", ["sh", "-c", f"{script} >/mnt/kv/boot && touch /mnt/mem/there"])
        assert process.wait(10) == 0, process.tail()
        assert "kvpool-test /mnt/mem tmpfs" in host.files.mounts()
        assert host.files.seen("/mnt/mem/there").exists()
        assert not host.files.outer("/mnt/mem/there").exists()
        assert host.files.outer("/mnt/kv/boot").read_text().strip() == host.boot_id
    assert "kvpool-test" not in Path("/proc/self/mounts").read_text()
    first = hosts[0]
    first.take_away()
    first.bring_up()
    assert "kvpool-test" not in first.files.mounts()
    assert first.files.seen("/mnt/kv/boot").read_text().strip() != first.boot_id


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
