"""kvpool on real nodes: installed with its chart as a person would, with a real Mooncake as a Pod."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from demo.accelerators import Accelerators
from demo.neighbours import pods
from demo.neighbours.mooncake import MooncakeAdmin
from devcluster import recipe
from devcluster.cache import CHECKOUT
from devcluster.nodes.cluster import RealCluster
from devcluster.nodes.layout import node_names
from devcluster.rest import Api, ApiError, JsonObject
from kvpool.api.labels import POOL as POOL_LABEL
from kvpool.api.quantity import parse_quantity
from tests.e2e.records import Since
from tests.harness.leftovers import leftovers
from tests.harness.objects import KVPOOL, NAMESPACE, SETTLE_SECONDS, KvpoolObjects
from tests.harness.waiting import wait_until

NODES = 3
RELEASE = "kvpool"
SYSTEM = "kvpool-system"
CHART = CHECKOUT / "charts" / "kvpool"
SSD_FOLDER = "/var/lib/kv"
DEVICES_A_NODE = 2
COMMAND_SECONDS = 120
HELM_SECONDS = 90
READY_SECONDS = 60.0
STORE_NODE = "node1"
KEPT_VALUES: dict[str, str] = {
    "image.repository": "localhost",
    "image.tag": "dev",
    "mode": "Enforce",
    "agent.nodeSelector.pool": "gpu",
    "agent.devices": f"simulated:{pods.DEVICES_FILE}",
    "agent.ssdFolders[0]": SSD_FOLDER,
    "agent.deviceResources[0]": pods.RESOURCE,
}
"""What a person has to say here beside the chart's defaults: images, hardware, and that kvpool may act."""


@dataclass
class RealSite(KvpoolObjects):
    """Three nodes of one Supernode; the store's master is a Pod of `node1`."""

    cluster: RealCluster
    ssd_folder: str = SSD_FOLDER
    accelerators: dict[str, Accelerators] = field(default_factory=dict)

    @property
    def admin(self) -> Api:
        """The administrator's client."""
        return self.cluster.plane.admin

    @property
    def nodes(self) -> Sequence[str]:
        """The nodes with agents, whether they run or not."""
        return node_names(NODES)

    # What is there before kvpool comes

    def prepare(self) -> None:
        """Give every node accelerators and a folder for SSD units, and start the store's master."""
        self.cluster.plane.install_gateway_api()
        for name in self.nodes:
            self.equip(name)
        self.cluster.plane.create_namespace(NAMESPACE)
        for manifest in (*pods.store_master(NAMESPACE, STORE_NODE), pods.device_plugin(NAMESPACE)):
            self.admin.apply(manifest, field_manager="people")
        self.kubectl("rollout", "status", f"deployment/{pods.MASTER}", f"--namespace={NAMESPACE}")
        self.kubectl("rollout", "status", "daemonset/device-plugin", f"--namespace={NAMESPACE}")

    def equip(self, node: str) -> None:
        """The parts of a machine that no Pod brings."""
        root = self.cluster.root(node)
        (root / SSD_FOLDER.lstrip("/")).mkdir(parents=True, exist_ok=True)
        file = root / pods.DEVICES_FILE.lstrip("/")
        self.accelerators[node] = Accelerators(file, node, DEVICES_A_NODE)

    @property
    def master(self) -> str:
        """`host:port` of the store's master."""
        return f"{self.address(STORE_NODE)}:{pods.RPC_PORT}"

    @property
    def store(self) -> MooncakeAdmin:
        """The master's own surface."""
        return MooncakeAdmin(f"http://{self.address(STORE_NODE)}:{pods.ADMIN_PORT}")

    def address(self, node: str) -> str:
        """The node's address."""
        addresses = self.admin.get("v1", "Node", node)["status"]["addresses"]
        return str(next(one["address"] for one in addresses if one["type"] == "InternalIP"))

    # What people do

    def install(self, *, values: Mapping[str, str] | None = None) -> float:
        """`helm install`, and how many seconds it took."""
        began = time.monotonic()
        self.helm(
            "install", RELEASE, str(CHART), "--create-namespace", *_sets({**KEPT_VALUES, **(values or {})})
        )
        return time.monotonic() - began

    def upgrade(self, **values: str) -> None:
        """`helm upgrade` with some values changed."""
        self.helm("upgrade", RELEASE, str(CHART), "--reuse-values", *_sets(values))

    def uninstall(self) -> None:
        """`helm uninstall`."""
        self.helm("uninstall", RELEASE)

    def remove(self) -> None:
        """Give everything back and uninstall, when it is installed."""
        if self.is_installed():
            self.kvpool("uninstall", "--drain", "--yes", "--timeout=90s")
            self.uninstall()
        wait_until(lambda: not leftovers(self.admin, gateway=True), READY_SECONDS, "everything to be gone")

    def is_installed(self) -> bool:
        """Whether the release is there."""
        return self.admin.find("apps/v1", "Deployment", "kvpool-operator", SYSTEM) is not None

    def helm(self, verb: str, *arguments: str, wait: bool = True) -> str:
        """Run helm for the release's namespace."""
        waits = ("--wait", f"--timeout={HELM_SECONDS}s") if wait else ()
        return self._run([str(recipe.binary("helm")), verb, *arguments, f"--namespace={SYSTEM}", *waits])

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl."""
        return self._run([str(recipe.binary("kubectl")), *arguments])

    def kvpool(self, *arguments: str) -> str:
        """Run the plugin."""
        return self._run(["kubectl-kvpool", *arguments])

    def _run(self, command: Sequence[str]) -> str:
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig)}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )
        said = f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == 0, f"{said}\n{self._what_runs()}"
        return done.stdout

    def _what_runs(self) -> str:
        """Every Pod with its state and the last words about it, for errors."""
        lines = []
        for pod in self.admin.list("v1", "Pod"):
            states = [one["state"] for one in pod["status"].get("containerStatuses", [])]
            ready = is_ready(pod)
            lines.append(f"{pod['metadata']['name']}: {pod['status']['phase']} ready={ready} {states}")
        events = self.admin.list("v1", "Event", SYSTEM)
        lines += [
            f"{one['involvedObject']['name']}: {one['reason']}: {one['message']}" for one in events[-30:]
        ]
        return "\n".join(lines)

    # What happens to machines

    @contextmanager
    def without_power(self, node: str) -> Iterator[None]:
        """Power cut now, power again in the end; returns when the node is Ready in its new life."""
        self.cluster.power_cut(node)
        try:
            yield
        finally:
            self._power_on(node)
            self.cluster.wait_ready([node])

    @contextmanager
    def cut_off(self, node: str, *, from_api_alone: bool = False) -> Iterator[None]:
        """Without its cable, or without its way to the control plane; healed and Ready in the end."""
        cut = self.cluster.partition_from_api if from_api_alone else self.cluster.partition
        cut(node)
        try:
            yield
        finally:
            self.cluster.heal(node)
            self.cluster.wait_ready([node])

    def mend(self) -> None:
        """Start the machines that do not run, and wait until every node is Ready."""
        for name in self.nodes:
            if name not in self.cluster.nodes:
                self._power_on(name)
        self.cluster.wait_ready(self.nodes)

    def _power_on(self, node: str) -> None:
        self.cluster.start_node(node)
        self.equip(node)

    # What is seen

    def since(self) -> Since:
        """What is written from now on."""
        return Since.now(self.admin)

    def pods_of(self, component: str, node: str = "") -> list[JsonObject]:
        """kvpool's own Pods of a component: operator, agent or keeper."""
        selector = f"app.kubernetes.io/component={component}"
        on_node = f"spec.nodeName={node}" if node else ""
        return self.admin.list("v1", "Pod", SYSTEM, selector, on_node)

    def delete_pod(self, pod: JsonObject, *, grace_seconds: int | None = None) -> None:
        """Delete a Pod as a person would; the object may stay for its grace."""
        options = None if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        meta = pod["metadata"]
        self.admin.delete("v1", "Pod", meta["name"], meta["namespace"], options)

    def delete_pool(self, name: str, reclaim: str = "Release") -> None:
        """As for any site, and wait until the pool's keepers are gone."""
        super().delete_pool(name, reclaim)
        wait_until(lambda: not self.keepers_of_pool(name), SETTLE_SECONDS, f"the keepers of {name} to go")

    def keepers_of_pool(self, pool: str) -> list[JsonObject]:
        """The keeper Pods of one pool."""
        return [one for one in self.pods_of("keeper") if one["metadata"]["labels"][POOL_LABEL] == pool]

    def wait_ready(self, component: str, count: int, but: Sequence[str] = ()) -> list[JsonObject]:
        """Wait until `count` Pods of a component are Ready whose UIDs are none of `but`."""

        def ready() -> list[JsonObject]:
            found = [
                pod
                for pod in self.pods_of(component)
                if pod["metadata"]["uid"] not in but
                and "deletionTimestamp" not in pod["metadata"]
                and is_ready(pod)
            ]
            return found if len(found) == count else []

        return wait_until(ready, READY_SECONDS, f"{count} {component} Pods to be Ready", (ApiError, OSError))

    def incarnations(self) -> dict[str, int]:
        """By node, the number of the agent's life."""
        found: list[JsonObject] = self.admin.list(KVPOOL, "KVNode")
        return {one["metadata"]["name"]: int(one.get("status", {}).get("incarnation", 0)) for one in found}

    def devices_given(self, pod: str) -> list[str]:
        """The accelerators that kubelet gave to a Pod, as its container was told."""
        told = self.kubectl("exec", f"--namespace={NAMESPACE}", pod, "--", "printenv", "KVPOOL_SIM_DEVICES")
        return told.strip().split(",")

    def kubelet_says(self, pod: JsonObject) -> JsonObject:
        """What kubelet's newest summary has about a Pod's memory."""
        node, uid = pod["spec"]["nodeName"], pod["metadata"]["uid"]
        summary = self.admin.call("GET", f"/api/v1/nodes/{node}/proxy/stats/summary")
        told = next(one for one in summary["pods"] if one["podRef"]["uid"] == uid)
        memory: JsonObject = told["memory"]
        return memory

    def schedulable_bytes(self, node: str) -> int:
        """What the scheduler would still give of a node's memory."""
        allocatable = parse_quantity(self.admin.get("v1", "Node", node)["status"]["allocatable"]["memory"])
        pods = self.admin.list("v1", "Pod", field_selector=f"spec.nodeName={node}")
        requests = (
            parse_quantity(container.get("resources", {}).get("requests", {}).get("memory", "0"))
            for pod in pods
            if pod["status"]["phase"] not in ("Succeeded", "Failed")
            for container in pod["spec"]["containers"]
        )
        return allocatable - sum(requests)

    def waits_for_room(self, pod: JsonObject) -> bool:
        """Whether the scheduler found no node for a Pod."""
        found = self.admin.get("v1", "Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
        conditions = found["status"].get("conditions", [])
        return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)

    def boot_id_known(self, node: str) -> str:
        """The boot that the node's agent last reported from."""
        found: str = self.admin.get(KVPOOL, "KVNode", node).get("status", {}).get("bootID", "")
        return found

    def generations(self, pool: str) -> dict[str, int]:
        """Generation of each unit of a pool, by node and name."""
        return {
            f"{node}/{name}": int(unit["generation"])
            for node in self.nodes
            for name, unit in self.decided(node, pool).items()
        }


def is_ready(pod: JsonObject) -> bool:
    """Whether the Pod's condition Ready is True."""
    conditions: list[dict[str, Any]] = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _sets(values: Mapping[str, str]) -> list[str]:
    return [f"--set={name}={value}" for name, value in values.items()]
