"""With controllers and scheduler, Deployments and DaemonSets reach simulated hosts as they do real ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from devcluster.controlplane import ControlPlane
from devcluster.hosts import SimulatedHost
from devcluster.rest import ApiError, JsonObject
from tests.harness.waiting import wait_until

Planes = Callable[..., ControlPlane]
AddHost = Callable[..., SimulatedHost]


def workload(kind: str, name: str, **spec: object) -> JsonObject:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "work"},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


@pytest.fixture
def plane(fresh_control_plane: Planes) -> ControlPlane:
    plane = fresh_control_plane(crds=False, controllers=True, scheduler=True)
    plane.create_namespace("work")
    return plane


def ready(plane: ControlPlane, kind: str, name: str, field: str) -> int:
    return int(plane.admin.get("apps/v1", kind, name, "work").get("status", {}).get(field, 0))


def test_workloads_are_scheduled_replaced_and_collected(plane: ControlPlane, add_host: AddHost) -> None:
    hosts = [add_host(plane, f"node-{index}") for index in (1, 2)]
    plane.admin.apply(workload("DaemonSet", "agents"))
    plane.admin.apply(workload("Deployment", "engines", replicas=3))
    wait_until(lambda: ready(plane, "DaemonSet", "agents", "numberReady") == 2, 30, "agents on both hosts")
    wait_until(lambda: ready(plane, "Deployment", "engines", "readyReplicas") == 3, 30, "three engines")

    evicted = next(pod for pod in plane.admin.list("v1", "Pod", "work", "app=engines"))
    name, uid = evicted["metadata"]["name"], evicted["metadata"]["uid"]
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": "work"},
        "deleteOptions": {"preconditions": {"uid": uid}, "gracePeriodSeconds": 1},
    }
    plane.admin.call("POST", f"/api/v1/namespaces/work/pods/{name}/eviction", eviction)

    def replaced() -> bool:
        uids = [pod["metadata"]["uid"] for pod in plane.admin.list("v1", "Pod", "work", "app=engines")]
        return uid not in uids and ready(plane, "Deployment", "engines", "readyReplicas") == 3

    wait_until(replaced, 30, "another engine in its place", tolerate=(ApiError,))

    plane.admin.delete("apps/v1", "Deployment", "engines", "work")
    wait_until(
        lambda: plane.admin.list("v1", "Pod", "work", "app=engines") == [], 30, "its Pods to be collected"
    )
    assert {pod["spec"]["nodeName"] for pod in plane.admin.list("v1", "Pod", "work")} == {
        h.name for h in hosts
    }


def test_a_silent_host_becomes_not_ready(fresh_control_plane: Planes, add_host: AddHost) -> None:
    plane = fresh_control_plane(crds=False, controllers=True, node_grace_seconds=6)
    host = add_host(plane, "node-1")

    def readiness() -> str:
        conditions = plane.admin.get("v1", "Node", host.name)["status"]["conditions"]
        return next(str(one["status"]) for one in conditions if one["type"] == "Ready")

    assert readiness() == "True"
    host.take_away()
    wait_until(lambda: readiness() == "Unknown", 30, "the node to be reported unknown")
    host.bring_up()
    wait_until(lambda: readiness() == "True", 30, "the node to be ready again")
