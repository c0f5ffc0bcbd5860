"""`uninstall --drain` with a machine that says nothing: named, not forced, and the word can be taken back."""

from __future__ import annotations

import pytest

from devcluster.rest import JsonObject
from kvpool.api import labels
from tests.harness.objects import KVPOOL, NAMESPACE
from tests.harness.waiting import wait_until
from tests.system.capacity.site import Site, SiteFactory

pytestmark = [pytest.mark.real, pytest.mark.memory, pytest.mark.xdist_group("uninstall-silent")]

BOUND_ANEW_SECONDS = 60.0


@pytest.fixture
def site(make_site: SiteFactory) -> Site:
    site = make_site(hosts=2, store=False)
    site.budget()
    site.pool("chat", store=False, DRAM="128Mi")
    site.wait_bound("chat")
    return site


def test_a_silent_node_is_named_and_nothing_of_the_others_is_forced(site: Site) -> None:
    node = site.nodes[0]
    unit = site.unit(node, "chat")
    site.hosts[node].take_away()
    done = site.uninstall("--yes", "--timeout=15s")
    assert done.returncode == 1
    assert f"left: unit {node}/{unit['name']}" in done.stdout
    assert "nothing was forced" in done.stdout
    assert site.decided(node, "chat")
    assert site.admin.find(KVPOOL, "KVPool", "chat", NAMESPACE) is not None, "a later step was not begun"
    switch = site.admin.find("v1", "ConfigMap", labels.UNINSTALL_CONFIG_MAP, site.installed.namespace)
    assert switch is not None

    def held() -> set[str]:
        found: list[JsonObject] = site.admin.list(KVPOOL, "KVNode")
        return {one["metadata"]["name"] for one in found if one["spec"].get("units")}

    site.admin.delete("v1", "ConfigMap", labels.UNINSTALL_CONFIG_MAP, site.installed.namespace)
    wait_until(lambda: held() == set(site.nodes), BOUND_ANEW_SECONDS, "what stays after all to be bound anew")
