"""What happens to pods of a running kvpool: deleted, rolled, upgraded; nothing that is stored is lost."""

from __future__ import annotations

from devcluster.rest import JsonObject
from tests.e2e.conftest import POOL
from tests.e2e.keepers import keepers_of, memory_keeper
from tests.e2e.kernel import frozen, mappings, runs, statistics
from tests.e2e.operators import kill_operators
from tests.e2e.site import NODES, SYSTEM, RealSite
from tests.e2e.stored import Stored
from tests.harness.objects import SETTLE_SECONDS
from tests.harness.waiting import wait_until

NEXT = "next"


def _wait_for_new_agents(site: RealSite, before: dict[str, int], count: int = NODES) -> None:
    def newer() -> bool:
        now = site.incarnations()
        return sum(now.get(node, 0) > number for node, number in before.items()) >= count

    wait_until(newer, SETTLE_SECONDS, f"{count} agents to report under a new incarnation")


def _image_ids(pods: list[JsonObject]) -> set[str]:
    """What the container runtime says that the Pods run."""
    return {one["imageID"] for pod in pods for one in pod["status"]["containerStatuses"]}


def _uids(pods: list[JsonObject]) -> list[str]:
    return [pod["metadata"]["uid"] for pod in pods]


def test_a_deleted_agent_comes_back_to_the_units_it_left(site: RealSite, stored: Stored) -> None:
    keepers, before = keepers_of(site), site.incarnations()
    (agent,) = site.pods_of("agent", "node2")
    site.delete_pod(agent)
    _wait_for_new_agents(site, before, 1)
    assert stored.lost() == set()
    assert keepers_of(site) == keepers


def test_agents_are_rolled_to_a_new_image_over_the_same_keepers(site: RealSite, stored: Stored) -> None:
    keepers, before, old = keepers_of(site), site.incarnations(), site.pods_of("agent")
    image = f"localhost/kvpool-agent:{NEXT}"
    site.kubectl("set", "image", "daemonset/kvpool-agent", f"agent={image}", f"--namespace={SYSTEM}")
    site.kubectl("rollout", "status", "daemonset/kvpool-agent", f"--namespace={SYSTEM}", "--timeout=90s")
    _wait_for_new_agents(site, before)
    new = site.wait_ready("agent", NODES, but=_uids(old))
    assert {pod["spec"]["containers"][0]["image"] for pod in new} == {image}
    assert len(_image_ids(new)) == 1
    assert not _image_ids(new) & _image_ids(old), "another image, not another name of the same one"
    assert stored.lost() == set()
    assert keepers_of(site) == keepers


def test_an_upgrade_with_changed_values_touches_no_keeper(site: RealSite, stored: Stored) -> None:
    keepers, before = keepers_of(site), site.incarnations()
    old = {component: site.pods_of(component) for component in ("operator", "agent")}
    site.upgrade(
        **{
            "image.tag": NEXT,
            "agent.resources.requests.cpu": "60m",
            "operator.resources.requests.memory": "129Mi",
        }
    )
    _wait_for_new_agents(site, before)
    agents = site.wait_ready("agent", NODES, but=_uids(old["agent"]))
    operators = site.wait_ready("operator", 2, but=_uids(old["operator"]))
    assert {_request(pod, "cpu") for pod in agents} == {"60m"}
    assert {_request(pod, "memory") for pod in operators} == {"129Mi"}
    assert not _image_ids(operators) & _image_ids(old["operator"])
    assert stored.lost() == set()
    assert keepers_of(site) == keepers


def _request(pod: JsonObject, resource: str) -> str:
    (container,) = pod["spec"]["containers"]
    assert container["name"] in {status["name"] for status in pod["status"]["containerStatuses"]}
    return str(container["resources"]["requests"][resource])


def test_operators_deleted_in_the_middle_of_a_bind_bind_once(site: RealSite, stored: Stored) -> None:
    (agent,) = site.pods_of("agent", "node3")
    try:
        with frozen(site, agent, "kvpool-agent"):
            site.pool("late", DRAM="96Mi")
            wait_until(lambda: site.decided("node3", "late"), SETTLE_SECONDS, "a unit to be decided")
            old = kill_operators(site)
            assert not _is_kept(site, "late", "node3"), "what is decided is not done, and nobody leads"
        site.wait_bound("late")
        site.wait_ready("operator", 2, but=old)
        units = [unit for node in site.nodes for unit in site.decided(node, "late").values()]
        assert [unit["generation"] for unit in units] == [1] * NODES
        assert len(site.keepers_of_pool("late")) == NODES, "one keeper a unit, whoever made it"
        assert stored.lost() == set()
    finally:
        site.delete_pool("late")


def _is_kept(site: RealSite, pool: str, node: str) -> bool:
    """Whether a keeper holds memory of the pool on a node, as the kernel has it."""
    keepers = [one for one in site.keepers_of_pool(pool) if one["spec"].get("nodeName") == node]
    return any(runs(site, one) and statistics(site, one)["total_shmem"] for one in keepers)


def test_a_deleted_keeper_loses_its_unit_says_so_and_is_bound_anew(site: RealSite, stored: Stored) -> None:
    unit, keeper = site.unit("node3", POOL), memory_keeper(site, "node3")
    there = stored.only_in(mappings(site, keeper))
    assert there
    since = site.since()
    site.delete_pod(keeper, grace_seconds=0)
    wait_until(
        lambda: site.unit("node3", POOL)["generation"] > unit["generation"],
        SETTLE_SECONDS,
        "the unit to be decided anew",
    )
    site.wait_reported("node3", site.unit("node3", POOL), "Bound")
    site.wait_bound(POOL)
    assert since.said_of(unit["name"], "KeeperGone"), "the loss is an event"
    assert stored.lost() <= there, "nothing but what was in the unit is gone"
