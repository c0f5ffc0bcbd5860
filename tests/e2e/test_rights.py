"""What kvpool's Pods ask of the API on real nodes, as the audit log has it, and what they are allowed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.neighbours.pods import EnginePod
from devcluster.audit import AuditRecord
from devcluster.rest import JsonObject
from tests.e2e.conftest import POOL
from tests.e2e.site import SYSTEM, RealSite
from tests.harness.objects import KVPOOL, NAMESPACE, SETTLE_SECONDS
from tests.harness.rights import Right, granted, refused, used
from tests.harness.waiting import wait_until

RBAC = "rbac.authorization.k8s.io/v1"
ROLE = "kvpool-operator"
GROUP, ENGINE = "rights", "engine-of-rights"
SOMETIMES: dict[Right, str] = {
    ("", "configmaps", "update"): "publishes a renewed authority",
    ("", "configmaps", "patch"): "`kubectl kvpool uninstall`, in test_uninstall",
    ("", "pods", "get"): "an agent that enrols before its Pod was seen",
    ("kvpool.dev", "pdgroups", "get"): "before the outputs of a group that is gone are taken away",
    ("", "services", "create"): "makes an object by an apply, which the log calls a patch",
    ("discovery.k8s.io", "endpointslices", "create"): "the same",
    ("gateway.networking.k8s.io", "httproutes", "create"): "the same",
    ("gateway.networking.k8s.io", "gateways", "get"): "reads weights back, in tests/system/failover",
    ("kvpool.dev", "engineslots", "delete"): "a group that goes, in tests/system/capacity",
    ("kvpool.dev", "kvnodes", "delete"): "a node that leaves, in tests/system/capacity",
    ("kvpool.dev", "remaps", "delete"): "clears away old moves, in tests/system/failover",
    ("apps", "deployments/scale", "get"): "engines that are named by their workload",
    ("apps", "statefulsets/scale", "get"): "the same",
    ("apps", "replicasets/scale", "get"): "the same",
    ("leaderworkerset.x-k8s.io", "leaderworkersets/scale", "get"): "the same",
}
"""Rights that no test here has to use, and what they are for."""


def _requests(site: RealSite, component: str) -> list[AuditRecord]:
    user = f"system:serviceaccount:{SYSTEM}:kvpool-{component}"
    return site.cluster.plane.audit.requests(user=user, succeeded_only=False)


@pytest.fixture
def routed(site: RealSite) -> Iterator[RealSite]:
    """An engine whose weights go to a route and to labels of pods, and a pool that came and went."""
    site.cluster.plane.install_gateway_api()
    site.admin.create(_gateway())
    engine = EnginePod(ENGINE, GROUP, "node1").manifest(NAMESPACE)
    site.admin.create(engine)
    site.apply("PDGroup", GROUP, _group(), NAMESPACE)
    site.pool("brief", DRAM="48Mi")
    site.wait_bound("brief")
    site.delete_pool("brief")
    yield site
    site.admin.delete(KVPOOL, "PDGroup", GROUP, NAMESPACE)
    site.admin.delete("v1", "Pod", ENGINE, NAMESPACE, {"gracePeriodSeconds": 0})
    wait_until(
        lambda: not site.admin.list(KVPOOL, "EngineSlot", NAMESPACE), SETTLE_SECONDS, "slots to be gone"
    )
    site.admin.delete("gateway.networking.k8s.io/v1", "Gateway", GROUP, NAMESPACE)


def _gateway() -> JsonObject:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": GROUP, "namespace": NAMESPACE},
        "spec": {
            "gatewayClassName": "nobodys",
            "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
        },
    }


def _group() -> JsonObject:
    decode = {"podSelector": {"matchLabels": {"role": GROUP}}, "port": 8000, "instances": 1}
    outputs = [
        {"name": "edge", "type": "HTTPRoute", "httpRoute": {"parentRef": {"name": GROUP}}},
        {"name": "labels", "type": "PodLabel", "podLabel": {"key": "kv-rights"}},
    ]
    return {
        "mode": "Enforce",
        "poolRef": {"name": POOL},
        "supernodeRef": {"name": "sn-a"},
        "decode": {**decode, "attach": "Observe"},
        "routing": {"onDelete": "Remove", "outputs": outputs},
    }


def test_agents_and_keepers_ask_the_api_for_nothing(site: RealSite) -> None:
    assert _requests(site, "agent") == []
    assert _requests(site, "keeper") == []


def test_the_operator_uses_the_rights_it_has_and_is_refused_none(routed: RealSite) -> None:
    has = granted(routed.admin.get(RBAC, "ClusterRole", ROLE), routed.admin.get(RBAC, "Role", ROLE, SYSTEM))

    def unused() -> set[Right]:
        return has - set(SOMETIMES) - used(_requests(routed, "operator"))

    try:
        wait_until(lambda: not unused(), SETTLE_SECONDS, "every right to be used")
    except AssertionError as error:
        raise AssertionError(f"{error}; not used: {sorted(unused())}") from error
    assert set(SOMETIMES) <= has
    assert used(_requests(routed, "operator")) <= has
    assert refused(_requests(routed, "operator")) == []
