"""The objects of the failover tests: engine Pods, a Supernode and a PDGroup, as manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from demo.neighbours.engine_options import EngineOptions
from devcluster.rest import JsonObject
from tests.harness.installation import DEVICES_FILE

STATE_FOLDER = "/var/lib/kvpool"
NAMESPACE = "inference"
GROUP = "chat"
SUPERNODE = "sn-a"
API_VERSION = "kvpool.dev/v1alpha1"


def engine_pod(
    name: str,
    node: str,
    device: str,
    *,
    port: int,
    role: str,
    attach_seconds: float = 0.3,
    readiness: str = "EngineReady",
) -> JsonObject:
    """A mock engine as a Pod of a simulated host, with one device; the local API gives it a seat."""
    options = EngineOptions(
        name=name,
        address="$(HOST_ADDRESS)",
        port=port,
        service_seconds=0.01,
        attach_seconds=attach_seconds,
        standby=True,
        readiness=readiness,
        local_api=Path(STATE_FOLDER) / "agent.sock",
        devices_file=Path(DEVICES_FILE),
        pod_uid="$(POD_UID)",
        pod_name=f"{NAMESPACE}/{name}",
        devices=(device,),
    )
    variables = [
        {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": "HOST_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
    ]
    container = {
        "name": "engine",
        "image": "mock-engine",
        "command": ["python", "-m", "demo.neighbours.engine"],
        "args": options.arguments(),
        "env": variables,
        "volumeMounts": [{"name": "state", "mountPath": STATE_FOLDER}],
    }
    volume = {"name": "state", "hostPath": {"path": STATE_FOLDER}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": role}},
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": False,
            "hostNetwork": True,
            "containers": [container],
            "volumes": [volume],
        },
    }


def supernode(**spec: object) -> JsonObject:
    """All gpu nodes, in Enforce; voluntary moves leave one spare."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Supernode",
        "metadata": {"name": SUPERNODE},
        "spec": {
            "mode": "Enforce",
            "nodeSelector": {"matchLabels": {"pool": "gpu"}},
            "spares": {"floor": 1},
            **spec,
        },
    }


def pool() -> JsonObject:
    """The pool that the group names; it holds nothing."""
    return {
        "apiVersion": API_VERSION,
        "kind": "KVPool",
        "metadata": {"name": GROUP, "namespace": NAMESPACE},
        "spec": {"mode": "Observe", "store": {"none": {}}},
    }


def group(
    parent_ref: JsonObject, *, port: int, instances: int = 2, outputs: Sequence[Mapping[str, object]] = ()
) -> JsonObject:
    """Decode engines with warm standbys, and a route through the gateway."""
    route = {"name": "edge", "type": "HTTPRoute", "httpRoute": {"parentRef": parent_ref}}
    decode = {
        "podSelector": {"matchLabels": {"app": "decode"}},
        "port": port,
        "instances": instances,
        "attach": "Standby",
        "standby": {"podSelector": {"matchLabels": {"app": "decode-standby"}}},
    }
    routing = {"slowStart": {"steps": [50, 100], "stepTime": "1s"}, "outputs": [route, *outputs]}
    return {
        "apiVersion": API_VERSION,
        "kind": "PDGroup",
        "metadata": {"name": GROUP, "namespace": NAMESPACE},
        "spec": {
            "mode": "Enforce",
            "poolRef": {"name": GROUP},
            "supernodeRef": {"name": SUPERNODE},
            "decode": decode,
            "routing": routing,
        },
    }
