"""A PDGroup whose engine's weights go to a route and to a label of Pods, with nobody behind the Gateway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from demo.neighbours.pods import ENGINE_PORT, EnginePod
from devcluster.rest import JsonObject
from tests.e2e.site import RealSite
from tests.harness.objects import KVPOOL, NAMESPACE
from tests.harness.waiting import wait_until

GATEWAY_API = "gateway.networking.k8s.io/v1"
CONTROLLER = "kvpool.test/nobody"
SLOTS_GONE_SECONDS = 60.0


def gateway(name: str) -> JsonObject:
    """A Gateway of a class that nobody serves."""
    return {
        "apiVersion": GATEWAY_API,
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "gatewayClassName": "nobodys",
            "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
        },
    }


def group(pool: str, *, role: str, label: str, gateway_name: str, **routing: str) -> JsonObject:
    """The group's spec: one instance that has its engine already, an output of each kind."""
    decode = {"podSelector": {"matchLabels": {"role": role}}, "port": ENGINE_PORT, "instances": 1}
    outputs = [
        {"name": "edge", "type": "HTTPRoute", "httpRoute": {"parentRef": {"name": gateway_name}}},
        {"name": "labels", "type": "PodLabel", "podLabel": {"key": label}},
    ]
    return {
        "mode": "Enforce",
        "poolRef": {"name": pool},
        "supernodeRef": {"name": "sn-a"},
        "decode": {**decode, "attach": "Observe"},
        "routing": {"outputs": outputs, **routing},
    }


@contextmanager
def engine_behind_gateway(site: RealSite, name: str, node: str) -> Iterator[EnginePod]:
    """An engine's Pod and a Gateway, both called `name`; both are gone in the end."""
    pod = EnginePod(name, name, node)
    try:
        site.admin.create(gateway(name))
        site.admin.create(pod.manifest(NAMESPACE))
        yield pod
    finally:
        site.admin.delete("v1", "Pod", name, NAMESPACE, {"gracePeriodSeconds": 0})
        site.admin.delete(GATEWAY_API, "Gateway", name, NAMESPACE)


def delete_group(site: RealSite, name: str) -> None:
    """Delete a group and wait until its slots are gone."""
    site.admin.delete(KVPOOL, "PDGroup", name, NAMESPACE)
    wait_until(
        lambda: not site.admin.list(KVPOOL, "EngineSlot", NAMESPACE), SLOTS_GONE_SECONDS, "slots to be gone"
    )


def accept_route(site: RealSite, name: str, gateway_name: str) -> None:
    """Say of a route, and of where its Gateway is, what a gateway's controller would say."""
    route = site.admin.get(GATEWAY_API, "HTTPRoute", name, NAMESPACE)
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": kind,
            "message": "",
            "observedGeneration": route["metadata"]["generation"],
            "lastTransitionTime": route["metadata"]["creationTimestamp"],
        }
        for kind in ("Accepted", "ResolvedRefs")
    ]
    parent = {"parentRef": {"name": gateway_name}, "controllerName": CONTROLLER, "conditions": conditions}
    status = {"status": {"parents": [parent]}}
    site.admin.patch(GATEWAY_API, "HTTPRoute", name, status, NAMESPACE, "status")
