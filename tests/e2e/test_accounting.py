"""Who pays for the memory, and where it lies: keepers' cgroups, the scheduler's sums, NUMA nodes, kubelet."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from devcluster.rest import JsonObject
from kvpool.api.quantity import parse_quantity
from tests.e2e.conftest import POOL
from tests.e2e.keepers import OVERHEAD_BYTES, disk_keeper, memory_keeper
from tests.e2e.kernel import bytes_by_numa_node, cgroup, statistics
from tests.e2e.numbers import Numbers
from tests.e2e.site import NODES, SSD_FOLDER, RealSite, is_ready
from tests.harness.objects import MIB, NAMESPACE, SETTLE_SECONDS
from tests.harness.waiting import wait_until

AGREEMENT = 0.01
READINGS = 3
"""That have to agree one after the other; kubelet makes a new one every 10 s or so."""
READINGS_SECONDS = 120.0
SSD_TIER = {"name": "SSD", "perNode": "128Mi", "reserve": "0", "path": SSD_FOLDER}
WIDE = "wide"
WIDE_BYTES = 1024 * MIB
BLOCK_BYTES = 512


def test_the_pages_of_a_unit_are_charged_to_its_keeper_and_to_nobody_else(site: RealSite) -> None:
    for node in site.nodes:
        unit = site.unit(node, POOL)["sizeBytes"]
        assert statistics(site, memory_keeper(site, node))["total_shmem"] == unit
        (agent,) = site.pods_of("agent", node)
        assert statistics(site, agent)["total_shmem"] < MIB


def test_where_the_pages_lie_is_reported_as_the_kernel_has_it_and_verified(site: RealSite) -> None:
    for node in site.nodes:
        unit = site.unit(node, POOL)
        told = site.wait_reported(node, unit, "Bound")
        placement = {one["numaNode"]: one["sizeBytes"] for one in told["placement"]}
        assert placement == bytes_by_numa_node(site, memory_keeper(site, node))
        assert placement == {unit["numaNode"]: unit["sizeBytes"]}
        assert told["placementVerified"] is True
        assert told["findings"] == []


@pytest.fixture
def wide(site: RealSite) -> Iterator[JsonObject]:
    """A unit so large on node3 that what its keeper's process takes beside it is less than 1 %."""
    site.budget({"name": "DRAM", "perNode": "1280Mi", "reserve": "64Mi"}, SSD_TIER)
    try:
        site.pool(WIDE, DRAM=f"{WIDE_BYTES // MIB}Mi", nodeSelector=_only("node3"))
        site.wait_bound(WIDE)
        yield site.unit("node3", WIDE)
    finally:
        site.delete_pool(WIDE)
        site.budget()


def test_what_kubelet_and_kvpool_say_of_memory_agrees(
    site: RealSite, wide: JsonObject, numbers: Numbers
) -> None:
    keeper = memory_keeper(site, "node3", WIDE)
    told = site.wait_reported("node3", wide, "Bound")["residentBytes"]
    assert told == WIDE_BYTES

    def shared_bytes(says: JsonObject) -> int:
        return int(says["workingSetBytes"]) - int(says["rssBytes"])

    seen = _readings(site, keeper, lambda says: abs(shared_bytes(says) - told) <= AGREEMENT * told)
    worst = max(abs(shared_bytes(says) - told) / told for says in seen)
    numbers.percent["kubelet and kvpool differ about a unit of memory by"] = 100 * worst
    for says in seen:
        assert says["usageBytes"] <= WIDE_BYTES + OVERHEAD_BYTES


def test_what_kernel_and_kvpool_say_of_a_disk_agrees_and_kubelet_charges_none_of_it(site: RealSite) -> None:
    for node in site.nodes:
        unit, keeper = site.unit(node, POOL, "SSD"), disk_keeper(site, node)
        told = site.wait_reported(node, unit, "Bound")["residentBytes"]
        (file,) = (site.cluster.root(node) / SSD_FOLDER.lstrip("/")).glob(f"*{unit['name']}-g*/segment")
        assert abs(file.stat().st_blocks * BLOCK_BYTES - told) <= AGREEMENT * told
        assert all(one["usageBytes"] <= OVERHEAD_BYTES for one in _readings(site, keeper, bool, 1))


def _readings(
    site: RealSite, pod: JsonObject, fits: Callable[[JsonObject], bool], count: int = READINGS
) -> list[JsonObject]:
    """Kubelet's newest `count` statements about a Pod's memory, all of which fit; each was made anew."""
    seen: list[JsonObject] = []

    def enough() -> bool:
        says = site.kubelet_says(pod)
        if not seen or says["time"] != seen[-1]["time"]:
            seen[:] = [*seen, says] if fits(says) else []
        return len(seen) == count

    wait_until(enough, READINGS_SECONDS, f"{count} readings that fit", poll_seconds=0.5)
    return seen


def test_keepers_use_no_more_than_they_ask_for(site: RealSite) -> None:
    for keeper in site.pods_of("keeper"):
        (container,) = keeper["spec"]["containers"]
        asked = parse_quantity(container["resources"]["requests"]["memory"])
        assert site.kubelet_says(keeper)["usageBytes"] <= asked
        assert int((cgroup(site, keeper) / "memory.limit_in_bytes").read_text()) == asked


def test_a_pool_that_fits_no_node_beside_its_pods_is_refused_with_figures(site: RealSite) -> None:
    site.budget({"name": "DRAM", "perNode": "8Gi", "reserve": "0"}, SSD_TIER)
    try:
        site.pool("large", DRAM="6Gi", nodeSelector=_only("node3"))
        condition = site.wait_condition("large", "Admitted=False NotEnoughRoom", "schedulable of its")
        assert "6Gi of DRAM asked" in condition["message"]
        assert not any(site.decided(node, "large") for node in site.nodes)
    finally:
        site.delete_pool("large")
        site.budget()


def _only(node: str) -> JsonObject:
    return {"matchLabels": {"kubernetes.io/hostname": node}}


def test_a_keeper_whose_room_was_taken_waits_and_the_pool_says_so_instead_of_dying(site: RealSite) -> None:
    ends, keeper = _ends(site), memory_keeper(site, "node3")
    greedy = _greedy_pod("node3", site.schedulable_bytes("node3") + 32 * MIB)
    site.admin.create(greedy)
    try:
        wait_until(lambda: site.waits_for_room(greedy), SETTLE_SECONDS, "the greedy Pod to wait for room")
        site.delete_pod(keeper, grace_seconds=0)
        condition = site.wait_condition(
            POOL, "Admitted=False KeeperUnschedulable", "node3.*Insufficient memory"
        )
        (waiting,) = [one for one in site.keepers_of_pool(POOL) if not is_ready(one)]
        assert waiting["status"]["phase"] == "Pending"
        (scheduled,) = [one for one in waiting["status"]["conditions"] if one["type"] == "PodScheduled"]
        assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
        assert "224Mi of 288Mi has a place" in condition["message"]
        assert "4Gi allocatable memory: it asks for 256Mi" in condition["message"]
        assert site.figures(POOL)["admitted"] == (NODES - 1) * 64 * MIB
    finally:
        site.admin.delete("v1", "Pod", "greedy", NAMESPACE, {"gracePeriodSeconds": 0})
    site.wait_bound(POOL)
    assert _ends(site) - ends == set(), "no container of any Pod ended, least of all for its memory"


def _ends(site: RealSite) -> set[tuple[str, int, str]]:
    """Each container that ended and was started again: its Pod, how often, and why the last time."""
    return {
        (
            pod["metadata"]["name"],
            status["restartCount"],
            status["lastState"].get("terminated", {}).get("reason", ""),
        )
        for pod in site.admin.list("v1", "Pod")
        for status in pod["status"].get("containerStatuses", [])
        if status["restartCount"]
    }


def _greedy_pod(node: str, memory_bytes: int) -> JsonObject:
    container = {
        "name": "greedy",
        "image": "localhost/kvpool-neighbours:dev",
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"memory": str(memory_bytes)}},
    }
    spec = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}
    metadata = {"name": "greedy", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
