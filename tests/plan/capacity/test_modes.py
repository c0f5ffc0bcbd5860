"""Observe looks, Recommend says, Enforce acts; caps and pauses hold everything back."""

from __future__ import annotations

import pytest

from kvpool.api.common import Mode
from kvpool.api.conditions import ConditionType
from kvpool.model.decisions import CreateKeeper, CreateKVNode, DeleteKeeper, Plan, SetUnits, WriteStatus
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool

GIB = 1 << 30


def a_world(pool_mode: str = "Enforce", budget_mode: str = "Enforce") -> Cluster:
    cluster = a_cluster().with_nodes(nodes(2))
    cluster.with_budget(a_budget().in_mode(budget_mode).giving("DRAM", "32Gi").build())
    return cluster.with_pool(a_pool().in_mode(pool_mode).asking(DRAM="16Gi").build())


def acts(plan: Plan) -> bool:
    return any(isinstance(action, SetUnits | CreateKeeper | DeleteKeeper) for action in plan.actions)


def withheld(cluster: Cluster) -> tuple[str, str, str]:
    condition = cluster.pool_condition(ConditionType.ACTION_WITHHELD)
    assert condition is not None
    return condition.status, condition.reason, condition.message


@pytest.mark.parametrize(
    ("pool_mode", "budget_mode", "cap", "acting"),
    [
        ("Enforce", "Enforce", Mode.ENFORCE, True),
        ("Recommend", "Enforce", Mode.ENFORCE, False),
        ("Observe", "Enforce", Mode.ENFORCE, False),
        ("Enforce", "Recommend", Mode.ENFORCE, False),
        ("Enforce", "Observe", Mode.ENFORCE, False),
        ("Enforce", "Enforce", Mode.RECOMMEND, False),
        ("Enforce", "Enforce", Mode.OBSERVE, False),
    ],
)
def test_only_pool_budget_and_cap_together_in_enforce_act(
    pool_mode: str, budget_mode: str, cap: Mode, acting: bool
) -> None:
    cluster = a_world(pool_mode, budget_mode)
    cluster.mode_cap = cap
    plans = [cluster.step() for _ in range(5)]
    assert any(acts(plan) for plan in plans) is acting


def test_observe_writes_kvnodes_and_statuses_and_nothing_else() -> None:
    cluster = a_world("Observe", "Observe")
    for _ in range(5):
        assert all(isinstance(action, WriteStatus | CreateKVNode) for action in cluster.step().actions)
        cluster.agents_apply()
    assert withheld(cluster) == (
        "False",
        "ModeObserve",
        "the pool asks for no action: mode Observe looks only",
    )


def test_recommend_says_what_it_would_do() -> None:
    cluster = a_world("Recommend").settle()
    would = "would bind 16Gi of DRAM on 2 nodes"
    assert withheld(cluster) == (
        "True",
        "ModeRecommend",
        f"pool inference/chat is in mode Recommend: set it to Enforce to act; {would}",
    )
    assert [entry.action for entry in cluster.decide().withheld] == [would]


def test_recommend_says_why_it_would_do_nothing() -> None:
    cluster = a_world()
    cluster.with_pool(a_pool().in_mode("Recommend").asking(DRAM="1Ti").build()).settle()
    assert "nothing would be admitted: 1Ti of DRAM asked, room for 64Gi" in withheld(cluster)[2]


def test_a_mode_above_the_cap_is_held_back_and_the_cap_is_named() -> None:
    cluster = a_world()
    cluster.mode_cap = Mode.OBSERVE
    cluster.settle()
    status, reason, message = withheld(cluster)
    assert (status, reason) == ("True", "ModeCapped")
    assert "asks for mode Enforce, the cluster-wide cap is Observe" in message
    budget = cluster.budget_condition(ConditionType.ACTION_WITHHELD)
    assert budget is not None
    assert (budget.status, budget.reason) == ("True", "ModeCapped")


def test_a_budget_that_may_not_act_is_named_in_the_pools_condition() -> None:
    cluster = a_world(budget_mode="Observe").settle()
    status, reason, message = withheld(cluster)
    assert (status, reason) == ("True", "ModeObserve")
    assert message.startswith("budget gpu is in mode Observe")
    assert message.endswith("would bind 16Gi of DRAM on 2 nodes")
    admitted = cluster.pool_condition(ConditionType.ADMITTED)
    assert admitted is not None
    assert admitted.status == "False"


def test_a_recommending_pool_takes_no_room_from_an_enforcing_one() -> None:
    cluster = a_world()
    cluster.with_pool(a_pool("advice").in_mode("Recommend").asking(DRAM="64Gi").build())
    cluster.with_pool(a_pool("chat").asking(DRAM="64Gi").build()).settle()
    assert cluster.bytes_on("node-1") == 32 * GIB


@pytest.mark.parametrize("what", ["cluster", "pool"])
def test_pause_stops_every_new_action_at_once_and_says_so(what: str) -> None:
    cluster = a_world().settle()
    before, keepers = cluster.units(), cluster.keepers()
    if what == "cluster":
        cluster.paused = True
        cluster.with_pool(a_pool().asking(DRAM="32Gi").build())
    else:
        cluster.with_pool(a_pool().paused().asking(DRAM="32Gi").build())
    cluster.settle()
    assert (cluster.units(), cluster.keepers()) == (before, keepers)
    paused = cluster.pool_condition(ConditionType.PAUSED)
    assert paused is not None
    assert paused.status == "True"
    assert withheld(cluster)[:2] == ("True", "Paused")


def test_a_paused_cluster_gives_nothing_of_a_deleted_pool_back() -> None:
    cluster = a_world()
    cluster.with_pool(a_pool().asking(DRAM="16Gi").with_spec(reclaimPolicy="Release").build()).settle()
    before = cluster.units()
    cluster.paused = True
    cluster.pools.clear()
    cluster.settle()
    assert cluster.units() == before
    cluster.paused = False
    cluster.settle()
    assert cluster.units() == {}


def test_holding_still_is_explained_too() -> None:
    cluster = a_world("Observe").settle()
    plan = cluster.decide()
    assert plan.actions == ()
    assert ("KVPool inference/chat", "ModeObserve") in [(what, why.code) for what, why in plan.explanations]
