"""Real kubelets: pods run and reach each other and the API; nodes lose power and network, and come back."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from devcluster import recipe, sandbox
from devcluster.nodes import requirements
from devcluster.nodes.cluster import RealCluster
from devcluster.nodes.settings import ClusterSettings
from devcluster.ports import free_port
from devcluster.process import ManagedProcess
from devcluster.rest import ApiError, JsonObject
from tests.devcluster.tiny_image import write_image
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.real
IMAGE = "localhost/devcluster/tiny:dev"
PORT = 8001
POD_SECONDS = 40.0
CA_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
GIB = 1024**3


def why_not() -> str:
    if reason := requirements.missing():
        return reason
    if not sandbox.inside():
        return "real nodes live in a sandbox: python -m devcluster.sandbox -- python -m pytest"
    for part in (recipe.CONTROL_PLANE, recipe.NODE, recipe.COREDNS, recipe.PAUSE):
        if not part.built:
            return f"{part.name} is not built yet: run `python -m devcluster.build {part.name}`"
    return ""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Three nodes, each with a web server; every test leaves them Ready."""
    if reason := why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("nodes")
    programs = {name: recipe.binary(name) for name in ("pause", "kubectl")}
    image = write_image(folder / "tiny.tar", IMAGE, programs, "pause")
    labels = {"node1": {"kvpool.dev/rack": "a"}, "node2": {"kvpool.dev/rack": "b"}}
    settings = ClusterSettings(images=[image], pause=IMAGE, labels=labels, allocatable_bytes=2 * GIB)
    with RealCluster(folder / "cluster", 3, settings) as started:
        for manifest in web_on_every_node():
            started.plane.admin.create(manifest)
        wait_for_pods(started)
        yield started


def web_on_every_node() -> list[JsonObject]:
    """A DaemonSet whose pods serve their own `/etc` and may read pods, and a Service in front of them."""
    container = {
        "name": "web",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/kubectl", "proxy", "--address=0.0.0.0", "--accept-hosts=.*", "--www=/etc"],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
    }
    pod = {
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    here = {"name": "web", "namespace": "default"}
    group = "rbac.authorization.k8s.io"
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": here,
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": here,
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": PORT}]},
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": here,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
        },
    ]


def pods(cluster: RealCluster) -> dict[str, JsonObject]:
    """The web server's pods, by node; one that has none yet is at ""."""
    found = cluster.plane.admin.list("v1", "Pod", "default", label_selector="app=web")
    return {pod["spec"].get("nodeName", ""): pod for pod in found}


def is_ready(pod: JsonObject) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def containers(cluster: RealCluster) -> dict[str, str]:
    """Ids of the pods' containers, by node: a restarted one has another."""
    return {
        name: pod["status"]["containerStatuses"][0].get("containerID", "")
        for name, pod in pods(cluster).items()
    }


def wait_for_pods(cluster: RealCluster, old_container: str = "") -> None:
    """Wait until the pods of all nodes are Ready; for a while the API still says so of one that is gone."""

    def all_ready() -> bool:
        found = pods(cluster)
        if sorted(found) != sorted(cluster.nodes) or not all(map(is_ready, found.values())):
            return False
        return old_container not in containers(cluster).values()

    wait_until(all_ready, POD_SECONDS, "the pods of all nodes to be Ready")


def kubectl(cluster: RealCluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(recipe.binary("kubectl")), f"--kubeconfig={cluster.kubeconfig}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def in_pod(cluster: RealCluster, node: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run kubectl inside the node's web server, with the pod's own token."""
    return kubectl(cluster, "exec", pods(cluster)[node]["metadata"]["name"], "--", "/kubectl", *arguments)


def version_by_name(cluster: RealCluster, name: str) -> str:
    """What the API server says of itself to a pod that asks for it by a DNS name; empty without an answer."""
    options = [f"--server=https://{name}", f"--certificate-authority={CA_FILE}"]
    return in_pod(cluster, "node2", "get", "--raw=/version", *options).stdout


def hostname(address: str) -> str:
    """What the web server at `address` has in its `/etc/hostname`: the name of its pod."""
    with urllib.request.urlopen(f"http://{address}/static/hostname", timeout=3) as answer:
        return str(answer.read().decode()).strip()


def serves(pod: JsonObject) -> bool:
    return hostname(f"{pod['status']['podIP']}:{PORT}") == str(pod["metadata"]["name"])


def test_nodes_say_the_labels_and_the_memory_they_were_given(cluster: RealCluster) -> None:
    assert cluster.nodes == ["node1", "node2", "node3"]
    nodes = {name: cluster.plane.admin.get("v1", "Node", name) for name in cluster.nodes}
    racks = {name: node["metadata"]["labels"].get("kvpool.dev/rack") for name, node in nodes.items()}
    assert racks == {"node1": "a", "node2": "b", "node3": None}
    memory = {node["status"]["allocatable"]["memory"] for node in nodes.values()}
    assert memory == {"2Gi"}


def test_a_pod_reaches_the_api_by_the_address_and_by_the_name_of_its_service(cluster: RealCluster) -> None:
    by_address = in_pod(cluster, "node2", "get", "pods", "--output=name")
    assert by_address.stdout.count("pod/web-") == 3, by_address.stderr
    refused = in_pod(cluster, "node2", "delete", "pod", "--all")
    assert "Forbidden" in refused.stderr
    for name in ("kubernetes", "kubernetes.default.svc.cluster.local"):
        wait_until(partial(version_by_name, cluster, name), POD_SECONDS, f"an answer from {name}")


def test_pods_are_reached_by_address_and_through_their_service(cluster: RealCluster) -> None:
    for pod in pods(cluster).values():
        assert serves(pod)
    service = cluster.plane.admin.get("v1", "Service", "web", namespace="default")["spec"]["clusterIP"]
    wait_until(lambda: hostname(service), POD_SECONDS, "the Service to answer", tolerate=(OSError,))


def test_logs_and_port_forwarding_come_through_the_api(cluster: RealCluster, tmp_path: Path) -> None:
    name = pods(cluster)["node3"]["metadata"]["name"]
    assert "Starting to serve" in kubectl(cluster, "logs", name).stdout
    port = free_port()
    command = [
        recipe.binary("kubectl"),
        f"--kubeconfig={cluster.kubeconfig}",
        "port-forward",
        name,
        f"{port}:{PORT}",
    ]
    with ManagedProcess("port-forward", command, tmp_path / "log") as forward:
        forward.wait_for_line("^Forwarding from")
        assert hostname(f"127.0.0.1:{port}") == name


def test_every_node_and_its_containers_have_a_boot_id_of_their_own(cluster: RealCluster) -> None:
    assert len({cluster.boot_id(name) for name in cluster.nodes}) == 3
    read = ["create", "configmap", "x", "--dry-run=client", "--from-file=/proc/sys/kernel/random/boot_id"]
    for name in cluster.nodes:
        seen = in_pod(cluster, name, *read, "--output=jsonpath={.data.boot_id}")
        assert seen.stdout.strip() == cluster.boot_id(name), seen.stderr
        node = cluster.plane.admin.get("v1", "Node", name)
        assert node["status"]["nodeInfo"]["bootID"] == cluster.boot_id(name)


def test_a_kubelet_may_change_its_own_node_alone(cluster: RealCluster) -> None:
    kubelet = cluster.plane.as_user("system:node:node1", ["system:nodes"])
    change: JsonObject = {"metadata": {"annotations": {"test/seen": "yes"}}}
    kubelet.patch("v1", "Node", "node1", change)
    with pytest.raises(ApiError, match="not allowed to modify node") as refused:
        kubelet.patch("v1", "Node", "node2", change)
    assert refused.value.code == 403


def test_a_kubelet_answers_nobody_unknown(cluster: RealCluster) -> None:
    asked = ["curl", "--silent", "--insecure", "--max-time", "5", "https://10.88.0.11:10250/pods"]
    assert subprocess.run(asked, capture_output=True, text=True, check=False).stdout == "Unauthorized"


def test_an_image_can_be_loaded_into_running_nodes(cluster: RealCluster, tmp_path: Path) -> None:
    name = "localhost/devcluster/later:dev"
    image = write_image(tmp_path / "later.tar", name, {"pause": recipe.binary("pause")}, "pause")
    cluster.import_image(image, ["node2"])
    listed = {
        node: cluster.run(node, ["ctr", "--namespace=k8s.io", "images", "list", "--quiet"])
        for node in cluster.nodes
    }
    assert [node for node, images in listed.items() if name in images.stdout] == ["node2"]


def test_after_a_power_cut_the_disk_is_there_and_the_memory_is_not(cluster: RealCluster) -> None:
    boot_id, container = cluster.boot_id("node2"), containers(cluster)["node2"]
    for folder in ("var/lib/kvpool", "dev/shm"):
        (cluster.root("node2") / folder).mkdir(exist_ok=True)
        (cluster.root("node2") / folder / "note").write_text("kept?")
    assert not (cluster.root("node3") / "dev/shm/note").exists()
    cluster.power_cut("node2")
    assert cluster.nodes == ["node1", "node3"]
    cluster.wait_not_ready("node2", 30)
    cluster.start_node("node2")
    cluster.wait_ready(["node2"])
    assert cluster.boot_id("node2") != boot_id
    assert (cluster.root("node2") / "var/lib/kvpool/note").read_text() == "kept?"
    assert not (cluster.root("node2") / "dev/shm/note").exists()
    wait_for_pods(cluster, container)


def test_a_new_machine_under_an_old_name_has_an_empty_disk(cluster: RealCluster) -> None:
    container = containers(cluster)["node3"]
    machine_id = cluster.run("node3", ["cat", "/etc/machine-id"]).stdout
    (cluster.root("node3") / "var/lib/note").write_text("gone?")
    cluster.power_cut("node3")
    cluster.start_node("node3", fresh=True)
    cluster.wait_ready(["node3"])
    assert not (cluster.root("node3") / "var/lib/note").exists()
    assert cluster.run("node3", ["cat", "/etc/machine-id"]).stdout != machine_id
    wait_for_pods(cluster, container)


def test_a_node_cut_off_from_everything_goes_on_and_comes_back(cluster: RealCluster) -> None:
    pod, before = pods(cluster)["node3"], containers(cluster)
    cluster.partition("node3")
    with pytest.raises(OSError, match=r"timed out|No route"):
        serves(pod)
    cluster.wait_not_ready("node3", 30)
    cluster.heal("node3")
    cluster.wait_ready(["node3"])
    wait_until(lambda: serves(pod), 10, "the pod to be reached again", tolerate=(OSError,))
    assert containers(cluster) == before


def test_a_node_cut_off_from_the_api_alone_still_serves_the_others(cluster: RealCluster) -> None:
    pod = pods(cluster)["node3"]
    cluster.partition_from_api("node3")
    cluster.wait_not_ready("node3", 30)
    assert serves(pod)
    cluster.heal("node3")
    cluster.wait_ready(["node3"])


def test_pods_go_on_without_the_control_plane(cluster: RealCluster) -> None:
    pod, before = pods(cluster)["node1"], containers(cluster)
    cluster.stop_control_plane()
    assert serves(pod)
    cluster.start_control_plane()
    cluster.wait_ready()
    assert containers(cluster) == before
