"""What is said to be wrong, when it is said, and when it is taken back."""

from __future__ import annotations

from dataclasses import replace

from kvpool.api.conditions import ConditionType
from kvpool.api.kvnode import UnitPhase
from kvpool.model.ids import ObjectKey
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool, a_store, dram

GIB = 1 << 30
UNIT = "inference.chat.dram.n0"
STORE = ObjectKey("inference", "chat")


def a_bound_pool(*, mooncake: bool = False) -> Cluster:
    cluster = a_cluster().with_nodes(nodes(2), dram(0, "64Gi"), dram(1, "64Gi"))
    budget = a_budget().giving("DRAM", "32Gi", highWatermark=90, lowWatermark=80)
    pool = a_pool().asking(DRAM="32Gi")
    if mooncake:
        pool.with_mooncake()
        cluster.with_store(a_store("inference/chat", at=cluster.now_seconds))
    return cluster.with_budget(budget.build()).with_pool(pool.build()).settle()


def said(cluster: Cluster, kind: ConditionType) -> tuple[str, str] | None:
    condition = cluster.pool_condition(kind)
    return None if condition is None else (condition.status, condition.reason)


def test_a_resize_that_an_agent_does_not_apply_is_said_after_thirty_seconds_with_both_figures() -> None:
    cluster = a_bound_pool()
    cluster.change_view("node-1", UNIT, size_bytes=4 * GIB, phase=UnitPhase.ALLOCATING, message="no space")
    cluster.step()
    assert said(cluster, ConditionType.BUDGET_NOT_APPLIED) == ("Unknown", "Applying")
    plan = cluster.wait(29.0).step()
    assert said(cluster, ConditionType.BUDGET_NOT_APPLIED) == ("Unknown", "Applying")
    assert plan.requeue_at is not None
    plan = cluster.wait(1.0).step()
    assert said(cluster, ConditionType.BUDGET_NOT_APPLIED) == ("True", "NotApplied")
    assert "NotApplied" in [event.reason.code for event in plan.events]
    condition = cluster.budget_condition(ConditionType.BUDGET_NOT_APPLIED)
    assert condition is not None
    assert condition.status == "True"
    assert "node-1 inference.chat.dram.n0: desired 8Gi of generation 1, applied" in condition.message
    assert "(Allocating: no space)" in condition.message
    cluster.agents_apply().step()
    assert said(cluster, ConditionType.BUDGET_NOT_APPLIED) is None


def test_silence_is_not_a_refusal_to_apply() -> None:
    cluster = a_bound_pool().change_agent("node-1", connected=False).wait(60.0)
    cluster.step()
    assert said(cluster, ConditionType.BUDGET_NOT_APPLIED) is None


def test_a_unit_on_another_numa_node_than_planned_is_skewed() -> None:
    cluster = a_bound_pool()
    assert said(cluster, ConditionType.NUMA_SKEW) is None
    cluster.change_view("node-2", "inference.chat.dram.n1", placement={0: 8 * GIB}).step()
    condition = cluster.pool_condition(ConditionType.NUMA_SKEW)
    assert condition is not None
    assert condition.message == (
        "node-2 inference.chat.dram.n1: planned 8Gi on NUMA node 1, found 8Gi on NUMA node 0"
    )


def test_a_placement_that_nobody_could_verify_is_no_skew() -> None:
    cluster = a_bound_pool()
    name = "inference.chat.dram.n1"
    cluster.change_view("node-2", name, placement={0: 8 * GIB}, placement_verified=False).step()
    assert said(cluster, ConditionType.NUMA_SKEW) is None
    assert cluster.figures()["bound"] == "32Gi"


def test_a_few_pages_elsewhere_are_no_skew() -> None:
    cluster = a_bound_pool().change_view("node-2", UNIT, placement={0: 15 * GIB, 1: GIB})
    cluster.step()
    assert said(cluster, ConditionType.NUMA_SKEW) is None


def test_pages_that_moved_are_passed_on() -> None:
    cluster = a_bound_pool()
    drift = (("MaySwap", "no noswap"), ("PlacementDrift", "3Gi moved to node 1"))
    cluster.change_view("node-2", UNIT, findings=drift).step()
    condition = cluster.pool_condition(ConditionType.PLACEMENT_DRIFT)
    assert condition is not None
    assert condition.message == "node-2 inference.chat.dram.n0: 3Gi moved to node 1"


def test_a_remark_is_no_drift() -> None:
    cluster = a_bound_pool().change_view("node-2", UNIT, findings=(("PlacementUnverified", ""),))
    cluster.step()
    assert said(cluster, ConditionType.PLACEMENT_DRIFT) is None


def test_a_degraded_unit_is_not_bound_and_its_agents_words_are_shown() -> None:
    cluster = a_bound_pool()
    cluster.change_view("node-2", UNIT, phase=UnitPhase.DEGRADED, message="no heartbeat of the keeper").step()
    assert said(cluster, ConditionType.BOUND) == ("False", "Binding")
    lag = cluster.pool_condition(ConditionType.BUDGET_NOT_APPLIED)
    assert lag is not None
    assert "(Degraded: no heartbeat of the keeper)" in lag.message


def test_keepers_are_believed_about_lost_contents_that_the_key_count_hides() -> None:
    cluster = a_bound_pool(mooncake=True)
    cluster.change_view("node-2", UNIT, findings=(("StoreContentsLost", "1 times so far"),)).step()
    assert said(cluster, ConditionType.STORE_CONTENTS_LOST) == ("True", "KeepersSay")


def test_a_store_that_was_never_asked_is_unknown() -> None:
    cluster = a_bound_pool(mooncake=True)
    cluster.stores.clear()
    cluster.step()
    assert said(cluster, ConditionType.STORE_REACHABLE) == ("Unknown", "NotAsked")


def test_a_store_that_does_not_answer_is_said_with_its_address_and_announced() -> None:
    cluster = a_bound_pool(mooncake=True)
    silent = replace(
        cluster.stores[STORE], reachable=False, admin_address="master.test:9003", message="connection refused"
    )
    plan = cluster.with_store(silent).step()
    condition = cluster.pool_condition(ConditionType.STORE_REACHABLE)
    assert condition is not None
    assert condition.status == "False"
    assert condition.message == "the master does not answer (master.test:9003): connection refused"
    assert said(cluster, ConditionType.READY) == ("False", "NoAnswer")
    assert [(event.event_type, event.reason.code) for event in plan.events] == [("Warning", "NoAnswer")]
    assert cluster.step().events == ()


def test_an_answer_that_is_too_old_is_unknown() -> None:
    cluster = a_bound_pool(mooncake=True)
    cluster.wait(20.0).with_store(replace(cluster.stores[STORE], asked_at=cluster.now_seconds - 11.0)).step()
    assert said(cluster, ConditionType.STORE_REACHABLE) == ("Unknown", "AnswerTooOld")


def test_a_pool_without_a_store_has_none_to_reach() -> None:
    assert said(a_bound_pool(), ConditionType.STORE_REACHABLE) is None


def test_lost_contents_are_announced_and_stay_said_for_ten_minutes() -> None:
    cluster = a_bound_pool(mooncake=True)
    lost = replace(cluster.stores[STORE], keys_lost_at=cluster.now_seconds, key_count=0)
    plan = cluster.with_store(lost).step()
    assert said(cluster, ConditionType.STORE_CONTENTS_LOST) == ("True", "MasterRestarted")
    assert "MasterRestarted" in [event.reason.code for event in plan.events]
    cluster.wait(599.0).step()
    assert said(cluster, ConditionType.STORE_CONTENTS_LOST) is not None
    cluster.wait(1.0).step()
    assert said(cluster, ConditionType.STORE_CONTENTS_LOST) is None


def fill(cluster: Cluster, percent: int) -> None:
    for name, agent in cluster.agents.items():
        for view in agent.units:
            cluster.change_view(name, view.name, used_bytes=view.size_bytes * percent // 100)
    cluster.wait(11.0).step()


def test_the_watermark_is_set_above_high_and_cleared_only_below_low() -> None:
    cluster = a_bound_pool()
    seen = []
    for percent in (85, 91, 85, 81, 79, 85):
        fill(cluster, percent)
        seen.append(cluster.budget_condition(ConditionType.ABOVE_HIGH_WATERMARK) is not None)
    assert seen == [False, True, True, True, False, False]


def test_admission_and_binding_are_announced_once() -> None:
    cluster = a_cluster().with_nodes(nodes(1)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    cluster.with_pool(a_pool().asking(DRAM="1Gi").build())
    told = []
    for _ in range(8):
        told += [(event.event_type, event.reason.code) for event in cluster.step().events]
        cluster.agents_apply()
    assert told == [("Normal", "Admitted"), ("Normal", "AllBound")]


def test_every_condition_carries_the_generation_it_was_judged_on() -> None:
    cluster = a_bound_pool().with_pool(a_pool().asking(DRAM="8Ti").build())
    cluster.step()
    assert {condition.observed_generation for condition in cluster.pool().status.conditions} == {2}
    assert cluster.pool().status.observed_generation == 2


def test_a_transition_time_moves_only_with_the_status() -> None:
    cluster = a_bound_pool()
    before = cluster.pool_condition(ConditionType.BOUND)
    fill(cluster, 50)
    assert before is not None
    after = cluster.pool_condition(ConditionType.BOUND)
    assert after is not None
    assert after.last_transition_time == before.last_transition_time


def test_a_keeper_that_found_its_room_taken_is_not_admitted_and_the_figures_say_so() -> None:
    cluster = a_bound_pool()
    name, keeper = next((name, pod) for name, pod in cluster.keepers().items() if pod.node == "node-2")
    waits = replace(
        keeper, node="", phase="Pending", ready=False, unschedulable="0/2 nodes: 1 Insufficient memory"
    )
    cluster.pods[keeper.key] = waits
    unit = UNIT if "-n0-" in name else "inference.chat.dram.n1"
    cluster.change_view("node-2", unit, phase=UnitPhase.PREPARING, resident_bytes=0).step()
    assert said(cluster, ConditionType.ADMITTED) == ("False", "KeeperUnschedulable")
    assert said(cluster, ConditionType.READY) == ("False", "KeeperUnschedulable")
    condition = cluster.pool_condition(ConditionType.ADMITTED)
    assert condition is not None
    assert condition.message == (
        "24Gi of 32Gi has a place; keepers without one: 1, the first on node-2, of 128Gi allocatable memory: "
        "it asks for 8384Mi, and the scheduler says: 0/2 nodes: 1 Insufficient memory"
    )
    assert cluster.figures()["admitted"] == "24Gi"
    assert name in cluster.keepers(), "nothing is deleted on it"
    cluster.pods[keeper.key] = keeper
    cluster.step()
    assert said(cluster, ConditionType.ADMITTED) == ("True", "Admitted")
    assert cluster.figures()["admitted"] == "32Gi"
