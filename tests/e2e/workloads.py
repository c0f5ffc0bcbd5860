"""Workloads of every kind that a PDGroup may name without its apiVersion, none with a Pod."""

from __future__ import annotations

from devcluster.rest import ApiError, JsonObject
from tests.e2e.site import RealSite
from tests.harness.objects import NAMESPACE
from tests.harness.waiting import wait_until

DEFINITIONS = "apiextensions.k8s.io/v1"
SERVED_SECONDS = 20.0
KINDS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
}


def leader_worker_sets() -> JsonObject:
    """The definition of LeaderWorkerSet, as far as a scale sub-resource is concerned."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}
        },
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.hpaPodSelector",
            },
        },
    }
    names = {"kind": "LeaderWorkerSet", "plural": "leaderworkersets", "singular": "leaderworkerset"}
    return {
        "apiVersion": DEFINITIONS,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "leaderworkersets.leaderworkerset.x-k8s.io"},
        "spec": {
            "group": "leaderworkerset.x-k8s.io",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


def create_workloads(site: RealSite, name: str) -> None:
    """One of each kind, all called `name`."""
    site.admin.apply(leader_worker_sets(), field_manager="people")
    lws = (KINDS["LeaderWorkerSet"], "LeaderWorkerSet")

    wait_until(
        lambda: site.admin.list(*lws) == [], SERVED_SECONDS, "the kind to be served", (KeyError, ApiError)
    )
    for kind in KINDS:
        site.admin.create(_workload(kind, name))


def delete_workloads(site: RealSite, name: str) -> None:
    """All of them, and the definition of LeaderWorkerSet."""
    for kind, version in KINDS.items():
        site.admin.delete(version, kind, name, NAMESPACE)
    site.admin.delete(DEFINITIONS, "CustomResourceDefinition", leader_worker_sets()["metadata"]["name"])


def _workload(kind: str, name: str) -> JsonObject:
    labels = {"workload": f"{name}-{kind.lower()}"}
    container = {"name": "engine", "image": "localhost/kvpool-neighbours:dev"}
    spec: JsonObject = {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    if kind == "StatefulSet":
        spec["serviceName"] = name
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": KINDS[kind], "kind": kind, "metadata": metadata, "spec": spec}
