"""The cluster: a real control plane, one host for infrastructure, four with accelerators in two racks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from demo import places
from demo.accelerators import FILE, Accelerators
from devcluster import sandbox
from devcluster.controlplane import ControlPlane
from devcluster.hosts import SimulatedHost, host_address
from devcluster.names import ServiceNames
from devcluster.podprocess import PodProcesses
from devcluster.process import ManagedProcess
from devcluster.rest import JsonObject

INFRA = "infra-0"
RACKS = {"node-1": "rack-a", "node-2": "rack-a", "node-3": "rack-b", "node-4": "rack-b"}
DEVICES_A_NODE = 2
POD_ADDRESSES = [f"10.77.100.{last}" for last in range(1, 17)]
"""Of the operators' Pods; all others share their host's network."""
STATE_FOLDER = "/mnt/kvpool"
"""Of the agent on each host: the chart's agent.hostFolder."""
SSD_FOLDER = "/mnt/kv"


@dataclass
class Cluster:
    """What runs; hosts by name."""

    plane: ControlPlane
    infra: SimulatedHost
    nodes: Mapping[str, SimulatedHost]
    accelerators: Mapping[str, Accelerators]

    @property
    def hosts(self) -> list[SimulatedHost]:
        """Every host."""
        return [self.infra, *self.nodes.values()]

    def host_of(self, pod: JsonObject) -> SimulatedHost:
        """The host that a Pod is bound to. Raises KeyError."""
        return {host.name: host for host in self.hosts}[pod["spec"]["nodeName"]]

    def process_of(self, pod: JsonObject) -> ManagedProcess | None:
        """The process that stands for a Pod."""
        return self.host_of(pod).process_of(pod)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Start everything; end everything when left. Raises NotBuiltError, ProcessError or ApiError."""
    plane = ControlPlane(places.CONTROL_PLANE, controllers=True, scheduler=True)
    with plane:
        pods = PodProcesses(plane)
        infra = _host(plane, pods, INFRA, 0, {"kvpool.dev/class": "infra"}, POD_ADDRESSES)
        nodes = {name: _host(plane, pods, name, index, _labels(name)) for index, name in _numbered()}
        accelerators = {
            name: Accelerators(host.files.outer(f"{STATE_FOLDER}/{FILE}"), name, DEVICES_A_NODE)
            for name, host in nodes.items()
        }
        for host in nodes.values():
            host.files.outer(SSD_FOLDER).mkdir(parents=True, exist_ok=True)
        cluster = Cluster(plane, infra, nodes, accelerators)
        try:
            with ThreadPoolExecutor() as pool, ServiceNames(plane.as_user("system:dns"), sandbox.NAMES):
                list(pool.map(SimulatedHost.bring_up, cluster.hosts))
                plane.install_gateway_api()
                yield cluster
        finally:
            with ThreadPoolExecutor() as pool:
                list(pool.map(SimulatedHost.take_away, cluster.hosts))


def _host(
    plane: ControlPlane,
    pods: PodProcesses,
    name: str,
    index: int,
    labels: Mapping[str, str],
    pod_addresses: Sequence[str] = (),
) -> SimulatedHost:
    return SimulatedHost(
        plane,
        name,
        host_address(index),
        places.FOLDER / "hosts" / name,
        labels=labels,
        runner=pods,
        refresh=pods.refresh,
        own_mounts=True,
        pod_addresses=pod_addresses,
        logs=places.LOGS / name,
    )


def _numbered() -> Iterator[tuple[int, str]]:
    return enumerate(sorted(RACKS), start=1)


def _labels(name: str) -> dict[str, str]:
    board = name.replace("node", "board")
    return {"pool": "gpu", "kvpool.dev/board": board, "kvpool.dev/rack": RACKS[name]}
