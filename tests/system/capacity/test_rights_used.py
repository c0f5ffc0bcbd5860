"""The rights of the operator: all that it uses, and a reason for each that this scenario does not use."""

from __future__ import annotations

import pytest

from devcluster.rest import ApiError
from tests.chart.rendering import of_kind, render
from tests.harness.objects import NAMESPACE
from tests.harness.waiting import wait_until
from tests.system.capacity.site import Site, SiteFactory

pytestmark = [pytest.mark.real, pytest.mark.memory, pytest.mark.xdist_group("rights-used")]

Right = tuple[str, str, str]
"""API group, resource (with its sub-resource), verb."""

WRITES = {"create", "update", "patch", "delete"}

NOT_USED_HERE: dict[Right, str] = {
    ("", "configmaps", "update"): "publishes a renewed authority",
    ("", "configmaps", "patch"): "an uninstall, in test_uninstall",
    ("kvpool.dev", "remaps", "create"): "moves, in tests/system/failover",
    ("kvpool.dev", "remaps", "delete"): "clears away old moves, in tests/system/failover",
    ("kvpool.dev", "remaps/status", "patch"): "moves, in tests/system/failover",
    ("gateway.networking.k8s.io", "httproutes", "create"): "output HTTPRoute, in tests/system/failover",
    ("gateway.networking.k8s.io", "httproutes", "patch"): "output HTTPRoute, in tests/system/failover",
    ("", "services", "create"): "output HTTPRoute, in tests/system/failover",
    ("", "services", "patch"): "output HTTPRoute, in tests/system/failover",
    ("discovery.k8s.io", "endpointslices", "create"): "output HTTPRoute, in tests/system/failover",
    ("discovery.k8s.io", "endpointslices", "patch"): "output HTTPRoute, in tests/system/failover",
    ("", "pods", "patch"): "output PodLabel",
}


@pytest.fixture(scope="module")
def site(make_site: SiteFactory) -> Site:
    site = make_site(hosts=2, store=False)
    site.budget()
    return site


def granted() -> set[Right]:
    """Every right to write that the chart gives the operator."""
    documents = render()
    roles = (of_kind(documents, "ClusterRole"), of_kind(documents, "Role"))
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["kvpool-operator"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb in WRITES
    }


def used(site: Site) -> set[Right]:
    """Every right to write that the operator used."""
    found = site.installed.plane.audit.writes(user=site.operator_user)
    return {
        (write.api_group, "/".join(filter(None, (write.resource, write.subresource))), write.verb)
        for write in found
    }


def refused(site: Site) -> list[str]:
    """Writes that the operator had no right to."""
    found = site.installed.plane.audit.writes(user=site.operator_user, succeeded_only=False)
    return [str(write) for write in found if write.code == 403]


def test_the_operator_uses_the_rights_it_has_and_is_refused_none(site: Site) -> None:
    site.pool("chat", store=False, DRAM="64Mi")
    site.wait_bound("chat")
    site.apply("Supernode", "sn-a", {"mode": "Enforce", "nodeSelector": {"matchLabels": {"pool": "gpu"}}})
    decode = {"podSelector": {"matchLabels": {"app": "decode"}}, "instances": 1}
    group = {"mode": "Enforce", "poolRef": {"name": "chat"}, "decode": decode}
    site.apply("PDGroup", "chat", group, NAMESPACE)
    created = ("kvpool.dev", "engineslots", "create")
    wait_until(lambda: created in used(site), 60, "a slot")
    site.apply("PDGroup", "chat", {**group, "decode": {**decode, "instances": 0}}, NAMESPACE)
    site.delete_pool("chat")
    site.hosts["node-2"].remove()
    missing = granted() - set(NOT_USED_HERE)

    def all_used() -> bool:
        return missing <= used(site)

    try:
        wait_until(all_used, 90, "every right to be used")
    except AssertionError as error:
        raise AssertionError(f"{error}; not used: {sorted(missing - used(site))}") from error
    assert refused(site) == []
    assert used(site) <= granted()
    assert not set(NOT_USED_HERE) & used(site)
    assert set(NOT_USED_HERE) <= granted()


def test_agents_and_keepers_are_known_to_the_api_by_nothing(site: Site) -> None:
    for account in ("kvpool-agent", "kvpool-keeper"):
        user = f"system:serviceaccount:{site.installed.namespace}:{account}"
        assert site.installed.plane.audit.writes(user=user, succeeded_only=False) == []
        api = site.installed.plane.with_token(site.installed.plane.token(site.installed.namespace, account))
        with pytest.raises(ApiError, match="cannot list resource"):
            api.list("v1", "Pod", site.installed.namespace)
