"""Figures of a run."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.routing.views import Objective
from kvpool.plan.timing.model import TimingModel
from kvpool.sim.prefixes.tier import Tier
from kvpool.sim.report.document import csv_text, document
from kvpool.sim.report.figures import Alone, Calibration, Inputs, Report
from kvpool.sim.report.summary import quantiles, summarise
from kvpool.sim.serving.outcome import Outcome
from kvpool.sim.serving.run import FleetRun, LinkUse, Sample

SECOND = 1_000_000_000
OBJECTIVES = {"interactive": Objective(2 * SECOND, SECOND // 10, 100), "batch": Objective(10**11, 10**9, 50)}
FASTEST = TimingModel(SECOND, 10**6, 0, 10**7, 10**6, 10**3)
INPUTS = Inputs("made by a test", "ab", "cd", 7)


def outcome(number: int, ttft: int, end: int, deepest: Tier = Tier.HBM, refused: str = "") -> Outcome:
    loaded: dict[Tier, int] = {deepest: 100} if deepest in (Tier.DRAM, Tier.SSD) else {}
    slo_class = "batch" if number % 2 else "interactive"
    times = (-1, -1) if refused else (ttft, end)
    return Outcome(number, slo_class, 0, *times, 1000, 11, 100, loaded, deepest, 5, 1, refused)


def report(*outcomes: Outcome) -> Report:
    run = FleetRun(
        outcomes=outcomes,
        end_ns=100 * SECOND,
        decode_steps=10,
        made_tokens=10,
        computed_tokens=900,
        evicted_blocks=3,
        capacity_tokens=1000,
        unique_share=0.75,
        demoted_bytes={"DRAM-0": 10, "DRAM-1": 20, "SSD": 5},
        links={
            "DRAM-0": LinkUse(1, 50 * SECOND),
            "DRAM-1": LinkUse(2, 0),
            "SSD": LinkUse(4, 0),
            "decode-0": LinkUse(1, 1),
        },
        samples=(Sample(0, 1, 2, 3, 4),),
        events=((5, "instance 0 died"),),
    )
    return summarise(
        "a run", run, OBJECTIVES, INPUTS, [Calibration("all", "Fitted", "a test", 0.1)], 2, FASTEST
    )


def test_a_request_meets_its_promise_only_with_both_times() -> None:
    slow_start = outcome(0, 3 * SECOND, 3 * SECOND)
    slow_tokens = outcome(2, SECOND, 3 * SECOND)
    fine = outcome(4, 2 * SECOND, 3 * SECOND)
    refused = outcome(6, 0, 0, refused="too long")
    found = report(slow_start, slow_tokens, fine, refused)
    interactive = next(one for one in found.classes if one.slo_class == "interactive")
    assert (interactive.requests, interactive.refused, interactive.met) == (4, 1, 1)
    assert interactive.goodput == found.goodput == 0.25
    assert found.totals.refused == {"too long": 1}


def test_latencies_are_told_by_the_deepest_tier_that_was_touched() -> None:
    found = report(
        outcome(0, 1 * SECOND, 5 * SECOND, Tier.HBM),
        outcome(2, 2 * SECOND, 5 * SECOND, Tier.SSD),
        outcome(4, 4 * SECOND, 5 * SECOND, Tier.SSD),
    )
    assert [(tier.tier, tier.requests, tier.loaded_bytes) for tier in found.tiers] == [
        ("HBM", 1, 0),
        ("SSD", 2, 400),
    ]
    assert found.tiers[1].latencies.ttft.p99_ns == 4 * SECOND


def test_what_a_row_loaded_is_what_its_own_requests_loaded_from_all_tiers() -> None:
    both = replace(outcome(2, 1, 2, Tier.SSD), loaded_tokens={Tier.DRAM: 30, Tier.SSD: 100})
    found = report(outcome(0, 1, 2, Tier.DRAM), both)
    assert [(tier.tier, tier.loaded_bytes) for tier in found.tiers] == [("DRAM", 200), ("SSD", 260)]


def test_what_requests_take_alone_leaves_the_cached_tokens_out() -> None:
    found = report(outcome(0, 1, 2), replace(outcome(2, 1, 2), prompt_tokens=1200, hit_tokens=0))
    interactive = next(one for one in found.classes if one.slo_class == "interactive")
    # 900 and 1200 tokens of 1 ms each and a second; steps of 10 + 1 + 1 ms. Promised are 2 s and 100 ms.
    assert interactive.alone == Alone(1_900_000_000, 12_000_000, 1)


def test_boundaries_sum_over_instances_and_links_say_how_long_they_were_busy() -> None:
    found = report(outcome(0, 1, 2))
    assert [(one.tier, one.promoted_bytes, one.demoted_bytes) for one in found.boundaries] == [
        ("DRAM", 3, 30),
        ("SSD", 4, 5),
    ]
    assert found.links[0].busy_share == 0.5


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=300))
def test_quantiles_are_members_with_enough_of_the_set_at_or_below_them(durations: list[int]) -> None:
    found = quantiles(durations)
    for share, value in ((50, found.p50_ns), (95, found.p95_ns), (99, found.p99_ns)):
        assert value in durations
        below = sum(1 for one in durations if one <= value)
        strictly = sum(1 for one in durations if one < value)
        assert 100 * strictly < share * len(durations) <= 100 * below
    assert found.most_ns == max(durations)
    assert found.mean_ns == pytest.approx(sum(durations) / len(durations), abs=1)


def test_a_report_is_json_with_units_in_its_names() -> None:
    written = json.loads(json.dumps(document(report(outcome(0, 1, 2), outcome(2, 1, 2, Tier.DRAM)))))
    assert written["goodput"] == 1.0
    assert written["inputs"] == {
        "source": "made by a test",
        "workloadSha256": "ab",
        "scenarioSha256": "cd",
        "seed": 7,
        "notes": {},
    }
    assert written["classes"][1]["goodput"] == 1.0
    assert written["timeline"] == [
        {
            "timeNs": 0,
            "running": 1,
            "waiting": 2,
            "usedTokens": 3,
            "idleTokens": 4,
            "lowerTokens": {},
        }
    ]
    assert written["events"] == [{"timeNs": 5, "text": "instance 0 died"}]
    assert written["totals"]["hitShare"] == 0.1


def test_csv_has_one_figure_a_row_for_each_run() -> None:
    rows = csv_text([report(outcome(0, 1, 2))] * 2).splitlines()
    assert rows[0] == "name,seed,group,of,figure,unit,value"
    assert rows.count("a run,7,total,,goodput,share,1.0") == 2
    assert all(row.count(",") == 6 for row in rows)


def test_a_run_without_requests_has_figures_all_the_same() -> None:
    found = report()
    assert (found.goodput, found.totals.hit_share, found.tiers) == (1.0, 0.0, ())
