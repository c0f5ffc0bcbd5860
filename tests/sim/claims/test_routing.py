"""Claims about routing and admission: which come out, and what decides."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kvpool.sim.claims import admission, router_limits, routing
from kvpool.sim.claims.experiment import Experiment
from kvpool.sim.claims.router_settings import overall
from kvpool.sim.claims.row import ClaimRow, Verdict

CLAIMS = Path(__file__).resolve().parents[3] / "docs" / "claims"
EXPERIMENTS = (*routing.EXPERIMENTS, *router_limits.EXPERIMENTS, *admission.EXPERIMENTS)


def run(number: str, **changes: object) -> ClaimRow:
    experiment = next(one for one in EXPERIMENTS if one.claim.number == number)
    return experiment.run(experiment.parameters.model_validate({**experiment.reduced, **changes}), {})


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.claim.number)
def test_the_file_of_a_claim_holds_the_full_setting(experiment: Experiment) -> None:
    file = CLAIMS / f"{experiment.claim.number.lower()}.yaml"
    written = yaml.safe_load(file.read_text())
    assert experiment.parameters.model_validate(written) == experiment.parameters()
    assert sorted(written) == sorted(experiment.parameters.model_fields)


def test_a_claim_is_reproduced_only_when_every_part_of_its_gate_held() -> None:
    assert overall([True, True]) is Verdict.REPRODUCED
    assert overall([True, False]) is Verdict.PARTLY
    assert overall([False, False]) is Verdict.NO
    assert overall([]) is Verdict.NO


def test_completion_time_keeps_most_promises_where_the_load_tells() -> None:
    row = run("C8")
    assert row.verdict is Verdict.PARTLY, "on unequal cards round robin is steadier"
    plain = ", RoundRobin: goodput"
    loads = [name.removesuffix(plain) for name in row.figures if name.endswith(plain)]
    (unequal,) = [load for load in loads if "cards 1..0.6" in load]
    mean = row.figures[f"{unequal}, CompletionTime: goodput"]
    for rule in ("RoundRobin", "LeastOutstanding", "LeastLoaded", "LengthAware"):
        assert mean > row.figures[f"{unequal}, {rule}: goodput"]


def test_loads_at_which_every_rule_keeps_all_promises_are_not_held_to_the_gate() -> None:
    row = run("C8", rates_per_card=[0.5], log_seconds=60)
    assert row.verdict is Verdict.NO
    assert row.ours == ""


def test_three_equal_cards_gain_nothing_and_three_unequal_ones_do() -> None:
    row = run("C10", sizes=[3], logs=2)
    gains = {name: value for name, value in row.figures.items() if name.endswith("gain points")}
    assert all(abs(value) < 1 for name, value in gains.items() if "equal cards" in name)
    assert all(value > 1 for name, value in gains.items() if "cards 1..0.6" in name)


def test_the_slowest_of_seven_unequal_cards_is_worth_less_than_the_rule() -> None:
    assert run("C12").verdict is Verdict.REPRODUCED


def test_wrong_constants_cost_what_the_right_ones_gained() -> None:
    row = run("C9", equal_rates_per_second=[3.0])
    right = row.figures["cards 1..0.6, 8/s, CompletionTime: goodput"]
    wrong = row.figures["cards 1..0.6, 8/s, CompletionTime, wrong constants: goodput"]
    queues = row.figures["cards 1..0.6, 8/s, LeastLoaded: goodput"]
    assert right - wrong > 0.02
    assert abs(wrong - queues) < 0.02


def test_a_guarded_router_is_never_much_worse_than_spraying_and_a_router_of_reports_alone_is() -> None:
    row = run("C11", report_seconds=[2.0])
    assert row.verdict is Verdict.REPRODUCED


def test_admission_by_memory_ends_recompute_storms() -> None:
    row = run("C14")
    assert row.verdict is Verdict.REPRODUCED
    assert row.figures["1200000 tokens, seed 1, recomputed million tokens, first come"] > 10


def test_bounds_beat_reserving_the_longest_answer_by_far_and_cost_time_against_points() -> None:
    row = run("C21")
    assert row.verdict is not Verdict.REPRODUCED
    ways = ("bound", "point", "longest")
    mean = {way: row.figures[f"2.2/s, {way}: mean end to end seconds"] for way in ways}
    assert mean["point"] < mean["bound"] < mean["longest"] / 2
    assert row.figures["2.2/s, bound: preempted"] <= row.figures["2.2/s, point: preempted"]


@pytest.mark.parametrize("number", ["C11", "C14", "C21"])
def test_the_same_seed_gives_the_same_row(number: str) -> None:
    small = {"C11": {"log_seconds": 10}, "C14": {"groups": 3}, "C21": {"log_seconds": 60}}[number]
    assert run(number, **small) == run(number, **small)
