"""The neighbours as Pods of real nodes: store master, device plugin and engines, as manifests."""

from __future__ import annotations

from dataclasses import dataclass

from devcluster.rest import JsonObject

IMAGE = "localhost/kvpool-neighbours:dev"
RESOURCE = "kvpool.dev/sim-accelerator"
PLUGIN_FOLDER = "/var/lib/kubelet/device-plugins"
AGENT_FOLDER = "/var/lib/kvpool"
DEVICES_FILE = f"{AGENT_FOLDER}/devices.json"
RPC_PORT, ADMIN_PORT, ENGINE_PORT, ENGINE_STORE_PORT = 50051, 9003, 8000, 17001
MASTER = "mooncake-master"
CLIENT_TTL_SECONDS = 60
"""How long the master keeps the segments of a client that it cannot hear: a shorter cut loses nothing.

Mooncake's own 10 s are less than it takes most clusters to notice that a node is silent.
"""


def store_master(
    namespace: str, node: str, client_ttl_seconds: int | None = CLIENT_TTL_SECONDS, *, name: str = MASTER
) -> tuple[JsonObject, ...]:
    """A Mooncake master on one node, and the Service that names it; `client_ttl_seconds` None is its own.

    It shares the node's network, so that its address is the same after a restart.
    """
    labels = {"app": name}
    command = ["mooncake_master", "--rpc_address=$(HOST)", f"--rpc_port={RPC_PORT}"]
    command += ["--metrics_host=$(HOST)", f"--metrics_port={ADMIN_PORT}"]
    if client_ttl_seconds is not None:
        command.append(f"--client_ttl={client_ttl_seconds}")
    container = {
        "name": "master",
        "image": IMAGE,
        "command": command,
        "env": [_field("HOST", "status.hostIP")],
        "readinessProbe": {"httpGet": {"path": "/health", "port": ADMIN_PORT}, "periodSeconds": 1},
    }
    spec = {"hostNetwork": True, "nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    ports = [{"name": "rpc", "port": RPC_PORT}, {"name": "admin", "port": ADMIN_PORT}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": "None", "selector": labels, "ports": ports},
    }
    return deployment, service


def device_plugin(namespace: str) -> JsonObject:
    """The simulated accelerators as extended resources of every node that has pool=gpu."""
    labels = {"app": "device-plugin"}
    arguments = [f"--devices-file={DEVICES_FILE}", f"--resource={RESOURCE}", f"--folder={PLUGIN_FOLDER}"]
    container = {
        "name": "plugin",
        "image": IMAGE,
        "command": ["python", "-m", "demo.neighbours.device_plugin"],
        "args": arguments,
        "securityContext": {"runAsUser": 0},
        "volumeMounts": [
            {"name": "plugins", "mountPath": PLUGIN_FOLDER},
            {"name": "kvpool", "mountPath": AGENT_FOLDER, "readOnly": True},
        ],
    }
    spec = {
        "nodeSelector": {"pool": "gpu"},
        "containers": [container],
        "volumes": [_host("plugins", PLUGIN_FOLDER), _host("kvpool", AGENT_FOLDER)],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "device-plugin", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


@dataclass(frozen=True)
class EnginePod:
    """An engine of `role` decode, prefill or standby with one accelerator of a node."""

    name: str
    role: str
    node: str
    segment_bytes: int = 0
    attach_seconds: float = 0.5
    port: int = ENGINE_PORT

    def manifest(self, namespace: str) -> JsonObject:
        """The Pod: kubelet gives it the accelerator, the agent of its node a seat."""
        arguments = [
            f"--name={self.name}",
            "--address=$(POD_IP)",
            f"--port={self.port}",
            f"--devices-file={DEVICES_FILE}",
            "--pod-uid=$(POD_UID)",
            f"--pod-name={namespace}/{self.name}",
            f"--local-api={AGENT_FOLDER}/agent.sock",
            f"--attach-seconds={self.attach_seconds}",
        ]
        container: JsonObject = {
            "name": "engine",
            "image": IMAGE,
            "command": ["python", "-m", "demo.neighbours.engine"],
            "env": [_field("POD_IP", "status.podIP"), _field("POD_UID", "metadata.uid")],
            "ports": [{"name": "http", "containerPort": self.port}],
            "resources": {"limits": {RESOURCE: "1"}},
            # The agent's socket is root's.
            "securityContext": {"runAsUser": 0},
            "volumeMounts": [{"name": "kvpool", "mountPath": AGENT_FOLDER}],
        }
        if self.role == "standby":
            arguments.append("--standby")
        else:
            container["readinessProbe"] = {
                "httpGet": {"path": "/health", "port": self.port},
                "periodSeconds": 1,
            }
        if self.segment_bytes:
            arguments += [
                f"--master={MASTER}.{namespace}.svc.cluster.local:{RPC_PORT}",
                f"--segment-bytes={self.segment_bytes}",
                f"--store-port={ENGINE_STORE_PORT}",
            ]
        container["args"] = arguments
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "namespace": namespace,
                "labels": {"app": "engine", "role": self.role},
            },
            "spec": {
                "automountServiceAccountToken": False,
                "nodeSelector": {"kubernetes.io/hostname": self.node},
                "containers": [container],
                "volumes": [_host("kvpool", AGENT_FOLDER)],
            },
        }


def _field(name: str, path: str) -> JsonObject:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _host(name: str, path: str) -> JsonObject:
    return {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
