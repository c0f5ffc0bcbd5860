"""The deployment's engines as Pods: which there are, on which accelerators, and their manifests."""

from __future__ import annotations

from dataclasses import dataclass

from demo.accelerators import FILE, device_id
from demo.cluster import STATE_FOLDER
from demo.neighbours.store import SMALLEST_SEGMENT_BYTES
from devcluster.rest import JsonObject

NAMESPACE = "inference"
STATE_IN_POD = "/var/lib/kvpool"
ATTACH_SECONDS = 0.5


@dataclass(frozen=True)
class EnginePlace:
    """One engine: a `role` of decode, prefill or standby on a device of a node."""

    name: str
    role: str
    node: str
    device: int

    @property
    def port(self) -> int:
        """Its HTTP port: engines of one host share its address."""
        return 8000 + self.device

    @property
    def device_id(self) -> str:
        """The accelerator that it holds."""
        return device_id(self.device)


ENGINES = (
    EnginePlace("decode-a", "decode", "node-1", 0),
    EnginePlace("prefill-a", "prefill", "node-1", 1),
    EnginePlace("standby-1", "standby", "node-2", 0),
    EnginePlace("standby-2", "standby", "node-2", 1),
    EnginePlace("decode-b", "decode", "node-3", 0),
    EnginePlace("standby-3", "standby", "node-4", 0),
)


def engine_pod(engine: EnginePlace, master: str) -> JsonObject:
    """Return the engine's Pod; those that serve bring a small segment of their own to the store."""
    arguments = [
        f"--name={engine.name}",
        "--address=$(POD_IP)",
        f"--port={engine.port}",
        f"--devices={engine.device_id}",
        f"--devices-file={STATE_IN_POD}/{FILE}",
        "--pod-uid=$(POD_UID)",
        f"--pod-name={NAMESPACE}/{engine.name}",
        f"--local-api={STATE_IN_POD}/agent.sock",
        f"--attach-seconds={ATTACH_SECONDS}",
    ]
    container: JsonObject = {
        "name": "engine",
        "image": "mock-engine",
        "command": ["python", "-m", "demo.neighbours.engine"],
        "args": arguments,
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        ],
        "ports": [{"name": "http", "containerPort": engine.port}],
        "volumeMounts": [{"name": "kvpool", "mountPath": STATE_IN_POD}],
    }
    if engine.role == "standby":
        arguments.append("--standby")
    else:
        arguments += [
            f"--master={master}",
            f"--segment-bytes={SMALLEST_SEGMENT_BYTES}",
            f"--store-port={17001 + engine.device}",
        ]
        container["readinessProbe"] = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": engine.name,
            "namespace": NAMESPACE,
            "labels": {"app": "engine", "role": engine.role},
        },
        "spec": {
            "automountServiceAccountToken": False,
            "hostNetwork": True,
            "containers": [container],
            "volumes": [{"name": "kvpool", "hostPath": {"path": STATE_FOLDER, "type": "DirectoryOrCreate"}}],
        },
    }
