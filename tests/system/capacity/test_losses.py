"""What is lost with an agent, a keeper, a host or a master, and what is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest

from demo.neighbours.store import join_store
from devcluster.ports import free_port
from tests.harness.objects import MIB, NAMESPACE
from tests.harness.waiting import wait_until
from tests.system.capacity.site import Site, SiteFactory

if TYPE_CHECKING:
    from mooncake.store import MooncakeDistributedStore

pytestmark = [pytest.mark.real, pytest.mark.memory, pytest.mark.mooncake, pytest.mark.xdist_group("losses")]

BLOCK = b"k" * 65536
BLOCKS = 64
ADOPTION_SECONDS = 3.0
ATTEMPTS = 3
ONE_NODE = {"matchLabels": {"kubernetes.io/hostname": "node-1"}}


@pytest.fixture(scope="module")
def site(make_site: SiteFactory) -> Site:
    site = make_site(hosts=2)
    site.budget()
    return site


@pytest.fixture
def client(site: Site) -> Iterator[MooncakeDistributedStore]:
    """A client of the store, without memory of its own."""
    store = join_store(
        local_name=f"{site.hosts['infra-0'].address}:{free_port()}",
        master=site.mooncake.endpoint,
        segment_bytes=0,
        buffer_bytes=16 * MIB,
    )
    yield store
    store.remove_all(True)
    store.close()


def _stored(client: MooncakeDistributedStore, key: str) -> bool:
    return bool(client.put(key, BLOCK) == 0)


def fill(client: MooncakeDistributedStore) -> list[str]:
    keys = [f"block-{index}" for index in range(BLOCKS)]
    for key in keys:
        # Segments of keepers that an earlier test killed stay with the master until its TTL.
        wait_until(partial(_stored, client, key), 30, f"{key} to be stored")
    return keys


class Reader:
    """Reads blocks over and over until it is stopped; counts what did not come back right."""

    def __init__(self, client: MooncakeDistributedStore, keys: list[str]) -> None:
        self._client, self._keys = client, keys
        self._over = threading.Event()
        self.right, self.wrong = 0, 0
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30)

    def _read(self) -> None:
        while True:
            for key in self._keys:
                ok = self._client.get(key) == BLOCK
                self.right, self.wrong = self.right + ok, self.wrong + (not ok)
            if self._over.wait(0.05):
                return


def identity(site: Site, node: str, pool: str, tier: str = "DRAM") -> tuple[object, ...]:
    """What stays the same as long as nothing is made anew."""
    unit = site.unit(node, pool, tier)
    file = site.segment_file(node, unit).stat()
    keeper = site.keeper_status(node, unit)
    return unit["generation"], file.st_dev, file.st_ino, keeper["pid"], keeper["segment"]


def adopt_after_kill(site: Site, node: str, unit: str, phase: str) -> float:
    """Kill the node's agent; seconds from its next start until it says that the unit is in `phase`."""
    agent = site.installed.process("agent", node)
    before = agent.pid
    agent.kill()
    wait_until(lambda: agent.running and agent.pid != before, 20, "the agent to be started again")
    started = time.monotonic()
    labelled = f'{{phase="{phase}",unit="{unit}"}}'
    wait_until(
        lambda: site.metric("agent", "kvpool_agent_unit_phase", node).get(labelled) == 1,
        20,
        f"the agent to say {labelled}",
        tolerate=(OSError,),
    )
    return time.monotonic() - started


def assert_adopted(site: Site, node: str, unit: str, phase: str) -> None:
    """Kill the agent until it adopts in time, three times at most: others may keep the machine busy."""
    took: list[float] = []
    while not took or (took[-1] > ADOPTION_SECONDS and len(took) < ATTEMPTS):
        took.append(adopt_after_kill(site, node, unit, phase))
    assert took[-1] <= ADOPTION_SECONDS, took


def test_an_agent_that_is_killed_takes_nothing_with_it(site: Site, client: MooncakeDistributedStore) -> None:
    with site.bound_pool(DRAM="128Mi", nodeSelector=ONE_NODE) as pool:
        keys = fill(client)
        before = identity(site, "node-1", pool)
        with Reader(client, keys) as reader:
            unit = site.unit("node-1", pool)["name"]
            assert_adopted(site, "node-1", unit, "Bound")
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
            assert_adopted(site, "node-1", unit, "Allocating")
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
    with site.bound_pool(DRAM="128Mi") as pool:
        store = join_store(
            local_name=f"{site.hosts['infra-0'].address}:{free_port()}",
            master=site.mooncake.endpoint,
            segment_bytes=0,
            buffer_bytes=16 * MIB,
        )
        fill(store)
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
        store.close()
