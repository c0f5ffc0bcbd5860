"""`helm install` on real nodes: who runs, what is bound, and what kubelet and scheduler see of it."""

from __future__ import annotations

from kvpool.api.quantity import parse_quantity
from tests.e2e.conftest import BOUND, INSTALLED, POOL
from tests.e2e.keepers import OVERHEAD_BYTES, memory_keeper
from tests.e2e.numbers import Numbers
from tests.e2e.site import NODES, RealSite
from tests.e2e.stored import Stored
from tests.harness.objects import MIB

INSTALL_SECONDS = 20.0
BOUND_SECONDS = 15.0


def test_an_operator_is_ready_soon_after_helm_install(site: RealSite, numbers: Numbers) -> None:
    took = numbers.seconds[INSTALLED]
    assert took <= INSTALL_SECONDS, f"helm install --wait took {took:.1f} s"
    assert len(site.wait_ready("operator", 2)) == 2


def test_a_pool_of_three_units_is_bound_soon_after(site: RealSite, numbers: Numbers) -> None:
    took = numbers.seconds[BOUND]
    assert took <= BOUND_SECONDS, f"Bound after {took:.1f} s"
    assert site.figures(POOL)["bound"] == NODES * 64 * MIB


def test_every_node_has_an_agent_of_the_daemonset_that_enrolled(site: RealSite) -> None:
    agents = {pod["spec"]["nodeName"]: pod for pod in site.wait_ready("agent", NODES)}
    assert sorted(agents) == sorted(site.nodes)
    assert set(site.incarnations()) == set(site.nodes)
    assert all(number > 0 for number in site.incarnations().values())


def test_keepers_ask_for_the_memory_of_their_units_where_the_scheduler_sees_it(site: RealSite) -> None:
    for node in site.nodes:
        keeper = memory_keeper(site, node)
        unit = site.unit(node, POOL)
        resources = keeper["spec"]["containers"][0]["resources"]
        assert resources["requests"]["memory"] == resources["limits"]["memory"]
        assert parse_quantity(resources["requests"]["memory"]) == unit["sizeBytes"] + OVERHEAD_BYTES
        described = site.kubectl("describe", "node", node)
        line = next(line for line in described.splitlines() if keeper["metadata"]["name"] in line)
        assert line.split()[6] == resources["requests"]["memory"], "the column of memory requests"


def test_blocks_are_stored_in_the_memory_of_all_nodes(site: RealSite, stored: Stored) -> None:
    names = {segment.name for segment in site.store.segments() if segment.used_bytes}
    addresses = {site.address(node) for node in site.nodes}
    assert {name.split(":")[0] for name in names} == addresses
    assert stored.lost() == set()
