"""Weights under policy CompletionTime: the routing planner's shares, by the memory that engines have left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kvpool.api.common import Role
from kvpool.api.pdgroup import PDGroup
from kvpool.model.decisions import WriteSlotStatus
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import EngineView
from kvpool.model.snapshot import Snapshot
from kvpool.plan.failover import failover_plan
from kvpool.plan.groups import group_status
from kvpool.plan.presets import card_named, kv_memory_at_16_bits, shape_named
from kvpool.plan.weights import weights
from tests.builders.failover import NAMESPACE, World
from tests.builders.objects import a_pool
from tests.plan.failover.test_statuses import with_prefill

Spec = dict[str, Any] | None

KEY = ObjectKey(NAMESPACE, "chat")
MODEL: Spec = {"preset": "Qwen3-8B"}
PLANNING: Spec = {"requests": {"promptTokens": 4096, "outputTokens": 256}}
MEMORY = kv_memory_at_16_bits(shape_named("Qwen3-8B"), card_named("H200"), 1)


@pytest.fixture(scope="module")
def five() -> World:
    """One prefill and five decode slots that have served for long."""
    return with_prefill(1, 5).run(120, step=5.0)


def seen(
    world: World, use: dict[str, float], *, planning: Spec = PLANNING, model: Spec = MODEL, **routing: object
) -> Snapshot:
    """What the operator sees when engines on hosts say that so much of their KV memory is in use."""
    world.operator.refresh()
    world.operator.hear()
    snapshot = world.operator.snapshot()
    raw = snapshot.groups[KEY].model_dump(by_alias=True, exclude_none=True)
    raw["spec"]["routing"] = {**raw["spec"]["routing"], "policy": "CompletionTime", **routing}
    if planning is not None:
        raw["spec"]["planning"] = planning
    group = PDGroup.parse(raw)
    pool = a_pool(group.spec.pool_ref.name, NAMESPACE)
    made = (pool.with_spec(planning={"model": model}) if model is not None else pool).build()
    agents = dict(snapshot.agents)
    for pod in snapshot.pods.values():
        if pod.node in use:
            told = EngineView(
                pod.uid, str(pod.key), "", (), False, "EngineReady", "", 1, round(use[pod.node] * MEMORY)
            )
            agents[pod.node] = replace(agents[pod.node], engines=(told,))
    pools = {ObjectKey(NAMESPACE, made.metadata.name): made}
    return replace(snapshot, groups={KEY: group}, pools=pools, agents=agents)


def given(snapshot: Snapshot, world: World) -> dict[str, tuple[int, str]]:
    """Weight and reason of each decode slot, by its host."""
    found = weights(snapshot, snapshot.groups[KEY], Role.DECODE, world.now).members
    hosts = {key: slot.spec.seats[0].node for key, slot in snapshot.slots.items()}
    return {hosts[member.slot]: (member.weight, member.reason.code) for member in found}


def test_an_engine_with_little_memory_left_gets_less_and_it_is_said_why(five: World) -> None:
    snapshot = seen(five, {"n-1": 0.2, "n-2": 0.4, "n-3": 0.85, "n-4": 1.0, "n-5": 0.1})
    assert given(snapshot, five) == {
        "n-1": (100, "Serving"),
        "n-2": (100, "Serving"),
        "n-3": (55, "KVPressure"),
        "n-4": (10, "KVPressure"),
        "n-5": (100, "Serving"),
    }
    said = [
        member.reason.message
        for member in weights(snapshot, snapshot.groups[KEY], Role.DECODE, five.now).members
        if member.weight == 55
    ]
    assert said == ["85% of its KV memory is in use: it gets 55 for each 100 of the emptiest"]


def carried(snapshot: Snapshot, world: World) -> Snapshot:
    """The same once routers carry what is asked of them, and slots' statuses say so."""
    (told,) = (one for one in failover_plan(snapshot, world.now).weights if one.role == "Decode")
    asked = {member.slot.name: member.weight for member in told.members}
    acks = tuple(replace(ack, weights={**ack.weights, **asked}) for ack in snapshot.acks)
    assert acks
    return replace(snapshot, acks=acks)


def test_a_report_that_says_nearly_the_same_changes_no_weight(five: World) -> None:
    acks = carried(seen(five, {"n-3": 0.85}), five).acks
    nudged = replace(seen(five, {"n-3": 0.86}), acks=acks)
    moved = replace(seen(five, {"n-3": 0.90}), acks=acks)
    assert given(nudged, five)["n-3"] == (55, "KVPressure")
    assert given(moved, five)["n-3"] == (40, "KVPressure")


def test_a_slots_status_says_its_share_once_routers_carry_it(five: World) -> None:
    snapshot = seen(five, {"n-3": 0.85})
    asked = [
        action for action in failover_plan(snapshot, five.now).actions if isinstance(action, WriteSlotStatus)
    ]
    there = [
        action.status
        for action in failover_plan(carried(snapshot, five), five.now).actions
        if isinstance(action, WriteSlotStatus)
    ]
    assert asked == []
    assert [(status.weight_asked, status.weight_acknowledged) for status in there] == [(55, 55)]


def test_the_status_says_the_weights_that_routers_are_given(five: World) -> None:
    snapshot = seen(five, {"n-3": 0.85})
    status = group_status(snapshot, snapshot.groups[KEY], five.now)
    assert sorted(member.weight for member in status.members if member.role is Role.DECODE) == [
        55,
        100,
        100,
        100,
        100,
    ]


def test_what_is_not_known_makes_nobody_slower(five: World) -> None:
    for snapshot in (
        seen(five, {}),
        seen(five, {"n-1": 1.0}, planning=None),
        seen(five, {"n-1": 1.0}, model=None),
    ):
        assert set(given(snapshot, five).values()) == {(100, "Serving")}


def aged(snapshot: Snapshot, world: World, host: str, age_seconds: float) -> Snapshot:
    """The same when the newest report of a host's agent is so old."""
    old = replace(snapshot.agents[host], reported_at=world.now.monotonic_seconds - age_seconds)
    return replace(snapshot, agents={**snapshot.agents, host: old})


@pytest.mark.parametrize(
    ("age_seconds", "told"),
    [(9, (10, "KVPressure")), (11, (10, "KVPressure")), (59, (10, "KVPressure")), (60, (100, "Serving"))],
)
def test_the_last_word_of_an_engine_counts_for_a_minute(
    five: World, age_seconds: float, told: tuple[int, str]
) -> None:
    assert given(aged(seen(five, {"n-1": 1.0}), five, "n-1", age_seconds), five)["n-1"] == told


def test_reports_that_come_and_go_move_nobody(five: World) -> None:
    use = {"n-1": 0.2, "n-2": 0.85, "n-3": 0.85, "n-4": 0.85, "n-5": 1.0}
    snapshot = carried(seen(five, use), five)
    steady = given(snapshot, five)
    assert sorted(weight for weight, _ in steady.values()) == [10, 55, 55, 55, 100]
    for host in ("n-1", "n-2", "n-5"):  # the measure of the others, one of them, and the fullest
        for age in (11.0, 1.0, 30.0, 2.0):
            assert given(aged(snapshot, five, host, age), five) == steady


def unheard(snapshot: Snapshot, world: World, host: str, leads_seconds: float) -> Snapshot:
    """What a leader of so many seconds sees that has not heard one agent."""
    heard = {node: agent for node, agent in snapshot.agents.items() if node != host}
    leadership = replace(snapshot.leadership, since=world.now.monotonic_seconds - leads_seconds)
    return replace(snapshot, agents=heard, leadership=leadership)


@pytest.mark.parametrize("host", ["n-1", "n-2", "n-5"])
def test_while_a_new_leader_has_not_heard_all_agents_shares_stand_still(five: World, host: str) -> None:
    use = {"n-1": 0.2, "n-2": 0.85, "n-3": 0.85, "n-4": 0.85, "n-5": 1.0}
    snapshot = carried(seen(five, use), five)
    weights_before = {node: weight for node, (weight, _) in given(snapshot, five).items()}
    told = given(unheard(snapshot, five, host, 1.0), five)
    assert {node: weight for node, (weight, _) in told.items()} == weights_before


def test_an_agent_that_a_leader_has_not_heard_for_long_says_nothing_of_its_engine(five: World) -> None:
    snapshot = carried(seen(five, {"n-1": 1.0}), five)
    assert given(unheard(snapshot, five, "n-1", 10.9), five)["n-1"] == (10, "KVPressure")
    assert given(unheard(snapshot, five, "n-1", 11.1), five)["n-1"] == (100, "Serving")


@pytest.mark.parametrize("told_bytes", [None, 0])
def test_an_engine_keeps_its_share_until_it_came_to_word_after_its_agents_hello(
    five: World, told_bytes: int | None
) -> None:
    snapshot = carried(seen(five, {"n-1": 1.0}), five)
    agent = snapshot.agents["n-1"]
    (engine,) = agent.engines
    engines = () if told_bytes is None else (replace(engine, hbm_kv_bytes=told_bytes),)
    for ago, weight in ((1.0, 10), (4.9, 10), (5.1, 100)):
        fresh = replace(agent, engines=engines, hello_at=five.now.monotonic_seconds - ago)
        greeted = replace(snapshot, agents={**snapshot.agents, "n-1": fresh})
        assert given(greeted, five)["n-1"][0] == weight


def test_a_share_that_is_kept_says_what_is_missing(five: World) -> None:
    snapshot = unheard(carried(seen(five, {"n-1": 1.0}), five), five, "n-1", 1.0)
    found = weights(snapshot, snapshot.groups[KEY], Role.DECODE, five.now).members
    (said,) = (one.reason.message for one in found if one.weight == 10)
    assert said.startswith("it has yet to say how much of its KV memory is in use: it gets 10 for")


def test_an_engine_that_never_had_a_share_gets_the_whole_one_though_it_says_nothing(five: World) -> None:
    snapshot = unheard(seen(five, {"n-1": 1.0}), five, "n-1", 1.0)
    acks = tuple(replace(ack, weights={}) for ack in snapshot.acks)
    assert given(replace(snapshot, acks=acks), five)["n-1"] == (100, "Serving")


def test_a_small_pool_gets_the_same_everywhere(five: World) -> None:
    assert given(seen(five, {"n-1": 1.0}, guards={"smallPool": 5}), five)["n-1"] == (100, "Serving")
    assert given(seen(five, {"n-1": 1.0}, guards={"smallPool": 4}), five)["n-1"] == (10, "KVPressure")


def test_policy_uniform_looks_at_no_memory(five: World) -> None:
    assert given(seen(five, {"n-1": 1.0}, policy="Uniform"), five)["n-1"] == (100, "Serving")


@pytest.mark.parametrize(
    ("planning", "model", "reason"),
    [(PLANNING, MODEL, "DataSheet"), (None, MODEL, "NoConstants"), (PLANNING, None, "NoConstants")],
)
def test_the_status_says_what_weights_are_computed_from(
    five: World, planning: Spec, model: Spec, reason: str
) -> None:
    snapshot = seen(five, {}, planning=planning, model=model)
    status = group_status(snapshot, snapshot.groups[KEY], five.now)
    (found,) = [condition for condition in status.conditions if condition.type == "Calibrated"]
    assert (found.status, found.reason) == ("False", reason)


def test_policy_uniform_says_nothing_of_calibration(five: World) -> None:
    snapshot = seen(five, {}, policy="Uniform")
    status = group_status(snapshot, snapshot.groups[KEY], five.now)
    assert all(condition.type != "Calibrated" for condition in status.conditions)
