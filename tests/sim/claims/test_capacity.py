"""Claims about capacity: the arithmetic ones say so, the others say what decides."""

from __future__ import annotations

from itertools import repeat

import pytest

from kvpool.plan.tiers.stack import Stack, Tier
from kvpool.sim.claims import borrowed_memory, capacity, narrow_numbers
from kvpool.sim.claims.row import ClaimRow, Kind, Verdict
from tests.sim.claims.setting import run_claim

EXPERIMENTS = (*capacity.EXPERIMENTS, *narrow_numbers.EXPERIMENTS, *borrowed_memory.EXPERIMENTS)


def run(number: str, **changes: object) -> ClaimRow:
    return run_claim(number, {}, **changes)


@pytest.mark.parametrize("number", ["C1", "C2"])
def test_arithmetic_is_called_arithmetic(number: str) -> None:
    row = run(number)
    assert (row.claim.kind, row.verdict) == (Kind.IDENTITY, Verdict.IDENTITY)


def test_sessions_at_1_to_8_to_64_are_73_times_as_many() -> None:
    row = run("C1")
    assert row.figures["fillings that disagree with the plan"] == 0
    assert 73.0 <= row.figures["least gain"] <= row.figures["most gain"] <= 73.03


def test_another_ratio_does_not_hold_the_claim() -> None:
    assert run("C1", ratios=[1, 8, 32]).verdict is Verdict.NO
    assert run("C2", price_per_gb=[100.0, 3.5, 0.08]).verdict is Verdict.NO


def test_the_price_of_a_session_is_that_of_the_prices_given() -> None:
    assert run("C2").figures["saving"] == pytest.approx(62.06, abs=0.005)
    assert run("C2", price_per_gb=[1.0, 0.0, 0.0]).figures["saving"] == pytest.approx(73.02, abs=0.005)


def test_narrow_numbers_go_the_published_ways_where_the_card_multiplies_them() -> None:
    row = run("C19")
    assert row.verdict is Verdict.REPRODUCED
    assert row.figures["throughput percent"] > 0 > row.figures["TPOT percent"]


def test_without_4_bit_products_the_first_token_comes_no_sooner() -> None:
    row = run("C19", card="H200")
    assert row.verdict is Verdict.PARTLY
    assert row.figures["TTFT percent"] == 0


def test_lent_memory_gains_nothing_while_hbm_holds_all_sessions_and_more_with_every_session() -> None:
    row = run("C20")
    gains = [value for name, value in row.figures.items() if name.startswith("throughput with")]
    assert gains[0] == pytest.approx(1)
    assert gains == sorted(gains)
    assert row.verdict is Verdict.PARTLY
    assert "no configuration" in row.band


def test_memory_that_is_always_asked_back_gains_nothing() -> None:
    assert run("C20", revoked_percent=100).verdict is Verdict.NO


@pytest.mark.parametrize("number", [one.claim.number for one in EXPERIMENTS])
def test_the_same_seed_gives_the_same_row(number: str) -> None:
    assert run(number) == run(number)


def test_sessions_are_refused_only_when_no_tier_has_room() -> None:
    stack = Stack((Tier("a", 10), Tier("b", 25)))
    assert capacity.filled_one_by_one(stack, iter([9, 9, 9, 6, 2])) == 4
    assert capacity.filled_one_by_one(stack, repeat(5)) == 7
