"""A real kubelet hands out the simulated accelerators, and says which pods hold them."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.neighbours.accelerators import Accelerator, AcceleratorFile
from devcluster import recipe
from devcluster.nodes.cluster import RealCluster
from devcluster.nodes.settings import ClusterSettings
from devcluster.process import ManagedProcess
from devcluster.rest import JsonObject
from kvpool.api.supernode import EvidenceClass
from kvpool_agent.devices.pod_resources import PodResources
from tests.devcluster.test_real_nodes import why_not
from tests.devcluster.tiny_image import write_image
from tests.harness.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.real
IMAGE = "localhost/devcluster/tiny:dev"
RESOURCE = "kvpool.dev/sim-accelerator"
FIRST, SECOND = "0000:01:00.0", "0000:02:00.0"
NODE, AGENT = "node1", "default/agent"
DEADLINE_SECONDS = 60.0
KUBELET = Path("/var/lib/kubelet")


@dataclass
class Accelerated:
    """A node with two simulated accelerators, and a pod that stands for its agent."""

    cluster: RealCluster
    file: AcceleratorFile
    plugin: ManagedProcess

    def wait_for_allocatable(self, count: int) -> None:
        def allocatable() -> bool:
            node = self.cluster.plane.admin.get("v1", "Node", NODE)
            found = node["status"]["allocatable"].get(RESOURCE)
            assert found == str(count), f"{found}\n{self.plugin.tail()}"
            return True

        wait_until(allocatable, DEADLINE_SECONDS, f"{count} devices", tolerate=(AssertionError,))

    def run_pod(self, name: str, devices: int = 0) -> None:
        container: JsonObject = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never"}
        if devices:
            container["resources"] = {"limits": {RESOURCE: str(devices)}}
        spec = {
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
        }
        metadata = {"name": name, "namespace": "default"}
        admin = self.cluster.plane.admin
        admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        wait_until(
            lambda: admin.get("v1", "Pod", name, "default")["status"]["phase"] == "Running",
            DEADLINE_SECONDS,
            f"pod {name} to run",
        )

    def delete_pod(self, name: str) -> None:
        self.cluster.plane.admin.delete("v1", "Pod", name, "default")

    def delete_engines(self) -> None:
        """Free all devices, in whichever order tests run."""
        for pod in self.cluster.plane.admin.list("v1", "Pod", "default"):
            if pod["metadata"]["name"].startswith("engine-"):
                self.delete_pod(pod["metadata"]["name"])


@pytest.fixture(scope="module")
def one_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accelerated]:
    if reason := why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("kubelet")
    image = write_image(folder / "tiny.tar", IMAGE, {"pause": recipe.binary("pause")}, "pause")
    file = AcceleratorFile(folder / "devices.json")
    file.create([Accelerator(FIRST, "GPU-1"), Accelerator(SECOND, "GPU-2")])
    with RealCluster(folder / "cluster", 1, ClusterSettings(images=[image], pause=IMAGE)) as cluster:
        sockets = cluster.root(NODE) / KUBELET.relative_to("/") / "device-plugins"
        argv = [sys.executable, "-m", "demo.neighbours.device_plugin"]
        argv += ["--devices-file", str(file.path), "--folder", str(sockets)]
        plugin = ManagedProcess("device plugin", argv, folder / "plugin.log").start()
        try:
            started = Accelerated(cluster, file, plugin)
            started.wait_for_allocatable(2)
            started.run_pod("agent")
            yield started
        finally:
            plugin.kill()


@pytest.fixture
def node(one_node: Accelerated) -> Iterator[Accelerated]:
    """All devices are free before and after each test."""
    yield one_node
    one_node.delete_engines()


@pytest.fixture
async def asked(node: Accelerated) -> AsyncIterator[PodResources]:
    socket = node.cluster.root(NODE) / KUBELET.relative_to("/") / "pod-resources" / "kubelet.sock"
    pod_resources = PodResources(socket, frozenset({RESOURCE}), AGENT)
    yield pod_resources
    await pod_resources.close()


async def wait_for_holders(asked: PodResources, holders: Mapping[str, tuple[str, ...]]) -> None:
    async def said() -> bool:
        await asked.look()
        assert not asked.trouble
        assert asked.holders == holders
        return True

    await wait_until_async(said, DEADLINE_SECONDS, f"holders {holders}", tolerate=(AssertionError,))


async def test_kubelet_gives_a_device_to_a_pod_and_says_so_while_the_pod_is_there(
    node: Accelerated, asked: PodResources
) -> None:
    await wait_for_holders(asked, {})
    node.run_pod("engine-0", devices=1)
    await wait_for_holders(asked, {FIRST: ("default/engine-0",)})
    node.delete_pod("engine-0")
    await wait_for_holders(asked, {})


def test_a_broken_device_is_not_allocatable_until_it_is_healed(node: Accelerated) -> None:
    node.file.add_fault(SECOND, source="driver", code="79", evidence_class=EvidenceClass.FATAL)
    node.wait_for_allocatable(1)
    node.file.clear_faults(SECOND)
    node.wait_for_allocatable(2)


async def test_a_kubelet_that_starts_anew_frees_no_device_at_any_moment(
    node: Accelerated, asked: PodResources
) -> None:
    held = {FIRST: ("default/engine-1",)}
    node.run_pod("engine-1", devices=1)
    await wait_for_holders(asked, held)
    node.cluster.restart_kubelet(NODE)
    restarted_at = time.time()

    async def heard_again() -> bool:
        asked._not_before_seconds = 0.0  # at every moment, not once a second
        await asked.look()
        assert asked.holders == held, asked.trouble
        return not asked.trouble and (asked.said_at_seconds or 0.0) > restarted_at

    await wait_until_async(heard_again, DEADLINE_SECONDS, "an answer of the new kubelet", poll_seconds=0.01)
    node.run_pod("engine-2", devices=1)
    await wait_for_holders(asked, {**held, SECOND: ("default/engine-2",)})
