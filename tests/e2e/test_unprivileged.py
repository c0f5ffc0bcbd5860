"""`agent.privileged=false` on real nodes: the same pool from /dev/shm and disks, with three capabilities."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.admission import (
    CAPABILITIES,
    broken_rules,
    listed_capabilities,
    listed_mounts,
    listed_rules,
    mounted,
    refusal,
)
from tests.e2e.conftest import POOL, declare
from tests.e2e.keepers import memory_keeper
from tests.e2e.kernel import facts, statistics
from tests.e2e.numbers import Numbers
from tests.e2e.site import RealSite
from tests.e2e.stored import Stored

CAPABILITY_SETS = ("CapEff", "CapPrm", "CapBnd")


@pytest.fixture(scope="module")
def unprivileged(installed: RealSite, numbers: Numbers) -> Iterator[RealSite]:
    """kvpool installed anew without privileges for its agents; gone in the end."""
    site = installed
    site.mend()
    site.remove()
    try:
        site.install(values={"agent.privileged": "false"})
        declare(site)
        yield site
    finally:
        site.remove()


def test_units_are_bound_out_of_shared_memory_and_hold_objects(unprivileged: RealSite) -> None:
    site = unprivileged
    with Stored.put(site.master, site.store) as stored:
        assert stored.lost() == set()
    for node in site.nodes:
        unit = site.unit(node, POOL)
        told = site.wait_reported(node, unit, "Bound")
        (file,) = (site.cluster.root(node) / "dev/shm").glob("kvpool-*/segment")
        assert file.stat().st_size == told["residentBytes"] == unit["sizeBytes"]
        assert statistics(site, memory_keeper(site, node))["total_shmem"] == unit["sizeBytes"]
        assert told["placementVerified"] is False, "nobody promised a NUMA node"
        assert site.wait_reported(node, site.unit(node, POOL, "SSD"), "Bound")


def test_the_agent_has_three_capabilities_and_no_way_to_get_more(unprivileged: RealSite) -> None:
    assert set(CAPABILITIES) == listed_capabilities()
    for pod in unprivileged.pods_of("agent"):
        said = facts(unprivileged, pod, "kvpool-agent")
        assert {int(said[name], 16) for name in CAPABILITY_SETS} == {
            sum(1 << number for number in CAPABILITIES.values())
        }
        assert (said["NoNewPrivs"], said["Seccomp"]) == ("1", "2")


def test_pods_mount_what_the_page_about_them_says_and_nothing_else(unprivileged: RealSite) -> None:
    for pod in unprivileged.pods_of("agent"):
        assert mounted(pod) == listed_mounts("agent", privileged=False)
    for pod in unprivileged.pods_of("keeper"):
        assert mounted(pod) == listed_mounts("keeper", privileged=False)


@pytest.mark.parametrize("component", ["agent", "keeper"])
def test_restricted_refuses_them_for_no_rule_that_privileges_would_need(
    unprivileged: RealSite, restricted: str, component: str
) -> None:
    for pod in unprivileged.pods_of(component):
        said = refusal(unprivileged, restricted, pod)
        assert broken_rules(said) == listed_rules(component, privileged=False)
