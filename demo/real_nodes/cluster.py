"""The cluster on real nodes: Pods are containers of kubelets, and a node is lost by a power cut."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from ipaddress import ip_address, ip_network
from pathlib import Path

from demo import places
from demo.accelerators import FILE, Accelerators
from demo.cluster import DEVICES_A_NODE, INFRA, RACKS, SSD_FOLDER, Cluster, node_labels
from demo.deployment import Deployment
from demo.forms import Form
from demo.neighbours import pods
from demo.real_nodes.deployment import running_deployment
from demo.real_nodes.working_set import working_set_bytes
from devcluster.controlplane import ControlPlane
from devcluster.images.archive import TAG, built
from devcluster.nodes.cluster import RealCluster
from devcluster.nodes.layout import SWITCH_ADDRESS, address, pod_addresses
from devcluster.nodes.runtime import CTR
from devcluster.nodes.settings import ClusterSettings
from devcluster.process import ProcessError
from devcluster.rest import JsonObject

DISK_FOR_SSD = "/var/lib/kv"
POD_LOGS = "var-log/pods"


class NodesCluster(Cluster):
    """Five nodes of a real cluster."""

    form = Form.NODES
    client_address = SWITCH_ADDRESS
    state_folder = pods.AGENT_FOLDER

    def __init__(self, real: RealCluster) -> None:
        self._real = real
        self._lost: set[str] = set()
        self.chart_values = {
            "image.repository": "localhost",
            "image.tag": TAG,
            "agent.deviceResources[0]": pods.RESOURCE,
        }
        self.accelerators = {
            name: Accelerators(self.seen(name, f"{self.state_folder}/{FILE}"), name, DEVICES_A_NODE)
            for name in RACKS
        }

    @property
    def plane(self) -> ControlPlane:
        """The control plane."""
        return self._real.plane

    def existing_deployment(self) -> AbstractContextManager[Deployment]:
        """Start a Mooncake master, a device plugin, engines and Traefik, as Pods."""
        return running_deployment(self.plane)

    def life_of(self, pod: JsonObject) -> str:
        """The container's id; a container that is started again has another."""
        statuses = pod["status"].get("containerStatuses", [])
        if pod["spec"]["nodeName"] in self._lost or not statuses or "running" not in statuses[0]["state"]:
            return ""
        return str(statuses[0]["containerID"])

    def kill(self, pod: JsonObject) -> None:
        """SIGKILL for its container's first process, and so for all of it. Raises ProcessError."""
        container = self.life_of(pod).rpartition("/")[2]
        done = self._real.run(pod["spec"]["nodeName"], [*CTR, "tasks", "kill", "--signal=SIGKILL", container])
        if done.returncode != 0:
            raise ProcessError(f"{pod['metadata']['name']} cannot be killed: {done.stderr.strip()}")

    def memory_bytes(self, pod: JsonObject, unit_bytes: int) -> int:
        """The working set of the Pod's cgroup; the unit's pages are charged there as well."""
        return working_set_bytes(self._real.name, pod)

    def take_away(self, node: str) -> None:
        """A power cut."""
        self._lost.add(node)
        self._real.power_cut(node)

    def lies_on(self, node: str, segment: str) -> bool:
        """Keepers have the node's address, engines one of their own."""
        host = segment.rpartition(":")[0]
        try:
            return host == address(node) or ip_address(host) in ip_network(pod_addresses(node))
        except ValueError:
            return False

    def seen(self, node: str, path: str) -> Path:
        """As the node's first process sees it."""
        return self._real.root(node) / path.lstrip("/")

    def mounts(self, node: str) -> str:
        """As the node's first process sees them."""
        return (self._real.root(node).parent / "mounts").read_text()


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Start everything; end everything when left.

    Raises NodesImpossibleError, NotBuiltError, ProcessError or ApiError.
    """
    names = sorted([*RACKS, INFRA])
    settings = ClusterSettings(images=[built()], labels={name: node_labels(name) for name in names})
    with RealCluster(places.NODES, len(names), settings) as real:
        try:
            for name in RACKS:
                _mount_ssd(real, name)
            real.plane.install_gateway_api()
            yield NodesCluster(real)
        finally:
            _keep_logs(names)


def _mount_ssd(real: RealCluster, node: str) -> None:
    """Let the folder for SSD units lie on the node's own disk. Raises ProcessError."""
    command = f"mkdir -p {DISK_FOR_SSD} {SSD_FOLDER} && mount --bind {DISK_FOR_SSD} {SSD_FOLDER}"
    done = real.run(node, ["sh", "-c", command])
    if done.returncode != 0:
        raise ProcessError(f"{node}: `{command}`: {done.stderr.strip()}")


def _keep_logs(names: list[str]) -> None:
    """Copy what the Pods wrote from the nodes' disks, which go with the cluster."""
    for name in names:
        logs = places.NODES / name / "disk" / POD_LOGS
        if logs.is_dir():
            shutil.copytree(logs, places.LOGS / name, dirs_exist_ok=True)
