"""The promise about waiting for a link, held against the exact distribution."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.tiers.waiting import wait_quantile_ns


def served_within(load: float, waited: float) -> float:
    """Exact share of an M/D/1 queue that waits at most `waited` service times (Erlang 1909)."""
    rate, total = Fraction(load), Fraction(0)
    exponents = []
    for past in range(math.floor(waited) + 1):
        depth = rate * (past - Fraction(waited))
        exponents.append((depth**past / math.factorial(past), float(-depth)))
    # The terms alternate and are large, so each exponential is taken to 60 digits.
    for factor, exponent in exponents:
        total += factor * _exponential(Fraction(exponent))
    return float((1 - rate) * total)


def _exponential(power: Fraction) -> Fraction:
    term, total, index = Fraction(1), Fraction(1), 1
    while abs(term) > Fraction(1, 10**60):
        term = term * power / index
        term = Fraction(int(term * 10**80), 10**80)
        total += term
        index += 1
    return total


def exact_quantile(load: float, quantile: float) -> float:
    low, high = 0.0, 60.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if served_within(load, middle) >= quantile else (middle, high)
    return high


@pytest.mark.parametrize(("load", "most"), [(0.1, 0.35), (0.3, 0.3), (0.5, 0.18), (0.7, 0.1), (0.8, 0.06)])
def test_the_promise_errs_on_the_safe_side_by_no_more_than_is_said(load: float, most: float) -> None:
    exact = exact_quantile(load, 0.99)
    promised = wait_quantile_ns(1.0, load, 0.99)
    assert exact <= promised <= exact * (1 + most)


def test_an_idle_link_makes_nobody_wait_and_a_full_one_everybody_for_ever() -> None:
    assert wait_quantile_ns(1.0, 0.0, 0.99) == 0
    assert wait_quantile_ns(1.0, 0.01, 0.99) == 0
    assert wait_quantile_ns(1.0, 1.0, 0.99) == math.inf


@given(st.floats(0, 0.99), st.floats(0, 0.99), st.floats(0.5, 0.999))
def test_more_load_never_waits_less(load: float, other: float, quantile: float) -> None:
    low, high = sorted((load, other))
    assert wait_quantile_ns(1.0, low, quantile) <= wait_quantile_ns(1.0, high, quantile)
