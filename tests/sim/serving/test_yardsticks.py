"""Orders that other simulators find too, on the first requests of the conversation log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.plan.routing.views import Objective
from kvpool.sim.report.summary import latencies
from kvpool.sim.serving.design import InstanceSpec, MixedDesign
from kvpool.sim.serving.mixed import MixedFleet
from kvpool.sim.streams import Stream
from tests.sim.serving.yardstick import DYNOSIM, H200, conversations, splits

REQUESTS = 1500


@pytest.mark.parametrize("spec", [DYNOSIM, H200], ids=["DynoSim", "H200"])
def test_a_router_that_knows_prefixes_finds_more_of_them_and_answers_sooner_than_round_robin(
    spec: InstanceSpec,
) -> None:
    log = replace(conversations(), requests=conversations().requests[:REQUESTS])
    design = MixedDesign((spec,) * 4, 131_072, {"interactive": Objective(1, 1, 100)})
    runs = {
        rule: MixedFleet(design, ROUTERS[rule](Stream(1))).run(log).outcomes
        for rule in ("RoundRobin", "Dynamo")
    }
    hits = {rule: sum(one.hit_tokens for one in outcomes) for rule, outcomes in runs.items()}
    times = {rule: latencies(outcomes) for rule, outcomes in runs.items()}
    assert hits["Dynamo"] > 1.1 * hits["RoundRobin"]
    assert times["Dynamo"].ttft.mean_ns < 0.9 * times["RoundRobin"].ttft.mean_ns
    assert times["Dynamo"].ttft.p99_ns < times["RoundRobin"].ttft.p99_ns
    assert times["Dynamo"].e2e.mean_ns < times["RoundRobin"].e2e.mean_ns


@pytest.mark.parametrize("spec", [DYNOSIM, H200], ids=["DynoSim", "H200"])
def test_three_to_two_answers_conversations_soonest_and_one_to_four_last(spec: InstanceSpec) -> None:
    found = splits(spec, 131_072, speed_up=1.0, requests=REQUESTS)
    assert min(found, key=lambda split: found[split]) == "3:2"
    assert found["1:4"] > 3 * max(found[split] for split in ("4:1", "3:2", "2:3"))
