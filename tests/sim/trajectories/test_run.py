"""Programs of many turns on an engine whose memory holds some of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.timing.model import TimingModel
from kvpool.plan.trajectories.admission import AdmissionSettings
from kvpool.sim.trajectories.pool import ContextPool
from kvpool.sim.trajectories.run import Engine, run_trajectories
from kvpool.sim.workloads.generators.trajectories import Programs, Trajectory, Turn, trajectories

TIMING = TimingModel(1e6, 50_000, 0.5, 10e6, 20_000, 30)
SECOND = 1_000_000_000
SMALL = Programs(groups=8, members=4, turns=12)


def engine(tokens: int, slots: int = 4) -> Engine:
    return Engine(TIMING, slots, tokens // 4, tokens - tokens // 4, 40_000, 12)


def test_one_program_alone_takes_the_sum_of_its_turns_and_tools() -> None:
    turns = (Turn(1000, 50, 3 * SECOND), Turn(200, 10, SECOND))
    report = run_trajectories([Trajectory(0, 0, 5, turns)], engine(50_000), None)
    first = TIMING.prefill_ns(1000) + 50 * TIMING.step_ns(1, 1050)
    second = TIMING.prefill_ns(1250, 1050) + 10 * TIMING.step_ns(1, 1260)
    assert report.makespan_ns == 5 + first + 3 * SECOND + second
    assert report.recomputed_tokens == 0
    assert report.prefilled_tokens == 1200


def test_two_programs_that_do_not_fit_together_push_each_other_out() -> None:
    turns = (Turn(1000, 10, SECOND), Turn(10, 10, SECOND))
    pair = [Trajectory(0, 0, 0, turns), Trajectory(1, 0, 1, turns)]
    apart = run_trajectories(pair, engine(1100, slots=1), None)
    together = run_trajectories(pair, engine(4000, slots=1), None)
    # The one that comes back first pushes out the other, which then pushes out nobody that still lives.
    assert apart.recomputed_tokens == 2 * 1010
    assert together.recomputed_tokens == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_admission_ends_recomputing_and_finishes_the_first_group_sooner(seed: int) -> None:
    programs = trajectories(SMALL, seed)
    base = run_trajectories(programs, engine(300_000), None)
    held = run_trajectories(programs, engine(300_000), AdmissionSettings())
    assert held.recomputed_tokens < base.recomputed_tokens / 10
    assert held.first_group_ns < base.first_group_ns / 1.5


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_with_ample_memory_admission_changes_nothing(seed: int) -> None:
    programs = trajectories(SMALL, seed)
    base = run_trajectories(programs, engine(3_000_000), None)
    held = run_trajectories(programs, engine(3_000_000), AdmissionSettings())
    assert held.bypassed == held.decisions > 0
    assert (held.makespan_ns, held.group_ends_ns) == (base.makespan_ns, base.group_ends_ns)


@given(st.integers(0, 1000), st.integers(500, 60_000), st.integers(1, 6), st.booleans())
def test_every_program_ends_whatever_the_memory_and_only_fresh_tokens_are_not_recomputed(
    seed: int, tokens: int, slots: int, admits: bool
) -> None:
    programs = trajectories(Programs(groups=2, members=3, turns=4, first_prompt_tokens=800), seed)
    report = run_trajectories(programs, engine(tokens, slots), AdmissionSettings() if admits else None)
    assert sorted(report.group_ends_ns) == [0, 1]
    assert max(report.group_ends_ns.values()) == report.makespan_ns
    fresh = sum(turn.prompt_tokens for one in programs for turn in one.turns)
    assert report.prefilled_tokens - report.recomputed_tokens == fresh


def test_programs_do_not_depend_on_how_many_others_are_made() -> None:
    assert trajectories(Programs(groups=2), 7) == trajectories(Programs(groups=5), 7)[:16]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 80)), max_size=40))
def test_a_pool_never_holds_more_than_fits(kept: list[tuple[int, int]]) -> None:
    pool = ContextPool(100)
    for ident, tokens in kept:
        gone = pool.keep(ident, tokens, pool.by_age())
        assert pool.held_tokens(ident) == tokens
        assert all(pool.held_tokens(one) == 0 for one in gone)
        assert pool.used_tokens == sum(pool.held_tokens(one) for one in range(7)) <= 100


def test_what_does_not_fit_beside_those_that_run_is_not_held() -> None:
    pool = ContextPool(100)
    pool.keep(1, 60, ())
    assert pool.keep(2, 60, ()) == ()
    assert (pool.held_tokens(1), pool.held_tokens(2)) == (60, 0)
