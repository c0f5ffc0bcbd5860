"""The planning steps: what stands above deciding, and what is told of what was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kvpool.api.kvnode import KVNode
from kvpool.api.kvpool import KVPoolStatus
from kvpool.cluster.errors import ApiError, Retryable
from kvpool.cluster.recorder import EventRecorder, Outcome, Severity
from kvpool.cluster.resources import KV_POOLS
from kvpool.cluster.rest import Rest
from kvpool.cluster.writes import create
from kvpool.control import steps as steps_module
from kvpool.control.facts import Facts
from kvpool.control.figures import Figures
from kvpool.control.gather import Gatherer
from kvpool.control.marks import Marks
from kvpool.control.metrics import OperatorMetrics
from kvpool.control.reconciler import MovedOn
from kvpool.control.route_writer import RouteWriter
from kvpool.control.steps import Steps
from kvpool.control.store_poller import StorePoller
from kvpool.control.workloads import Workloads
from kvpool.fleet.fleet import Fleet
from kvpool.model.decisions import Announce, Plan, Reason, WriteStatus
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Leadership, Snapshot
from kvpool.rules.epochs import MOST_SEQUENCES, slot_epoch
from tests.control.test_execute import an_executor
from tests.harness.faultproxy import Answer, FaultProxy


@dataclass
class Known:
    """Stands for the gatherer: one snapshot, under the epoch that we have now."""

    epoch: int = 5
    kvnodes: dict[str, KVNode] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        return Snapshot(Leadership(self.epoch, since=0.0, api_back_since=0.0), kvnodes=self.kvnodes)


@dataclass
class Agents:
    """Stands for the fleet: the epoch that agents are led under."""

    epoch: int = 5

    def set_leader(self, operator_epoch: int) -> None:
        self.epoch = operator_epoch


class Told(EventRecorder):
    """Keeps what it was told."""

    def __init__(self, rest: Rest) -> None:
        super().__init__(rest, controller="test", instance="test")
        self.reasons: list[str] = []

    def record(
        self, about: Mapping[str, Any], severity: Severity, reason: str, note: str, *, action: str
    ) -> Outcome:
        self.reasons.append(reason)
        return super().record(about, severity, reason, note, action=action)


@dataclass
class Stepped:
    """The steps, and what is around them."""

    steps: Steps
    known: Known
    agents: Agents
    told: Told
    stepped_up: list[int]
    failures: list[ApiError]


@pytest.fixture
async def around(rest: Rest, facts: Facts, metrics: OperatorMetrics) -> Stepped:
    known, agents, told = Known(), Agents(), Told(rest)
    stepped_up: list[int] = []
    failures: list[ApiError] = []

    async def step_up(seen: int) -> None:
        stepped_up.append(seen)
        if failures:
            raise failures.pop()
        known.epoch = seen + 1

    steps = Steps(
        gatherer=cast("Gatherer", known),
        executor=an_executor(rest, facts),
        fleet=cast("Fleet", agents),
        routes=RouteWriter(rest, {}, first_revision=1, on_ack=lambda: None),
        stores=cast("StorePoller", None),
        workload_selectors=cast("Workloads", None),
        facts=facts,
        marks=Marks(),
        recorder=told,
        metrics=metrics,
        figures=Figures(metrics),
        wake=lambda *_: None,
        step_up=step_up,
    )
    return Stepped(steps, known, agents, told, stepped_up, failures)


def a_kvnode(epoch: int, *claims: dict[str, Any]) -> KVNode:
    spec = {"operatorEpoch": epoch, "claims": claims}
    return KVNode.parse({"metadata": {"name": "n", "uid": "uid-n"}, "spec": spec})


async def test_a_step_up_that_fails_is_an_error_of_the_step_and_is_tried_again(around: Stepped) -> None:
    around.known.kvnodes["n"] = a_kvnode(9)
    around.failures.append(Retryable("PUT lease", 503, "", "down"))
    with pytest.raises(Retryable):
        await around.steps.plan_failover()
    assert around.known.epoch == 5
    await around.steps.plan_failover()
    assert (around.stepped_up, around.known.epoch) == ([9, 9], 10)


async def test_no_step_up_is_made_for_our_own_epoch(around: Stepped) -> None:
    around.known.kvnodes["n"] = a_kvnode(5)
    await around.steps.plan_failover()
    assert around.stepped_up == []


async def test_a_leadership_that_has_given_out_its_epochs_steps_up_before_it_plans(around: Stepped) -> None:
    claim = {"device": "d", "slot": "inference/chat-decode-0", "epoch": slot_epoch(5, MOST_SEQUENCES)}
    around.known.kvnodes["n"] = a_kvnode(5, claim)
    with pytest.raises(MovedOn):  # the claim is a leftover, of a node that this test alone knows
        await around.steps.plan_failover()
    assert (around.stepped_up, around.known.epoch) == ([5], 6)


async def test_agents_are_led_under_an_epoch_that_the_lease_took_without_an_answer(around: Stepped) -> None:
    around.known.epoch = 6
    await around.steps.plan_failover()
    assert (around.stepped_up, around.agents.epoch) == ([], 6)


async def a_plan_for_two_pools(rest: Rest, facts: Facts, namespace: str) -> Plan:
    """One status and one event for each of two real pools."""
    keys = [ObjectKey(namespace, name) for name in ("one", "two")]
    for key in keys:
        manifest = {
            "metadata": {"name": key.name, "namespace": namespace},
            "spec": {"store": {"none": {}}, "tiers": [{"name": "DRAM", "size": "1Gi"}]},
        }
        facts.store.absorb(KV_POOLS, await create(rest, KV_POOLS, manifest, manager="people"))
    return Plan(
        actions=tuple(WriteStatus("KVPool", key, KVPoolStatus(observed_generation=1)) for key in keys),
        events=tuple(Announce("KVPool", key, "Normal", Reason(key.name.title(), "a note")) for key in keys),
    )


async def test_what_was_done_is_told_before_an_error_is_raised(
    rest: Rest,
    facts: Facts,
    namespace: str,
    around: Stepped,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = await a_plan_for_two_pools(rest, facts, namespace)
    monkeypatch.setattr(steps_module, "domain_statuses", lambda *_: plan)
    proxy.inject(Answer(503), times=20, method="PATCH", path=f"{namespace}/kvpools/one/status")
    with pytest.raises(ApiError):
        await around.steps.plan_statuses()
    assert around.told.reasons == ["Two"]


async def test_an_object_that_moved_makes_the_step_look_again_later(
    rest: Rest,
    facts: Facts,
    namespace: str,
    around: Stepped,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = await a_plan_for_two_pools(rest, facts, namespace)
    monkeypatch.setattr(steps_module, "domain_statuses", lambda *_: plan)
    proxy.inject(Answer(409), method="PATCH", path=f"{namespace}/kvpools/two/status")
    with pytest.raises(MovedOn):
        await around.steps.plan_statuses()
    assert around.told.reasons == ["One"]
