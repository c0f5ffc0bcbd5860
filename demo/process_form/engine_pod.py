"""An engine's Pod for a simulated host: it shares the host's address and is told its accelerator."""

from __future__ import annotations

from demo.accelerators import FILE, device_id
from demo.engines import ATTACH_SECONDS, NAMESPACE, EnginePlace
from demo.neighbours.store import SMALLEST_SEGMENT_BYTES
from devcluster.rest import JsonObject

STATE_FOLDER = "/mnt/kvpool"
STATE_IN_POD = "/var/lib/kvpool"


def engine_pod(engine: EnginePlace, master: str) -> JsonObject:
    """Return the engine's Pod; those that serve bring a small segment of their own to the store."""
    arguments = [
        f"--name={engine.name}",
        "--address=$(POD_IP)",
        f"--port={engine.port}",
        f"--devices={device_id(engine.device)}",
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
            f"--store-port={engine.store_port}",
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
