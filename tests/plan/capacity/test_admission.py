"""Who gets memory, how much, where, and what those are told who get none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.api.conditions import ConditionType
from kvpool.api.kvnode import UnitPhase
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pod, a_pool, a_store, a_supernode, cxl, disk, dram

GIB = 1 << 30
MIB = 1 << 20


def admitted(cluster: Cluster, name: str = "chat") -> tuple[str, str, str]:
    condition = cluster.pool_condition(ConditionType.ADMITTED, name)
    assert condition is not None
    return condition.status, condition.reason, condition.message


def four_nodes(per_node: str = "32Gi", **fields: str) -> Cluster:
    return a_cluster().with_nodes(nodes(4)).with_budget(a_budget().giving("DRAM", per_node, **fields).build())


def test_a_pool_is_spread_evenly_over_the_nodes() -> None:
    cluster = four_nodes().with_pool(a_pool().asking(DRAM="64Gi").build()).settle()
    assert [cluster.bytes_on(node) for node in nodes(4)] == [16 * GIB] * 4
    assert admitted(cluster) == ("True", "Admitted", "64Gi of DRAM")
    assert cluster.figures() == {
        "declared": "64Gi",
        "admitted": "64Gi",
        "bound": "64Gi",
        "used": "0",
        "foreign": "0",
        "unknown": "0",
    }


def test_what_does_not_divide_is_spread_in_whole_mebibytes_and_nothing_is_lost() -> None:
    cluster = four_nodes().with_pool(a_pool().asking(DRAM="1Gi").build())
    cluster.with_nodes(["node-5", "node-6"]).settle()
    sizes = [cluster.bytes_on(node) for node in nodes(6)]
    assert sum(sizes) == GIB
    assert all(size % MIB == 0 for size in sizes)
    assert max(sizes) - min(sizes) == MIB


def test_a_size_that_is_not_whole_mebibytes_is_admitted_rounded_down() -> None:
    cluster = four_nodes().with_pool(a_pool().asking(DRAM="2147483649").build()).settle()
    assert cluster.figures()["declared"] == "2147483649"
    assert cluster.figures()["bound"] == "2Gi"


def test_a_pool_larger_than_its_budgets_gets_nothing_and_reads_both_figures() -> None:
    cluster = four_nodes().with_pool(a_pool().asking(DRAM="200Gi").build()).settle()
    assert cluster.units() == {}
    status, reason, message = admitted(cluster)
    assert (status, reason) == ("False", "NotEnoughRoom")
    assert "200Gi of DRAM asked, room for 128Gi on 4 of 4 nodes" in message
    assert "left of budget gpu's 32Gi per node" in message


def test_a_pool_larger_than_the_media_after_reserve_gets_nothing() -> None:
    cluster = a_cluster().with_nodes(nodes(2), dram(0, "64Gi", others="10Gi"))
    cluster.with_budget(a_budget().giving("DRAM", "60Gi", reserve="8Gi").build())
    cluster.with_pool(a_pool().asking(DRAM="93Gi").build()).settle()
    assert cluster.units() == {}
    assert "room for 92Gi" in admitted(cluster)[2]
    assert "46Gi free on its media after the reserve of 8Gi" in admitted(cluster)[2]


def test_a_keeper_that_kubernetes_could_not_schedule_is_not_planned() -> None:
    cluster = a_cluster().with_nodes(nodes(2), allocatable="40Gi")
    cluster.with_budget(a_budget().giving("DRAM", "48Gi").build())
    cluster.with_pod(a_pod("engine", "node-1", "30Gi"))
    cluster.with_pool(a_pool().asking(DRAM="60Gi").build()).settle()
    assert cluster.units() == {}
    message = admitted(cluster)[2]
    assert "node-1: 9.81Gi schedulable of its 40Gi allocatable memory" in message
    assert "node-2: 39.81Gi schedulable of its 40Gi allocatable memory" in message


def test_a_pod_that_ended_requests_no_memory() -> None:
    cluster = a_cluster().with_nodes(nodes(1), allocatable="20Gi")
    cluster.with_budget(a_budget().giving("DRAM", "48Gi").build())
    cluster.with_pod(replace(a_pod("job", "node-1", "19Gi"), phase="Succeeded"))
    cluster.with_pool(a_pool().asking(DRAM="10Gi").build()).settle()
    assert cluster.bytes_on("node-1") == 10 * GIB


def test_a_full_node_leaves_its_share_to_the_others() -> None:
    cluster = four_nodes()
    cluster.with_nodes(["node-1"], dram(0, "64Gi", others="60Gi"))
    cluster.with_pool(a_pool().asking(DRAM="64Gi").build()).settle()
    assert [cluster.bytes_on(node) for node in nodes(4)] == [4 * GIB, 20 * GIB, 20 * GIB, 20 * GIB]


def test_the_older_pool_is_asked_first() -> None:
    cluster = four_nodes()
    cluster.with_pool(a_pool("young").born("2026-01-02T00:00:00Z").asking(DRAM="100Gi").build())
    cluster.with_pool(a_pool("old").born("2026-01-01T00:00:00Z").asking(DRAM="100Gi").build())
    cluster.settle()
    assert admitted(cluster, "old")[0] == "True"
    assert admitted(cluster, "young")[:2] == ("False", "NotEnoughRoom")


def test_of_two_pools_of_one_age_the_first_by_name_is_asked_first() -> None:
    cluster = four_nodes()
    for name in ("b", "a"):
        cluster.with_pool(a_pool(name).asking(DRAM="100Gi").build())
    cluster.settle()
    assert (admitted(cluster, "a")[0], admitted(cluster, "b")[0]) == ("True", "False")


def test_an_older_pool_never_takes_what_a_younger_one_was_given() -> None:
    cluster = four_nodes()
    cluster.with_pool(a_pool("young").born("2026-01-02T00:00:00Z").asking(DRAM="100Gi").build()).settle()
    before = cluster.units("young")
    cluster.with_pool(a_pool("old").born("2026-01-01T00:00:00Z").asking(DRAM="100Gi").build()).settle()
    assert cluster.units("young") == before
    assert admitted(cluster, "old")[:2] == ("False", "NotEnoughRoom")


def test_a_pool_that_waits_does_not_hold_back_one_that_fits() -> None:
    cluster = four_nodes()
    cluster.with_pool(a_pool("huge").asking(DRAM="1Ti").build())
    cluster.with_pool(a_pool("small").asking(DRAM="8Gi").build()).settle()
    assert admitted(cluster, "small")[0] == "True"


def test_a_new_pool_of_which_one_tier_does_not_fit_gets_nothing_of_any_tier() -> None:
    cluster = a_cluster().with_nodes(nodes(2), dram(0, "64Gi"), disk("/mnt/kv", "100Gi"))
    budget = a_budget().giving("DRAM", "32Gi").giving("SSD", "50Gi", path="/mnt/kv")
    cluster.with_budget(budget.build()).with_pool(a_pool().asking(DRAM="32Gi", SSD="200Gi").build()).settle()
    assert cluster.units() == {}
    assert "200Gi of SSD asked, room for 100Gi" in admitted(cluster)[2]


def test_a_bad_edit_keeps_what_was_admitted() -> None:
    cluster = four_nodes().with_pool(a_pool().asking(DRAM="64Gi").build()).settle()
    before = cluster.units()
    cluster.with_pool(a_pool().asking(DRAM="64Ti").build()).settle()
    assert cluster.units() == before
    status, reason, message = admitted(cluster)
    assert (status, reason) == ("False", "NotEnoughRoom")
    assert message.endswith("64Gi stay as they are")


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        ({"tiers": [{"name": "DRAM", "size": "1Ki"}]}, "SizeInvalid", "size 1Ki is below the smallest, 1Mi"),
        ({"tiers": [{"name": "DRAM", "size": "0"}]}, "SizeInvalid", "size 0 is below the smallest"),
        ({"tiers": [{"name": "DRAM", "size": "0.3"}]}, "SizeInvalid", "0.3 is not a size in whole bytes"),
        ({"tiers": [{"name": "DRAM", "size": "1Gi"}] * 2}, "TierInvalid", "names a tier twice: DRAM, DRAM"),
        ({"store": {}}, "StoreInvalid", "names 0 stores"),
        ({"store": {"none": {}, "mooncake": {"master": {"address": "m"}}}}, "StoreInvalid", "names 2 stores"),
        ({"cohort": "chat"}, "NotSupported", "spec.cohort is not supported yet"),
    ],
)
def test_a_spec_that_cannot_be_granted_is_refused_and_keeps_what_was_admitted(
    spec: dict[str, object], reason: str, words: str
) -> None:
    cluster = four_nodes().with_pool(a_pool().asking(DRAM="64Gi").build()).settle()
    before = cluster.units()
    cluster.with_pool(a_pool().asking(DRAM="32Gi").with_spec(**spec).build()).settle()
    assert cluster.units() == before
    assert admitted(cluster)[:2] == ("False", reason)
    assert words in admitted(cluster)[2]


def test_ssd_units_lie_in_the_budgets_folder_and_cost_no_schedulable_memory() -> None:
    cluster = a_cluster().with_nodes(nodes(2), disk("/mnt/kv", "100Gi"), allocatable="1Gi")
    cluster.with_budget(a_budget().giving("SSD", "50Gi", path="/mnt/kv/pool", reserve="10Gi").build())
    cluster.with_pool(a_pool().asking(SSD="60Gi").build()).settle()
    units = list(cluster.units().values())
    assert [unit.size_bytes for unit in units] == [30 * GIB, 30 * GIB]
    assert {unit.path for unit in units} == {"/mnt/kv/pool"}
    assert {unit.name for unit in units} == {"inference.chat.ssd.n-1"}


def test_a_folder_on_no_medium_is_named_with_what_there_is() -> None:
    cluster = a_cluster().with_nodes(nodes(1), disk("/mnt/other", "100Gi"))
    cluster.with_budget(a_budget().giving("SSD", "50Gi", path="/mnt/kv").build())
    cluster.with_pool(a_pool().asking(SSD="10Gi").build()).settle()
    words = "its agent reports no file medium for SSD at /mnt/kv (it has file/ext4:/mnt/other)"
    assert words in admitted(cluster)[2]


def test_a_budget_above_its_volume_is_refused_with_the_two_figures() -> None:
    cluster = a_cluster().with_nodes(nodes(1), disk("/mnt/kv", "200Gi"))
    cluster.with_budget(a_budget().giving("SSD", "100Gi", path="/mnt/kv", volumeLimit="80Gi").build())
    cluster.with_pool(a_pool().asking(SSD="10Gi").build()).settle()
    assert cluster.units() == {}
    ready = cluster.budget_condition(ConditionType.READY)
    assert ready is not None
    assert ready.reason == "VolumeLimitExceeded"
    assert "perNode 100Gi and reserve 0 together exceed volumeLimit 80Gi" in ready.message
    cluster.with_budget(a_budget().giving("SSD", "70Gi", path="/mnt/kv", volumeLimit="80Gi").build()).settle()
    assert cluster.bytes_on("node-1") == 10 * GIB


def test_units_are_laid_over_every_numa_node_under_spread() -> None:
    cluster = a_cluster().with_nodes(nodes(1), dram(0, "64Gi"), dram(1, "64Gi"))
    cluster.with_budget(a_budget().giving("DRAM", "100Gi", reserve="8Gi").build())
    cluster.with_pool(a_pool().asking(DRAM="40Gi").build()).settle()
    sizes = {unit.numa_node: unit.size_bytes for unit in cluster.units().values()}
    assert sizes == {0: 20 * GIB, 1: 20 * GIB}
    assert {name for _, name in cluster.units()} == {"inference.chat.dram.n0", "inference.chat.dram.n1"}


def test_the_reserve_is_kept_on_each_numa_node_in_proportion() -> None:
    cluster = a_cluster().with_nodes(nodes(1), dram(0, "96Gi"), dram(1, "32Gi"), allocatable="1Ti")
    cluster.with_budget(a_budget().giving("DRAM", "200Gi", reserve="16Gi").build())
    cluster.with_pool(a_pool().asking(DRAM="112Gi").build()).settle()
    sizes = {unit.numa_node: unit.size_bytes for unit in cluster.units().values()}
    assert sizes == {0: 84 * GIB, 1: 28 * GIB}


def test_local_uses_the_numa_node_with_the_most_free_bytes_and_stays_there() -> None:
    cluster = a_cluster().with_nodes(nodes(1), dram(0, "64Gi", others="20Gi"), dram(1, "64Gi"))
    cluster.with_budget(a_budget().giving("DRAM", "60Gi", numaPolicy="Local").build())
    cluster.with_pool(a_pool().asking(DRAM="30Gi").build()).settle()
    assert {unit.numa_node for unit in cluster.units().values()} == {1}
    cluster.with_pool(a_pool().asking(DRAM="40Gi").build()).settle()
    assert {unit.numa_node: unit.size_bytes for unit in cluster.units().values()} == {1: 40 * GIB}


def test_nodes_uses_the_numa_nodes_that_the_budget_names() -> None:
    cluster = a_cluster().with_nodes(nodes(1), cxl(2, "64Gi"), cxl(3, "64Gi"), cxl(4, "64Gi"))
    cluster.with_budget(a_budget().giving("CXL", "90Gi", numaPolicy="Nodes", numaNodes=[2, 4]).build())
    cluster.with_pool(a_pool().asking(CXL="60Gi").build()).settle()
    assert {unit.numa_node for unit in cluster.units().values()} == {2, 4}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ("not ready", "its Node is not Ready"),
        ("silent", "its agent's last report is from"),
        ("finding", "verify found unit ops.other.dram.n0 degraded: PlacementDrift"),
        ("maintenance", "Supernode rack lists it for maintenance"),
    ],
)
def test_a_node_in_doubt_takes_nothing_new(spoil: str, words: str) -> None:
    cluster = four_nodes().with_pool(a_pool("other", "ops").asking(DRAM="8Gi").build()).settle()
    match spoil:
        case "not ready":
            cluster.nodes["node-2"] = replace(cluster.nodes["node-2"], ready=False)
        case "silent":
            cluster.change_agent("node-2", reported_at=cluster.now_seconds - 11.0, connected=False)
        case "finding":
            drift = (("PlacementDrift", ""),)
            cluster.change_view("node-2", "ops.other.dram.n0", phase=UnitPhase.DEGRADED, findings=drift)
        case _:
            cluster.with_supernode(a_supernode("rack", {}, maintenance=("node-2",)))
    cluster.with_pool(a_pool().asking(DRAM="60Gi").build())
    cluster.step()
    assert [cluster.bytes_on(node) for node in nodes(4)] == [20 * GIB, 0, 20 * GIB, 20 * GIB]
    assert f"not on node-2: {words}" in admitted(cluster)[2]


def test_a_remark_about_a_bound_unit_keeps_nothing_off_its_node() -> None:
    cluster = four_nodes().with_pool(a_pool("other", "ops").asking(DRAM="8Gi").build()).settle()
    remark = (("PlacementUnverified", "no privileges"),)
    cluster.change_view("node-2", "ops.other.dram.n0", findings=remark)
    cluster.with_pool(a_pool().asking(DRAM="60Gi").build()).step()
    assert cluster.bytes_on("node-2") == 15 * GIB


def test_a_pool_stays_on_the_nodes_it_selects() -> None:
    cluster = four_nodes().with_nodes(["node-5"], zone="b")
    cluster.with_pool(a_pool().on_nodes(zone="b").asking(DRAM="8Gi").build()).settle()
    assert cluster.bytes_on("node-5") == 8 * GIB


def test_a_pool_stays_in_the_supernodes_it_selects() -> None:
    cluster = four_nodes().with_nodes(["node-5"], zone="b").with_supernode(a_supernode("b", {"zone": "b"}))
    selector = {"matchLabels": {"kvpool.dev/supernode": "b"}}
    cluster.with_pool(a_pool().asking(DRAM="8Gi").with_spec(supernodes=selector).build()).settle()
    assert cluster.bytes_on("node-5") == 8 * GIB


def test_units_stay_on_nodes_that_an_edited_pool_no_longer_selects() -> None:
    cluster = four_nodes().with_pool(a_pool().asking(DRAM="8Gi").build()).settle()
    before = cluster.units()
    cluster.with_pool(a_pool().on_nodes(zone="nowhere").asking(DRAM="8Gi").build()).settle()
    assert cluster.units() == before
    assert "units stay on nodes that the pool no longer selects" in admitted(cluster)[2]


def test_of_two_budgets_for_a_node_the_first_by_name_rules_and_the_other_is_told() -> None:
    cluster = a_cluster().with_nodes(nodes(2))
    cluster.with_budget(a_budget("a").giving("DRAM", "8Gi").build())
    cluster.with_budget(a_budget("b").giving("DRAM", "48Gi").build())
    cluster.with_pool(a_pool().asking(DRAM="17Gi").build()).settle()
    assert "room for 16Gi" in admitted(cluster)[2]
    told = cluster.budget_condition(ConditionType.READY, "b")
    assert told is not None
    assert (told.status, told.reason) == ("False", "Overruled")
    assert "budget a rules DRAM on node-1, node-2" in told.message


def test_without_any_budget_the_pool_is_told_so() -> None:
    cluster = a_cluster().with_nodes(nodes(2)).with_pool(a_pool().asking(DRAM="1Gi").build()).settle()
    assert "no TierBudget rules DRAM on any node that the pool selects" in admitted(cluster)[2]


def test_nothing_is_admitted_before_the_store_has_an_address() -> None:
    pool = a_pool().asking(DRAM="32Gi")
    pool = pool.with_spec(store={"mooncake": {"master": {"serviceRef": {"name": "mastr"}}}})
    cluster = a_cluster().with_nodes(nodes(2)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    cluster.with_pool(pool.build()).settle()
    assert cluster.units() == {}
    condition = cluster.pool_condition(ConditionType.ADMITTED)
    assert condition is not None
    assert (condition.status, condition.reason) == ("Unknown", "StoreUnknown")
    assert "Service inference/mastr" in condition.message
    assert "serviceRef" in condition.message
    cluster.with_store(a_store("inference/chat", at=cluster.now_seconds)).settle()
    assert sum(unit.size_bytes for unit in cluster.units().values()) == 32 << 30
