"""Declared, admitted, bound, used, foreign, unknown: where each figure comes from, and how old it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.api.conditions import ConditionType
from kvpool.api.kvnode import UnitPhase
from kvpool.model.decisions import WriteStatus
from kvpool.model.ids import ObjectKey
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pod, a_pool, a_segment, a_store

GIB = 1 << 30
UNIT = "inference.chat.dram.n0"


def a_bound_pool() -> Cluster:
    cluster = a_cluster().with_nodes(nodes(2)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    cluster.with_store(a_store("inference/chat", at=cluster.now_seconds))
    return cluster.with_pool(a_pool().with_mooncake().asking(DRAM="32Gi").build()).settle()


def with_segments(cluster: Cluster, **used: str) -> Cluster:
    """The store knows our units' segments, with these bytes in use by node number."""
    ours = [
        a_segment(view.segment, "16Gi", used.get(name.replace("-", "_"), "0"))
        for name, agent in cluster.agents.items()
        for view in agent.units
    ]
    return cluster.with_store(a_store("inference/chat", *ours, at=cluster.now_seconds))


def status_writes(cluster: Cluster) -> list[tuple[str, str]]:
    return [
        (action.kind, str(action.key))
        for action in cluster.decide().actions
        if isinstance(action, WriteStatus)
    ]


@pytest.mark.parametrize("phase", [phase for phase in UnitPhase if phase is not UnitPhase.BOUND])
def test_only_what_an_agent_calls_bound_counts_as_bound(phase: UnitPhase) -> None:
    cluster = a_bound_pool().change_view("node-1", UNIT, phase=phase)
    cluster.step()
    assert cluster.figures()["bound"] == "16Gi"
    assert cluster.figures()["admitted"] == "32Gi"


def test_what_is_not_backed_by_pages_is_not_bound() -> None:
    cluster = a_bound_pool().change_view("node-1", UNIT, resident_bytes=6 * GIB)
    cluster.step()
    assert cluster.figures()["bound"] == "22Gi"


def test_a_report_of_an_older_generation_counts_for_nothing() -> None:
    cluster = a_bound_pool().change_view("node-1", UNIT, generation=7)
    cluster.step()
    assert cluster.figures()["bound"] == "16Gi"


def test_bytes_of_a_node_whose_report_is_too_old_are_unknown_not_bound_and_not_free() -> None:
    cluster = a_bound_pool().change_agent("node-1", connected=False).wait(11.0)
    cluster.step()
    assert cluster.figures()["unknown"] == "16Gi"
    assert cluster.figures()["bound"] == "16Gi"
    assert cluster.pool().status.nodes.model_dump() == {"bound": 1, "short": 0, "stale": 1}
    bound = cluster.pool_condition(ConditionType.BOUND)
    assert bound is not None
    assert (bound.status, bound.reason) == ("Unknown", "ReportsTooOld")


def test_a_report_is_believed_for_three_periods() -> None:
    cluster = a_bound_pool().change_agent("node-1", connected=False).wait(10.0)
    cluster.step()
    assert cluster.figures()["unknown"] == "0"


def test_the_store_is_believed_about_use_before_the_keeper() -> None:
    cluster = with_segments(a_bound_pool(), node_1="3Gi", node_2="4Gi")
    cluster.change_view("node-1", UNIT, used_bytes=99)
    cluster.wait(11.0).step()
    assert cluster.figures()["used"] == "7Gi"
    assert cluster.figures()["foreign"] == "0"


def test_the_keeper_is_believed_about_use_while_the_store_is_silent() -> None:
    cluster = with_segments(a_bound_pool(), node_1="3Gi", node_2="4Gi")
    cluster.stores[ObjectKey("inference", "chat")] = replace(
        cluster.stores[ObjectKey("inference", "chat")], reachable=False
    )
    cluster.change_view("node-1", UNIT, used_bytes=GIB).change_view("node-2", UNIT, used_bytes=None)
    cluster.wait(11.0).step()
    assert cluster.figures()["used"] == "1Gi"
    ready = cluster.pool_condition(ConditionType.READY)
    assert ready is not None
    assert "1 units do not say" in ready.message


def test_a_segment_that_two_units_share_is_used_once() -> None:
    cluster = a_bound_pool()
    shared = cluster.agents["node-1"].units[0].segment
    cluster.change_view("node-2", UNIT, segment=shared)
    cluster.with_store(a_store("inference/chat", a_segment(shared, "32Gi", "5Gi"), at=cluster.now_seconds))
    cluster.wait(11.0).step()
    assert cluster.figures()["used"] == "5Gi"


def test_segments_of_others_are_foreign_and_named_by_node() -> None:
    cluster = with_segments(a_bound_pool())
    cluster.with_pod(a_pod("engine-1", "node-2", "1Gi", address="pod-1"))
    store = cluster.stores[ObjectKey("inference", "chat")]
    others = (
        a_segment("host-node-1:17001", "4Gi"),
        a_segment("pod-1:17001", "2Gi"),
        a_segment("far:1", "1Gi"),
    )
    cluster.with_store(replace(store, segments=(*store.segments, *others)))
    cluster.step()
    assert cluster.figures()["foreign"] == "7Gi"
    reachable = cluster.pool_condition(ConditionType.STORE_REACHABLE)
    assert reachable is not None
    assert (
        reachable.message == "the master answers; others brought 7Gi: elsewhere 1Gi, node-1 4Gi, node-2 2Gi"
    )
    asked = "2026-01-02T03:00:00.000Z"
    assert [entry.model_dump() for entry in cluster.pool().status.foreign] == [
        {"node": node, "tier": "DRAM", "size": size, "segments": 1, "observed_at": asked}
        for node, size in (("node-1", "4Gi"), ("node-2", "2Gi"), ("", "1Gi"))
    ]
    budget = cluster.budgets["gpu"].status.tiers[0]
    assert (budget.foreign, budget.bound, budget.declared) == ("6Gi", "32Gi", "64Gi")


def test_a_segment_that_two_pools_see_is_foreign_once_to_the_budget() -> None:
    cluster = a_bound_pool()
    cluster.with_pool(a_pool("second").with_mooncake().build())
    for pool in ("inference/chat", "inference/second"):
        cluster.with_store(a_store(pool, a_segment("host-node-1:17001", "4Gi"), at=cluster.now_seconds))
    cluster.step()
    assert cluster.budgets["gpu"].status.tiers[0].foreign == "4Gi"
    assert cluster.figures(name="second")["foreign"] == "4Gi"


def test_our_own_segments_are_not_foreign_to_a_leader_that_has_heard_nobody_yet() -> None:
    cluster = with_segments(a_bound_pool())
    cluster.agents.clear()
    cluster.leading_since = cluster.now_seconds
    cluster.step()
    assert cluster.figures()["foreign"] == "0"


def test_an_observing_pool_shows_what_others_brought() -> None:
    cluster = a_cluster().with_nodes(nodes(1))
    cluster.with_pool(a_pool().in_mode("Observe").with_mooncake().build())
    cluster.with_store(a_store("inference/chat", a_segment("host-node-1:1", "4Gi"), at=cluster.now_seconds))
    cluster.settle()
    assert cluster.figures() == {
        "declared": "0",
        "admitted": "0",
        "bound": "0",
        "used": "0",
        "foreign": "4Gi",
        "unknown": "0",
    }
    ready = cluster.pool_condition(ConditionType.READY)
    assert ready is not None
    assert (ready.status, ready.reason) == ("True", "Observe")


def test_figures_are_as_old_as_the_oldest_report_behind_them() -> None:
    cluster = a_bound_pool()
    cluster.wait(20.0).change_agent("node-2", reported_at=cluster.now_seconds - 4.0).step()
    assert cluster.pool().status.tiers[0].observed_at == "2026-01-02T03:00:16.000Z"


def test_more_used_than_bound_is_said_not_hidden() -> None:
    cluster = with_segments(a_bound_pool(), node_1="40Gi")
    cluster.wait(11.0).step()
    ready = cluster.pool_condition(ConditionType.READY)
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "FiguresDisagree")
    assert "DRAM: used 40Gi is above bound 32Gi" in ready.message


def test_an_idle_world_is_written_nothing() -> None:
    cluster = a_bound_pool()
    for _ in range(10):
        assert cluster.wait(0.9).step().actions == ()


def test_use_and_age_are_written_at_most_every_ten_seconds() -> None:
    cluster = with_segments(a_bound_pool())
    written = 0
    for second in range(60):
        with_segments(cluster, node_1=f"{second}Mi")
        written += ("KVPool", "inference/chat") in status_writes(cluster.wait(1.0))
        cluster.step()
    assert written == 6


def test_figures_from_a_clock_that_ran_ahead_are_replaced_with_the_next_change() -> None:
    cluster = with_segments(a_bound_pool()).settle()
    (tier,) = cluster.pool().status.tiers
    ahead = tier.model_copy(update={"observed_at": "2026-01-02T09:00:00Z"})
    status = cluster.pool().status.model_copy(update={"tiers": (ahead,)})
    cluster.pools[ObjectKey("inference", "chat")] = cluster.pool().model_copy(update={"status": status})
    with_segments(cluster, node_1="5Mi").wait(1.0).step()
    assert cluster.figures()["used"] == "5Mi"


def test_a_figure_that_people_act_on_is_written_at_once() -> None:
    cluster = with_segments(a_bound_pool()).settle()
    store = cluster.stores[ObjectKey("inference", "chat")]
    cluster.with_store(replace(store, segments=(*store.segments, a_segment("far:1", "1Gi"))))
    assert ("KVPool", "inference/chat") in status_writes(cluster)


def test_fields_that_others_enforce_are_listed() -> None:
    cluster = a_bound_pool()
    assert {entry.field: entry.by for entry in cluster.pool().status.enforcement} == {
        "spec.store.mooncake.metadataServer": "Store",
        "spec.store.mooncake.transport": "Store",
    }


def test_the_segments_of_others_on_one_node_are_added_up_and_as_old_as_the_store_s_answer() -> None:
    cluster = a_bound_pool()
    others = (a_segment("host-node-1:17001", "4Gi"), a_segment("host-node-1:17002", "3Gi"))
    cluster.with_store(a_store("inference/chat", *others, at=cluster.now_seconds - 3.0)).step()
    (entry,) = cluster.pool().status.foreign
    assert (entry.node, entry.size, entry.segments) == ("node-1", "7Gi", 2)
    assert entry.observed_at == "2026-01-02T02:59:57.000Z"


def test_a_store_that_does_not_answer_says_nothing_of_others() -> None:
    cluster = a_bound_pool()
    segment = a_segment("host-node-1:17001", "4Gi")
    cluster.with_store(a_store("inference/chat", segment, at=cluster.now_seconds - 11.0)).step()
    assert cluster.pool().status.foreign == ()


def test_of_more_nodes_than_a_status_can_list_those_with_the_most_bytes_are_named() -> None:
    cluster = a_bound_pool().with_nodes([f"far-{number}" for number in range(70)], zone="far")
    others = [a_segment(f"host-far-{number}:1", f"{number + 1}Gi") for number in range(70)]
    cluster.with_store(a_store("inference/chat", *others, at=cluster.now_seconds)).step()
    named = [entry.node for entry in cluster.pool().status.foreign]
    assert named == [f"far-{number}" for number in range(69, 5, -1)]
    assert cluster.figures()["foreign"] == f"{sum(range(1, 71))}Gi", "the sum is of all"


def test_the_age_of_foreign_bytes_alone_is_no_reason_for_a_write() -> None:
    cluster = a_bound_pool()
    segment = a_segment("host-node-1:17001", "4Gi")
    cluster.with_store(a_store("inference/chat", segment, at=cluster.now_seconds)).settle()
    cluster.wait(2.0)
    assert ("KVPool", "inference/chat") not in status_writes(cluster)
    more = a_segment("host-node-1:17001", "5Gi")
    cluster.with_store(a_store("inference/chat", more, at=cluster.now_seconds))
    assert ("KVPool", "inference/chat") in status_writes(cluster)
