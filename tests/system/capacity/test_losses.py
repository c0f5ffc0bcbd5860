"""What is lost with an agent, a keeper, a host or a master, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.harness.objects import MIB, NAMESPACE
from tests.harness.waiting import wait_until
from tests.system.blocks import Reader, client_of, fill
from tests.system.capacity.adoption import adopt_after_kill
from tests.system.capacity.site import Site, SiteFactory

if TYPE_CHECKING:
    from mooncake.store import MooncakeDistributedStore

pytestmark = [pytest.mark.real, pytest.mark.memory, pytest.mark.mooncake, pytest.mark.xdist_group("losses")]

ADOPTION_SECONDS = 3.0
ONE_NODE = {"matchLabels": {"kubernetes.io/hostname": "node-1"}}


@pytest.fixture(scope="module")
def site(make_site: SiteFactory) -> Site:
    site = make_site(hosts=2)
    site.budget()
    return site


@pytest.fixture
def client(site: Site) -> Iterator[MooncakeDistributedStore]:
    """A client of the store, without memory of its own."""
    with client_of(site.mooncake.endpoint, site.hosts["infra-0"].address) as joined:
        yield joined


def identity(site: Site, node: str, pool: str, tier: str = "DRAM") -> tuple[object, ...]:
    """What stays the same as long as nothing is made anew."""
    unit = site.unit(node, pool, tier)
    file = site.segment_file(node, unit).stat()
    keeper = site.keeper_status(node, unit)
    return unit["generation"], file.st_dev, file.st_ino, keeper["pid"], keeper["segment"]


def assert_adopted(site: Site, node: str, pool: str, phase: str) -> None:
    """Kill the node's agent: the next one adopts the pool's unit in time, and says so."""
    unit = site.unit(node, pool)
    seconds, adopted = adopt_after_kill(site.installed.process("agent", node))
    assert adopted[f"{unit['name']} g{unit['generation']}"] == phase
    assert seconds <= ADOPTION_SECONDS
    labelled = f'{{phase="{phase}",unit="{unit["name"]}"}}'
    wait_until(
        lambda: site.metric("agent", "kvpool_agent_unit_phase", node).get(labelled) == 1,
        20,
        f"the agent to say {labelled}",
        tolerate=(OSError,),
    )


def test_an_agent_that_is_killed_takes_nothing_with_it(site: Site, client: MooncakeDistributedStore) -> None:
    with site.bound_pool(DRAM="128Mi", nodeSelector=ONE_NODE) as pool:
        keys = fill(client)
        before = identity(site, "node-1", pool)
        with Reader(client, keys) as reader:
            assert_adopted(site, "node-1", pool, "Bound")
        assert identity(site, "node-1", pool) == before
        assert reader.wrong == 0 < reader.right
        assert len(site.keeper_pods("node-1", pool)) == 1


@pytest.mark.parametrize("moment", ["before it knows of it", "while the keeper is awaited"])
def test_an_agent_that_is_killed_during_a_bind_ends_it(site: Site, moment: str) -> None:
    pool = f"killed-{'early' if moment.startswith('before') else 'late'}"
    site.gate.nodes.add("node-1")
    try:
        if moment.startswith("before"):
            site.installed.process("agent", "node-1").kill()
        site.pool(pool, DRAM="64Mi", nodeSelector=ONE_NODE)
        wait_until(lambda: site.keeper_pods("node-1", pool), 30, "a keeper Pod")
        unit = site.unit("node-1", pool)["name"]
        if moment.startswith("while"):
            told = wait_until(lambda: site.reported("node-1", unit), 20, "the unit's report")
            assert told["phase"] == "Allocating"
            assert_adopted(site, "node-1", pool, "Allocating")
        site.gate.nodes.clear()
        site.wait_bound(pool)
        assert site.unit("node-1", pool)["generation"] == 1
        assert len(site.keeper_pods("node-1", pool)) == 1
    finally:
        site.gate.nodes.clear()
        site.delete_pool(pool)


def test_a_keeper_whose_pod_is_deleted_loses_its_unit_and_another_binds_it(site: Site) -> None:
    with site.bound_pool(DRAM="64Mi", nodeSelector=ONE_NODE) as pool:
        (pod,) = site.keeper_pods("node-1", pool)
        before = identity(site, "node-1", pool)
        site.gate.nodes.add("node-1")
        try:
            site.admin.delete("v1", "Pod", pod["metadata"]["name"], site.installed.namespace)
            site.wait_condition(pool, "Bound=False", "0 of 64Mi")
            unit = site.unit("node-1", pool)["name"]
            site.wait_condition(pool, "BudgetNotApplied=Unknown Applying", f"node-1 {unit}: .*keeper")
        finally:
            site.gate.nodes.clear()
        site.wait_bound(pool, seconds=20)  # an empty keeper has nothing to drain for half a minute
        (another,) = site.keeper_pods("node-1", pool)
        assert another["metadata"]["uid"] != pod["metadata"]["uid"]
        after = identity(site, "node-1", pool)
        assert after[3:] != before[3:]  # another process, another segment


def test_a_keeper_that_is_killed_says_that_its_objects_are_lost(
    site: Site, client: MooncakeDistributedStore
) -> None:
    with site.bound_pool(DRAM="64Mi", nodeSelector=ONE_NODE) as pool:
        unit = site.unit("node-1", pool)
        fill(client)
        wait_until(lambda: (site.keeper_status("node-1", unit)["used_bytes"] or 0) > 0, 20, "use")
        site.keeper("node-1", pool).kill()
        wait_until(
            lambda: any(
                finding["reason"] == "StoreContentsLost"
                for finding in site.reported("node-1", unit["name"]).get("findings", [])
            ),
            30,
            "the report to say that the contents were lost",
        )
        labelled = f'{{namespace="{NAMESPACE}",pool="{pool}"}}'
        wait_until(
            lambda: site.metric("operator", "kvpool_pool_objects_lost").get(labelled) == 1,
            10,
            "the alert's metric to say it of the pool",
        )
        assert site.metric("operator", "kvpool_store_contents_lost_total")[labelled] == 0
        site.wait_bound(pool)
        assert site.unit("node-1", pool)["generation"] == 1


def test_after_a_reboot_memory_is_bound_anew_and_files_are_adopted(site: Site) -> None:
    with site.bound_pool(DRAM="64Mi", SSD="32Mi", nodeSelector=ONE_NODE) as pool:
        file_before = site.segment_file("node-1", site.unit("node-1", pool, "SSD")).stat()
        host = site.hosts["node-1"]
        host.take_away()
        host.bring_up()
        wait_until(lambda: site.unit("node-1", pool)["generation"] == 2, 45, "a new generation in memory")
        memory = site.unit("node-1", pool)
        site.wait_reported("node-1", memory, "Bound")
        site.wait_bound(pool)
        disk = site.unit("node-1", pool, "SSD")
        assert disk["generation"] == 1
        file_after = site.segment_file("node-1", disk).stat()
        assert (file_after.st_dev, file_after.st_ino) == (file_before.st_dev, file_before.st_ino)
        assert site.segment_file("node-1", memory).stat().st_blocks * 512 == 64 * MIB
        assert len(site.keeper_pods("node-1", pool)) == 2


def test_a_master_that_is_started_anew_loses_objects_and_no_unit(site: Site) -> None:
    address = site.hosts["infra-0"].address
    with site.bound_pool(DRAM="128Mi") as pool, client_of(site.mooncake.endpoint, address) as client:
        fill(client)
        wait_until(lambda: site.figures(pool)["used"] > 0, 30, "use to be seen")
        counted = site.metric("operator", "kvpool_store_contents_lost_total")
        before = {node: identity(site, node, pool) for node in site.nodes}
        site.mooncake.stop()
        site.wait_condition(pool, "StoreReachable=False", "does not answer")
        site.start_master()
        site.wait_condition(pool, "StoreContentsLost=True", "forgot every key at ")
        labelled = f'{{namespace="{NAMESPACE}",pool="{pool}"}}'
        assert counted[labelled] == 0  # counted from 0 on, or no alert would see the first loss
        wait_until(
            lambda: site.metric("operator", "kvpool_store_contents_lost_total")[labelled] == 1,
            10,
            "the loss to be counted",
        )
        site.mooncake.admin.wait_for_segments(2, deadline_seconds=30)
        site.wait_bound(pool)
        assert {node: identity(site, node, pool) for node in site.nodes} == before
