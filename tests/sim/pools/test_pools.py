"""Pools under one workload, and the table of pool sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.cli.views.threshold import threshold_screen
from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.plan.routing.views import Objective
from kvpool.sim.claims.router_settings import RouterMix
from kvpool.sim.pools.density import alone, parts, with_density
from kvpool.sim.pools.pool import falling_speeds, serve
from kvpool.sim.pools.threshold import Cell, Question, _pays_from, threshold
from kvpool.sim.workloads.generators.mix import Mix, mix
from kvpool.sim.workloads.request import Request, Workload

SETTING = RouterMix()
LOG = mix(Mix(60, 6.0), 1)


def test_speeds_fall_evenly_from_the_full_one() -> None:
    assert falling_speeds(5, 0.6) == pytest.approx((1.0, 0.9, 0.8, 0.7, 0.6))
    assert falling_speeds(1, 0.6) == (1.0,)


def test_an_idle_pool_keeps_every_promise_and_a_flooded_one_hardly_any() -> None:
    pool = SETTING.pool(2, 1.0)
    idle, flooded = with_density(LOG, 0.1, 1), with_density(LOG, 6.0, 1)
    assert serve(pool, idle, ROUTERS["LeastLoaded"], 1).goodput == 1.0
    assert serve(pool, flooded, ROUTERS["LeastLoaded"], 1).goodput < 0.5


def test_a_pool_of_one_serves_the_same_whatever_the_rule() -> None:
    pool = SETTING.pool(1, 1.0)
    thin = with_density(LOG, 0.3, 1)
    assert (
        len({serve(pool, thin, ROUTERS[name], 1) for name in ("RoundRobin", "CompletionTime", "LlmD")}) == 1
    )


@given(st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.integers(0, 5))
def test_what_a_thin_log_has_every_denser_one_has_too(one: float, other: float, seed: int) -> None:
    thin = with_density(LOG, min(one, other), seed).requests
    dense = with_density(LOG, max(one, other), seed).requests
    assert set(thin) <= set(dense) <= set(LOG.requests)


def test_a_denser_log_has_the_same_requests_sooner() -> None:
    dense = with_density(LOG, 2.0, 1).requests
    assert len(dense) == len(LOG.requests)
    assert dense[-1].arrival_ns == pytest.approx(LOG.requests[-1].arrival_ns / 2, abs=1)


def test_parts_of_a_log_begin_at_time_0_and_lose_no_more_than_the_rest_of_the_division() -> None:
    pieces = parts(LOG, 4)
    assert all(piece.requests[0].arrival_ns == 0 for piece in pieces)
    assert sum(len(piece.requests) for piece in pieces) == len(LOG.requests) // 4 * 4


def test_a_log_of_sessions_without_times_cannot_be_made_denser() -> None:
    chain = tuple(Request(0, 100, 10, session=1, think_ns=5) for _ in range(4))
    with pytest.raises(ValueError, match="4 of 4 requests come after another one"):
        alone(Workload(chain, 512, "chain", ""))
    timed = replace(LOG, requests=tuple(replace(one, blocks=(1, 2)) for one in LOG.requests))
    assert all(one.blocks == () for one in alone(timed).requests)


def cell(size: int, *, pays: bool) -> Cell:
    return Cell(size, 1.0, 1.0, 0.9, 0.9, "RoundRobin", (0.0,), 0.0, pays, 60.0, 5.0)


def test_it_pays_from_the_size_after_which_no_pool_loses() -> None:
    paying = {2: True, 3: False, 5: True, 8: True}
    assert _pays_from([cell(size, pays=pays) for size, pays in paying.items()]) == 5
    assert _pays_from([cell(8, pays=False), cell(5, pays=True)]) is None


def thin_log(count: int, output_tokens: int = 20) -> Workload:
    requests = tuple(Request(at * 1_000_000_000, 500, output_tokens) for at in range(count))
    return Workload(requests, 512, "thin", "")


def test_a_log_that_loads_no_pool_is_told_with_what_it_reaches() -> None:
    question = Question(SETTING.pool(1, 1.0), (thin_log(20),), (2,), (1.0,), ROUTERS["CompletionTime"])
    with pytest.raises(ValueError, match=r"thin cannot load a pool of 2: with all its 20 requests .* 1\.000"):
        threshold(question)


def test_promises_that_one_request_alone_breaks_are_told() -> None:
    hasty = {"interactive": Objective(1_000_000, 1_000_000, 100)}
    pool = replace(SETTING.pool(1, 1.0), objectives=hasty)
    question = Question(pool, (thin_log(20),), (2,), (1.0,), ROUTERS["CompletionTime"])
    with pytest.raises(ValueError, match=r"a pool of 2 never keeps 0\.9 of the promises"):
        threshold(question)


def test_a_log_of_one_request_is_no_load_and_is_not_called_too_slow() -> None:
    question = Question(SETTING.pool(1, 1.0), (thin_log(1),), (2,), (1.0,), ROUTERS["CompletionTime"])
    with pytest.raises(ValueError, match="has 1 requests, all at one moment: that is no load"):
        threshold(question)


def test_a_log_that_loads_a_pool_only_as_one_burst_is_a_finding() -> None:
    question = Question(SETTING.pool(1, 1.0), (thin_log(60, 400),), (1,), (1.0,), ROUTERS["CompletionTime"])
    found = threshold(question)
    (told,) = threshold_screen(question, found).findings
    assert "that is one burst" in told


def test_unequal_cards_gain_more_than_equal_ones_and_every_cell_is_under_a_load_that_tells() -> None:
    logs = tuple(mix(Mix(100, 8.0), seed) for seed in (1, 2))
    question = Question(SETTING.pool(1, 1.0), logs, (3,), (1.0, 0.5), ROUTERS["CompletionTime"])
    done: list[int] = []
    found = threshold(question, done.append)
    equal, unequal = found.cells
    assert done == [1, 2]
    assert unequal.gain_points > equal.gain_points
    assert unequal.requests_per_second < equal.requests_per_second
    assert not any(one.is_one_burst for one in found.cells)
    assert all(0.85 <= one.simple_goodput <= 1.0 for one in found.cells)
    assert found == threshold(question)
