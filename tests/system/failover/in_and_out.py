"""Outputs that know only in and out, beside the route: what they are, and who is in."""

from __future__ import annotations

from tests.system.failover import manifests
from tests.system.failover.manifests import API_VERSION, GROUP, NAMESPACE
from tests.system.failover.world import NODES, FailoverWorld

SLICE_SERVICE = "decode"
SLICES = f"{GROUP}-slices"
SERVING = "example.com/serving"
OUTPUTS = (
    {"name": "slices", "type": "EndpointSlice", "endpointSlice": {"serviceName": SLICE_SERVICE}},
    {"name": "pods", "type": "PodLabel", "podLabel": {"key": SERVING, "value": "yes"}},
)


def add_outputs(world: FailoverWorld) -> None:
    """Give the group these outputs too."""
    service = {"metadata": {"name": SLICE_SERVICE, "namespace": NAMESPACE}, "spec": {"ports": [{"port": 80}]}}
    world.api.create({"apiVersion": "v1", "kind": "Service", **service})
    wanted = manifests.group(world.gateway.parent_ref, port=world.engine_port, outputs=OUTPUTS)
    world.api.patch(API_VERSION, "PDGroup", GROUP, {"spec": wanted["spec"]}, NAMESPACE)


def in_service(world: FailoverWorld) -> set[str]:
    """Nodes whose engine the EndpointSlice calls ready."""
    slice_ = world.api.find("discovery.k8s.io/v1", "EndpointSlice", SLICES, NAMESPACE)
    endpoints = (slice_ or {}).get("endpoints") or []
    ready = {end["addresses"][0] for end in endpoints if end["conditions"]["ready"]}
    return {node for node in NODES if world.installed.hosts[node].address in ready}


def labelled(world: FailoverWorld) -> set[str]:
    """Nodes whose engine Pod carries the label."""
    pods = world.api.list("v1", "Pod", NAMESPACE, label_selector=f"{SERVING}=yes")
    return {pod["spec"]["nodeName"] for pod in pods}
