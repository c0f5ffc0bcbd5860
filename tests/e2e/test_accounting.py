"""Who pays for the memory: keepers' cgroups, the scheduler's sums; kubelet's and kvpool's figures agree."""

from __future__ import annotations

from pathlib import Path

from devcluster.rest import JsonObject
from tests.e2e.conftest import NODES, POOL
from tests.e2e.keepers import memory_keeper
from tests.e2e.site import SSD_FOLDER, RealSite
from tests.harness.objects import MIB, NAMESPACE, SETTLE_SECONDS
from tests.harness.waiting import wait_until

AGREEMENT = 0.01
SSD_TIER = {"name": "SSD", "perNode": "128Mi", "reserve": "0", "path": SSD_FOLDER}
MEMORY = Path("/sys/fs/cgroup/memory")


def _cgroup(site: RealSite, pod: JsonObject) -> Path:
    meta, node = pod["metadata"], pod["spec"]["nodeName"]
    (folder,) = MEMORY.glob(f"{site.cluster.name}/{node}/**/pod{meta['uid']}")
    return folder


def _statistics(site: RealSite, pod: JsonObject) -> dict[str, int]:
    """memory.stat of a Pod's cgroup, as the kernel has it."""
    lines = (_cgroup(site, pod) / "memory.stat").read_text().splitlines()
    return {name: int(value) for name, value in (line.split() for line in lines)}


def _kernel_bytes(site: RealSite, pod: JsonObject) -> int:
    """What the kernel itself uses for a Pod; kubelet counts it."""
    file = _cgroup(site, pod) / "memory.kmem.usage_in_bytes"
    return int(file.read_text()) if file.exists() else 0


def test_the_pages_of_a_unit_are_charged_to_its_keeper_and_to_nobody_else(site: RealSite) -> None:
    for node in site.nodes:
        unit = site.unit(node, POOL)["sizeBytes"]
        assert _statistics(site, memory_keeper(site, node))["total_shmem"] == unit
        (agent,) = site.pods_of("agent", node)
        assert _statistics(site, agent)["total_shmem"] < MIB


def test_what_kubelet_and_kvpool_say_of_a_keeper_s_memory_agrees(site: RealSite) -> None:
    for node in site.nodes:
        keeper = memory_keeper(site, node)
        unit = site.unit(node, POOL)

        def agree(node: str = node, keeper: JsonObject = keeper, unit: JsonObject = unit) -> bool:
            told = site.reported(node, unit["name"])["residentBytes"]
            statistics = _statistics(site, keeper)
            beside = statistics["total_rss"] + statistics["total_cache"] - statistics["total_shmem"]
            beside += _kernel_bytes(site, keeper)
            return bool(abs(site.kubelet_says(keeper) - beside - told) <= AGREEMENT * told)

        wait_until(agree, SETTLE_SECONDS, f"kubelet and kvpool to agree on {node}", poll_seconds=1.0)


def test_a_pool_that_fits_no_node_beside_its_pods_is_refused_with_figures(site: RealSite) -> None:
    site.budget({"name": "DRAM", "perNode": "8Gi", "reserve": "0"}, SSD_TIER)
    try:
        site.pool("large", DRAM="6Gi", nodeSelector=_only("node3"))
        condition = site.wait_condition("large", "Admitted=False NotEnoughRoom", "schedulable of its")
        assert "6Gi of DRAM asked" in condition["message"]
        assert not any(site.decided(node, "large") for node in site.nodes)
    finally:
        site.delete_pool_object("large")
        site.budget()


def _only(node: str) -> JsonObject:
    return {"matchLabels": {"kubernetes.io/hostname": node}}


def test_a_keeper_whose_room_was_taken_waits_and_the_pool_says_so_instead_of_dying(site: RealSite) -> None:
    keeper = memory_keeper(site, "node3")
    free = site.schedulable_bytes("node3")
    greedy = _greedy_pod("node3", free + 32 * MIB)
    site.admin.create(greedy)
    try:
        wait_until(lambda: site.waits_for_room(greedy), SETTLE_SECONDS, "the greedy Pod to wait for room")
        site.delete_pod(keeper, grace_seconds=0)
        condition = site.wait_condition(
            POOL, "Admitted=False KeeperUnschedulable", "node3.*Insufficient memory"
        )
        assert "has a place" in condition["message"]
        assert site.figures(POOL)["admitted"] == (NODES - 1) * 64 * MIB
    finally:
        site.admin.delete("v1", "Pod", "greedy", NAMESPACE, {"gracePeriodSeconds": 0})
    site.wait_bound(POOL)


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
