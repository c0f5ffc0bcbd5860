"""Claims about routing and admission: which come out, and what decides."""

from __future__ import annotations

import pytest

from kvpool.sim.claims.router_settings import overall
from kvpool.sim.claims.row import ClaimRow, Verdict
from tests.sim.claims.setting import run_claim


def run(number: str, **changes: object) -> ClaimRow:
    return run_claim(number, {}, **changes)


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
    row = run("C12")
    assert row.verdict is Verdict.REPRODUCED
    assert "it fails at no load" in row.knob


def test_a_load_at_which_fewer_cards_serve_less_makes_the_claim_hold_in_part_and_is_named() -> None:
    small: dict[str, object] = {"equal_rates_per_second": [9.5], "logs": 1, "log_seconds": 120}
    row = run("C12", rates_per_second=[5.5, 9.5], **small)
    assert row.verdict is Verdict.PARTLY
    assert "it fails at 9.5/s" in row.knob


def test_wrong_constants_cost_what_the_right_ones_gained() -> None:
    row = run("C9", equal_rates_per_second=[3.0])
    right = row.figures["cards 1..0.6, 7.5/s, CompletionTime: goodput"]
    wrong = row.figures["cards 1..0.6, 7.5/s, CompletionTime, wrong constants: goodput"]
    queues = row.figures["cards 1..0.6, 7.5/s, LeastOutstanding: goodput"]
    assert right - wrong > 0.02
    assert abs(wrong - queues) < 0.02


def test_a_guarded_router_is_never_much_worse_than_spraying_and_a_router_of_reports_alone_is() -> None:
    row = run("C11", report_seconds=[2.0])
    goodput = {
        rule: row.figures[f"reports 2 s old, {rule}: goodput"]
        for rule in ("Guarded", "Uniform", "LeastLoaded by reports alone", "LeastLoaded", "CompletionTime")
    }
    assert goodput["Guarded"] >= goodput["Uniform"] - 0.005
    assert goodput["LeastLoaded by reports alone"] < goodput["Uniform"]
    assert goodput["Uniform"] < min(goodput["LeastLoaded"], goodput["CompletionTime"])
    # The gate holds; spraying beats no greedy router that counts what it sent.
    assert row.verdict is Verdict.PARTLY
    assert "one that does at no age of reports" in row.knob


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
