"""The cluster in process form: a real control plane, and hosts that are stood in for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from demo import places
from demo.accelerators import FILE, Accelerators
from demo.cluster import DEVICES_A_NODE, INFRA, RACKS, SSD_FOLDER, Cluster, node_labels
from demo.deployment import Deployment
from demo.forms import Form
from demo.process_form.deployment import running_deployment
from demo.process_form.engine_pod import STATE_FOLDER
from demo.process_form.resident import resident_bytes
from devcluster import sandbox
from devcluster.controlplane import ControlPlane
from devcluster.hosts import SimulatedHost, host_address
from devcluster.names import ServiceNames
from devcluster.podprocess import PodProcesses
from devcluster.process import ManagedProcess
from devcluster.rest import JsonObject

POD_ADDRESSES = [f"10.77.100.{last}" for last in range(1, 17)]
"""Of the operators' Pods; all others share their host's network."""


class ProcessCluster(Cluster):
    """`hosts` by name; Pods are processes of this machine."""

    form = Form.PROCESSES
    client_address = sandbox.OWN_ADDRESS
    state_folder = STATE_FOLDER

    def __init__(self, plane: ControlPlane, hosts: Mapping[str, SimulatedHost]) -> None:
        self._plane = plane
        self._hosts = hosts
        # Keepers are processes of this user here: Pods' users play no part without a container runtime.
        self.chart_values = {
            "agent.extraArgs[0]": f"--keeper-uid={os.getuid()}",
            "agent.extraArgs[1]": f"--keeper-gid={os.getgid()}",
        }
        self.accelerators = {
            name: Accelerators(hosts[name].files.outer(f"{STATE_FOLDER}/{FILE}"), name, DEVICES_A_NODE)
            for name in RACKS
        }

    @property
    def plane(self) -> ControlPlane:
        """The control plane."""
        return self._plane

    def existing_deployment(self) -> AbstractContextManager[Deployment]:
        """Start a Mooncake master, engines and Traefik, as processes."""
        return running_deployment(self._plane, self._hosts, self.accelerators)

    def life_of(self, pod: JsonObject) -> str:
        """The process id."""
        process = self._process_of(pod)
        return str(process.pid) if process is not None and process.running else ""

    def kill(self, pod: JsonObject) -> None:
        """SIGKILL for its process."""
        process = self._process_of(pod)
        if process is not None:
            process.signal(signal.SIGKILL)

    def memory_bytes(self, pod: JsonObject, unit_bytes: int) -> int:
        """Resident bytes; the unit, which is mapped more than once, counts once."""
        process = self._process_of(pod)
        resident = 0 if process is None else resident_bytes(process.pid, leaving_out="/segment")
        return resident + unit_bytes

    def take_away(self, node: str) -> None:
        """The host's address goes, then every process."""
        self._hosts[node].take_away()

    def lies_on(self, node: str, segment: str) -> bool:
        """Everything on a host has its address."""
        return segment.startswith(f"{self._hosts[node].address}:")

    def seen(self, node: str, path: str) -> Path:
        """As the host's processes see it."""
        return self._hosts[node].files.seen(path)

    def mounts(self, node: str) -> str:
        """The host's own."""
        return self._hosts[node].files.mounts()

    def _process_of(self, pod: JsonObject) -> ManagedProcess | None:
        return self._hosts[pod["spec"]["nodeName"]].process_of(pod)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Start everything; end everything when left. Raises NotBuiltError, ProcessError or ApiError."""
    plane = ControlPlane(places.CONTROL_PLANE, controllers=True, scheduler=True)
    with plane:
        pods = PodProcesses(plane)
        hosts = {name: _host(plane, pods, name, index) for index, name in enumerate(sorted(RACKS), start=1)}
        for host in hosts.values():
            host.files.outer(SSD_FOLDER).mkdir(parents=True, exist_ok=True)
        hosts[INFRA] = _host(plane, pods, INFRA, 0, POD_ADDRESSES)
        try:
            with ThreadPoolExecutor() as pool, ServiceNames(plane.as_user("system:dns"), sandbox.NAMES):
                cluster = ProcessCluster(plane, hosts)
                list(pool.map(SimulatedHost.bring_up, hosts.values()))
                plane.install_gateway_api()
                yield cluster
        finally:
            with ThreadPoolExecutor() as pool:
                list(pool.map(SimulatedHost.take_away, hosts.values()))


def _host(
    plane: ControlPlane, pods: PodProcesses, name: str, index: int, pod_addresses: Sequence[str] = ()
) -> SimulatedHost:
    return SimulatedHost(
        plane,
        name,
        host_address(index),
        places.FOLDER / "hosts" / name,
        labels=node_labels(name),
        runner=pods,
        refresh=pods.refresh,
        own_mounts=True,
        pod_addresses=pod_addresses,
        logs=places.LOGS / name,
    )
