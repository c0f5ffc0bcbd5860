"""What happens to pods of a running kvpool: deleted, rolled, upgraded; nothing that is stored is lost."""

from __future__ import annotations

from tests.e2e.conftest import NODES, POOL
from tests.e2e.keepers import keepers_of, memory_keeper
from tests.e2e.site import RealSite
from tests.e2e.stored import Stored
from tests.harness.objects import SETTLE_SECONDS
from tests.harness.waiting import wait_until


def _wait_for_new_agents(site: RealSite, before: dict[str, int], count: int = NODES) -> None:
    def newer() -> bool:
        now = site.incarnations()
        return sum(now.get(node, 0) > number for node, number in before.items()) >= count

    wait_until(newer, SETTLE_SECONDS, f"{count} agents to report under a new incarnation")


def test_a_deleted_agent_comes_back_to_the_units_it_left(site: RealSite, stored: Stored) -> None:
    keepers, before = keepers_of(site), site.incarnations()
    (agent,) = site.pods_of("agent", "node2")
    site.delete_pod(agent)
    _wait_for_new_agents(site, before, 1)
    assert stored.lost() == []
    assert keepers_of(site) == keepers


def test_agents_are_rolled_to_a_new_image_over_the_same_keepers(site: RealSite, stored: Stored) -> None:
    keepers, before = keepers_of(site), site.incarnations()
    image = "localhost/kvpool-agent:next"
    site.kubectl("set", "image", "daemonset/kvpool-agent", f"agent={image}", "--namespace=kvpool-system")
    site.kubectl("rollout", "status", "daemonset/kvpool-agent", "--namespace=kvpool-system", "--timeout=90s")
    _wait_for_new_agents(site, before)
    agents = site.wait_ready("agent", NODES)
    assert {pod["spec"]["containers"][0]["image"] for pod in agents} == {image}
    assert stored.lost() == []
    assert keepers_of(site) == keepers


def test_an_upgrade_with_changed_values_touches_no_keeper(site: RealSite, stored: Stored) -> None:
    keepers, before = keepers_of(site), site.incarnations()
    site.upgrade(**{"image.tag": "next", "agent.resources.requests.cpu": "60m"})
    _wait_for_new_agents(site, before)
    site.wait_ready("operator", 2)
    assert stored.lost() == []
    assert keepers_of(site) == keepers


def test_operators_deleted_in_the_middle_of_a_bind_bind_once(site: RealSite, stored: Stored) -> None:
    site.pool("late", DRAM="96Mi")
    wait_until(
        lambda: any(site.decided(node, "late") for node in site.nodes), SETTLE_SECONDS, "a unit to be decided"
    )
    for operator in site.pods_of("operator"):
        site.delete_pod(operator, grace_seconds=0)
    site.wait_bound("late")
    generations = {unit["generation"] for node in site.nodes for unit in site.decided(node, "late").values()}
    assert generations == {1}
    assert stored.lost() == []
    site.delete_pool("late")


def test_a_deleted_keeper_loses_its_unit_says_so_and_is_bound_anew(site: RealSite, stored: Stored) -> None:
    unit = site.unit("node3", POOL)
    keeper = memory_keeper(site, "node3")
    site.delete_pod(keeper, grace_seconds=0)
    wait_until(
        lambda: site.unit("node3", POOL)["generation"] > unit["generation"],
        SETTLE_SECONDS,
        "the unit to be decided anew",
    )
    site.wait_bound(POOL)
    assert site.said_of(unit["name"], "KeeperGone"), "the loss is an event"
    elsewhere = [key for key in stored.keys if key not in stored.lost()]
    assert elsewhere, "blocks on the other nodes stay"
