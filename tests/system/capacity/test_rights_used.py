"""The rights of the operator: all that it uses, and a reason for each that this scenario does not use."""

from __future__ import annotations

import pytest

from devcluster.audit import AuditRecord
from devcluster.rest import ApiError
from tests.chart.rendering import of_kind, render
from tests.harness.objects import NAMESPACE
from tests.harness.rights import Right, granted, refused, used
from tests.harness.waiting import wait_until
from tests.system.capacity.site import Site, SiteFactory

pytestmark = [pytest.mark.real, pytest.mark.memory, pytest.mark.xdist_group("rights-used")]

NOT_USED_HERE: dict[Right, str] = {
    ("", "configmaps", "update"): "publishes a renewed authority",
    ("", "configmaps", "patch"): "an uninstall, in test_uninstall",
    ("kvpool.dev", "remaps", "create"): "moves, in tests/system/failover",
    ("kvpool.dev", "remaps", "delete"): "clears away old moves, in tests/plan/failover/test_history.py",
    ("kvpool.dev", "remaps/status", "patch"): "moves, in tests/system/failover",
    ("gateway.networking.k8s.io", "httproutes", "create"): "output HTTPRoute, in tests/system/failover",
    ("gateway.networking.k8s.io", "httproutes", "patch"): "output HTTPRoute, in tests/system/failover",
    ("", "services", "create"): "output HTTPRoute, in tests/system/failover",
    ("", "services", "patch"): "output HTTPRoute, in tests/system/failover",
    ("discovery.k8s.io", "endpointslices", "create"): "output HTTPRoute, in tests/system/failover",
    ("discovery.k8s.io", "endpointslices", "patch"): "output HTTPRoute, in tests/system/failover",
    ("", "pods", "patch"): "output PodLabel",
    ("kvpool.dev", "pdgroups", "get"): "output HTTPRoute of a group that is gone, in tests/system/failover",
    ("gateway.networking.k8s.io", "httproutes", "get"): "output HTTPRoute, in tests/system/failover",
    ("gateway.networking.k8s.io", "gateways", "get"): "output HTTPRoute, in tests/system/failover",
    ("apps", "deployments/scale", "get"): "engines that are named by their workload",
    ("apps", "replicasets/scale", "get"): "the same",
    ("apps", "statefulsets/scale", "get"): "the same",
    ("leaderworkerset.x-k8s.io", "leaderworkersets/scale", "get"): "the same",
}
BY_CHANCE: set[Right] = {("", "pods", "get")}
"""Used when an agent enrols before its Pod was seen."""


@pytest.fixture(scope="module")
def site(make_site: SiteFactory) -> Site:
    site = make_site(hosts=2, store=False)
    site.budget()
    return site


def of_the_chart() -> set[Right]:
    """Every right that the chart gives the operator."""
    documents = render()
    return granted(*(of_kind(documents, kind)["kvpool-operator"] for kind in ("ClusterRole", "Role")))


def requests(site: Site, user: str) -> list[AuditRecord]:
    return site.installed.plane.audit.requests(user=user, succeeded_only=False)


def test_the_operator_uses_the_rights_it_has_and_is_refused_none(site: Site) -> None:
    site.pool("chat", store=False, DRAM="64Mi")
    site.wait_bound("chat")
    site.apply("Supernode", "sn-a", {"mode": "Enforce", "nodeSelector": {"matchLabels": {"pool": "gpu"}}})
    decode = {"podSelector": {"matchLabels": {"app": "decode"}}, "instances": 1}
    group = {"mode": "Enforce", "poolRef": {"name": "chat"}, "decode": decode}
    site.apply("PDGroup", "chat", group, NAMESPACE)
    created = ("kvpool.dev", "engineslots", "create")
    wait_until(lambda: created in used(requests(site, site.operator_user)), 60, "a slot")
    site.apply("PDGroup", "chat", {**group, "decode": {**decode, "instances": 0}}, NAMESPACE)
    site.delete_pool("chat")
    site.hosts["node-2"].remove()
    expected = of_the_chart() - set(NOT_USED_HERE) - BY_CHANCE

    def unused() -> set[Right]:
        return expected - used(requests(site, site.operator_user))

    try:
        wait_until(lambda: not unused(), 90, "every right to be used")
    except AssertionError as error:
        raise AssertionError(f"{error}; not used: {sorted(unused())}") from error
    asked = requests(site, site.operator_user)
    assert refused(asked) == []
    assert used(asked) <= of_the_chart()
    assert not set(NOT_USED_HERE) & used(asked)
    assert set(NOT_USED_HERE) <= of_the_chart()


def test_agents_and_keepers_are_known_to_the_api_by_nothing(site: Site) -> None:
    for account in ("kvpool-agent", "kvpool-keeper"):
        user = f"system:serviceaccount:{site.installed.namespace}:{account}"
        assert requests(site, user) == []
        api = site.installed.plane.with_token(site.installed.plane.token(site.installed.namespace, account))
        with pytest.raises(ApiError, match="cannot list resource"):
            api.list("v1", "Pod", site.installed.namespace)
