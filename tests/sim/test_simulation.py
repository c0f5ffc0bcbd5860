"""Whole scenarios."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from kvpool.plan.placement.orders import Frequency
from kvpool.plan.routing.counting import RoundRobin
from kvpool.plan.routing.views import Draws
from kvpool.sim import run
from kvpool.sim.building import PlanError
from kvpool.sim.report.document import document
from kvpool.sim.scenario import Scenario

PLAIN: dict[str, Any] = {
    "name": "plain",
    "fleet": {"instances": 3, "kvMemory": "16Gi"},
    "workload": {"name": "chat", "parameters": {"users": 12, "hours": 0.05}},
}
SPLIT: dict[str, Any] = {
    "name": "split",
    "fleet": {
        "prefill": 2,
        "decode": 3,
        "kvMemory": "16Gi",
        "speeds": [1.0, 0.6],
        "speedsAreKnown": False,
        "eviction": "EWMA",
        "tiers": [
            {"tier": "DRAM", "size": "8Gi", "link": {"preset": "PCIe5-x16"}},
            {"tier": "SSD", "size": "1Ti", "link": {"rate": "6G", "setupMicroseconds": 100}, "shared": True},
        ],
    },
    "routing": {"guarded": True, "reportInterval": "500ms", "lengthError": 0.35},
    "workload": {"name": "mix", "parameters": {"seconds": 20, "rate_per_second": 6}},
}


def scenario(base: dict[str, Any], **changes: object) -> Scenario:
    return Scenario.model_validate({**base, **changes})


@pytest.mark.parametrize("base", [PLAIN, SPLIT], ids=["mixed", "split"])
def test_a_scenario_says_what_came_out_and_what_it_was_made_from(base: dict[str, Any]) -> None:
    report = run(scenario(base))
    assert report.totals.served == report.totals.requests > 0
    assert report.inputs.seed == 0
    assert len(report.inputs.workload_sha256) == len(report.inputs.scenario_sha256) == 64
    assert report.calibration[0].provenance == "Fitted"
    assert report.calibration[0].worst_error is not None
    assert sum(tier.requests for tier in report.tiers) == report.totals.served
    assert 0 < len(report.timeline) <= 400


def test_another_seed_gives_another_run_and_the_same_seed_the_same() -> None:
    asked = scenario(SPLIT)
    assert run(asked, seed=3) == run(asked, seed=3)
    assert run(asked, seed=3).inputs.workload_sha256 != run(asked, seed=4).inputs.workload_sha256


PROGRAM = """
import json, sys
from kvpool.sim.report.document import document
from kvpool.sim import run
from kvpool.sim.scenario import Scenario
for text in json.load(sys.stdin):
    print(json.dumps(document(run(Scenario.model_validate(text)))))
"""


def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=json.dumps([PLAIN, SPLIT]),
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for hash_seed in ("1", "4242")
    ]
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0].splitlines()[1]) == json.loads(json.dumps(document(run(scenario(SPLIT)))))


class Always(RoundRobin):
    """A rule of one's own."""

    def __init__(self, draws: Draws) -> None:
        super().__init__()


def test_a_rule_of_ones_own_takes_the_place_of_the_scenarios() -> None:
    named = run(scenario(PLAIN, routing={"rule": "RoundRobin"}))
    own = run(scenario(PLAIN), router=Always)
    assert own.classes == named.classes
    assert run(scenario(PLAIN), eviction=Frequency).totals.served == named.totals.served


def test_unequal_instances_are_slower_than_equal_ones() -> None:
    fast = run(scenario(PLAIN))
    slow = run(scenario(PLAIN, fleet={**PLAIN["fleet"], "speeds": [0.5]}))
    ttft = [report.classes[-1].latencies.ttft.p50_ns for report in (fast, slow)]
    assert ttft[1] > 1.8 * ttft[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fleet": {"instances": 1, "prefill": 1, "decode": 1}}, "either instances, or both"),
        ({"fleet": {"prefill": 1}}, "either instances, or both"),
        ({"fleet": {"instances": 1, "eviction": "Recent"}}, "did you mean 'Recency'"),
        ({"fleet": {"instances": 1, "eviction": "Belady"}}, "needs the future"),
        ({"routing": {"rule": "RundRobin"}}, "did you mean 'RoundRobin'"),
        ({"model": {"accelerator": "H20"}}, "did you mean 'H200'"),
        ({"model": {"preset": None}}, "give constants and kvBytesPerToken"),
        ({"workload": {"name": "chta"}}, "did you mean 'chat'"),
        ({"routing": {"lengthError": 0.1, "learntLengths": True}}, "not both"),
        ({"failures": [{"at": "5s", "instance": 3}]}, "there are 0 to 2"),
        ({"fleet": {"instances": 1, "link": {}}}, "exactly one of preset and rate"),
        (
            {
                "fleet": {
                    "instances": 1,
                    "tiers": [
                        {"tier": "SSD", "size": 1, "link": {"rate": 1}},
                        {"tier": "DRAM", "size": 1, "link": {"rate": 1}},
                    ],
                }
            },
            "nearest first",
        ),
        ({"routing": {"reportInterval": 1e-6}}, "reportInterval is 1e-06 s: give 0.001 or more, or 0"),
        (
            {"model": {"constants": {"prefillBase": 1, "prefillToken": 1e300, "stepBase": 1}}},
            "prefillToken",
        ),
    ],
)
def test_a_scenario_that_makes_no_sense_is_refused_with_what_to_write(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        scenario(PLAIN, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {"preset": "Qwen3-32B", "accelerator": "L40S"}}, "bytes too few; take more cards"),
        ({"fleet": {"instances": 1, "kvMemory": "1Mi"}}, "one prefix block has 512"),
        ({"workload": None}, "names no workload"),
        ({"workload": {"name": "mix", "parameters": {"second": 1}}}, "did you mean 'seconds'"),
        ({"workload": {"name": "mix", "parameters": {"seconds": "x", "rate_per_second": 1}}}, "seconds: "),
        ({"promises": {"batch": {}}}, "no promise for class 'interactive'"),
    ],
)
def test_a_plan_that_cannot_be_says_which_limit(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(scenario(PLAIN, **change))


def test_a_plan_error_is_a_value_error() -> None:
    assert issubclass(PlanError, ValueError)
