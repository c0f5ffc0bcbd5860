"""Operators that die in the middle of a bind, and two of them at once."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest

from devcluster.process import ManagedProcess
from kvpool.control.faultpoints import VARIABLE
from tests.harness.waiting import wait_until
from tests.system.capacity.site import Site, SiteFactory

pytestmark = [pytest.mark.real, pytest.mark.memory, pytest.mark.xdist_group("operator-crashes")]

LEAD_SECONDS = 40.0


@pytest.fixture(scope="module")
def site(make_site: SiteFactory) -> Site:
    site = make_site(hosts=2, infra=2, store=False)
    site.budget()
    return site


def leaders(site: Site) -> list[str]:
    """Hosts whose operator says that it leads, under an epoch; one that does not answer says nothing."""
    found = []
    for host in site.operator_hosts():
        with contextlib.suppress(OSError):
            leads = site.metric("operator", "kvpool_operator_is_leader", host)[""] == 1
            if leads and site.metric("operator", "kvpool_operator_epoch", host)[""] > 0:
                found.append(host)
    return found


def wait_for_leader(site: Site) -> str:
    found = wait_until(lambda: leaders(site), LEAD_SECONDS, "a leader")
    assert len(found) == 1
    return found[0]


def start_armed(site: Site, point: str) -> ManagedProcess:
    """Start the operator anew so that it kills itself at `point`, and in no later life."""
    operator = site.installed.process("operator")
    before = operator.pid
    operator.env[VARIABLE] = point
    operator.kill()
    wait_until(lambda: operator.running and operator.pid != before, 20, "the armed operator to start")
    del operator.env[VARIABLE]
    wait_for_leader(site)
    return operator


@pytest.mark.parametrize("action", ["SetUnits", "CreateKeeper"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_bind_that_an_operator_dies_in_ends_with_every_unit_once(
    site: Site, moment: str, action: str
) -> None:
    pool = f"{moment}-{action.lower()}"
    operator = start_armed(site, f"{moment}:{action}")
    armed = operator.pid
    site.pool(pool, DRAM="64Mi", SSD="32Mi", store=False)
    try:
        wait_until(lambda: operator.pid != armed, 30, f"the operator to die {moment} {action}")
        site.wait_bound(pool, seconds=60)
        for node in site.nodes:
            units = site.decided(node, pool).values()
            assert sorted((unit["tier"], unit["generation"]) for unit in units) == [("DRAM", 1), ("SSD", 1)]
            assert len(site.keeper_pods(node, pool)) == 2
        made = Counter(
            write.resource
            for write in site.installed.plane.audit.writes(user=site.operator_user)
            if write.verb == "create" and write.resource == "pods" and pool in write.name
        )
        assert made in (Counter(pods=4), Counter())  # a create may name its object in its body alone
    finally:
        site.delete_pool(pool)


def test_of_two_operators_one_leads_and_the_other_takes_over(site: Site) -> None:
    site.installed.install(**{"operator.replicas": "2"})
    try:
        wait_until(lambda: len(site.operator_hosts()) == 2, 30, "two operators")
        first = wait_for_leader(site)
        epoch = site.metric("operator", "kvpool_operator_epoch", first)[""]
        with site.bound_pool(DRAM="64Mi", store=False) as pool:
            site.hosts[first].take_away()
            second = wait_until(
                lambda: [host for host in leaders(site) if host != first] or None,
                LEAD_SECONDS,
                "the other operator to lead",
            )
            assert second is not None
            assert site.metric("operator", "kvpool_operator_epoch", second[0])[""] > epoch
            site.pool(pool, DRAM="128Mi", store=False)
            site.wait_bound(pool)
            assert leaders(site) == second
            assert sum(len(site.decided(node, pool)) for node in site.nodes) == 2
            site.hosts[first].bring_up()
            wait_until(lambda: len(site.operator_hosts()) == 2, 30, "the first operator to come back")
            assert wait_for_leader(site) == second[0]
    finally:
        site.installed.install(**{"operator.replicas": "1"})
        wait_until(lambda: len(site.operator_hosts()) == 1, 30, "one operator")
