"""Who may hold memory: never more than there is, nearest completion first, and nobody for ever last."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.trajectories.admission import (
    AdmissionSettings,
    budget_tokens,
    decide,
    eviction_order,
    finished_groups,
    reserve_tokens,
)
from kvpool.plan.trajectories.early_abort import comes_too_late
from kvpool.plan.trajectories.program import Program, group_progress

SETTINGS = AdmissionSettings()
SECOND = 1_000_000_000


def program(
    ident: int,
    group: int = 0,
    context: int = 1000,
    final: int = 3000,
    done: int = 0,
    *,
    waiting_since: int = 0,
    admitted: bool = False,
    computing: bool = False,
    finished: bool = False,
) -> Program:
    return Program(
        ident, group, context, final, done, 10, ident, waiting_since, admitted, computing, finished
    )


def test_the_budget_keeps_something_of_both_tiers_back() -> None:
    assert budget_tokens(1000, 2000, SETTINGS) == 2750


def test_a_program_reserves_what_it_holds_and_half_of_what_is_to_come() -> None:
    assert reserve_tokens(program(1), SETTINGS) == 2000
    assert reserve_tokens(program(1, context=4000), SETTINGS) == 4000


def test_a_program_that_grows_no_more_reserves_what_it_holds() -> None:
    whole = AdmissionSettings(growth_share=1.0)
    assert reserve_tokens(program(1, context=3000), whole) == 3000
    assert reserve_tokens(program(1), whole) == 3000


def test_of_programs_that_arrived_together_the_first_made_comes_first() -> None:
    together = [replace(program(2, group=1), arrival_ns=0), replace(program(1, group=2), arrival_ns=0)]
    assert decide(together, 6000, 0, SETTINGS).admitted == (1, 2)
    assert eviction_order(together) == (2, 1)
    assert eviction_order([program(1), program(2)]) == (2, 1)


def test_the_last_program_may_fill_the_budget_to_the_last_token() -> None:
    three = [program(1), program(2), program(3)]
    assert decide(three, 4000, 0, SETTINGS).admitted == (1, 2)
    assert decide(three, 3999, 0, SETTINGS).admitted == (1,)


def test_within_a_group_the_member_nearest_its_end_goes_first_and_is_kept_longest() -> None:
    members = [program(1, done=2), program(2, done=7), program(3, done=10, finished=True)]
    assert decide(members, 3000, 0, SETTINGS).admitted == (2,)
    assert eviction_order(members) == (3, 1, 2)


def test_progress_is_the_share_of_the_expected_turns_and_never_more_than_all() -> None:
    done = [program(1, done=4), program(2, done=15), program(3, done=3, finished=True)]
    assert [one.progress for one in done] == [0.4, 1.0, 1.0]
    # 4 of 10, 10 of 10, and 3 of 3.
    assert group_progress(done) == {0: 17 / 23}
    assert group_progress([replace(program(1, done=1), expected_turns=1)]) == {0: 1.0}
    assert group_progress([program(1, finished=True)]) == {0: 0.0}


def test_who_waited_too_long_goes_first_and_of_those_who_waited_longest() -> None:
    near = program(1, group=1, done=9, waiting_since=100 * SECOND)
    new = program(2, group=2, waiting_since=90 * SECOND)
    old = program(3, group=3, waiting_since=80 * SECOND)
    settings = AdmissionSettings(age_ns=10 * SECOND)

    def first(now_seconds: int) -> tuple[int, ...]:
        decision = decide([near, new, old], 2500, now_seconds * SECOND, settings)
        return (*decision.admitted, *decision.deferred)

    assert first(89) == (1, 2, 3)
    assert first(90) == (3, 1, 2)
    assert first(100) == (3, 2, 1)


def test_with_room_for_all_nobody_is_held_back_and_arrival_decides() -> None:
    decision = decide([program(3, done=9), program(1), program(2)], 6000, 0, SETTINGS)
    assert decision.bypass
    assert decision.admitted == (1, 2, 3)


def test_without_room_for_all_the_group_nearest_its_end_goes_first() -> None:
    near = [program(5, group=1, done=8), program(6, group=1, done=2)]
    far = [program(1, group=2, done=4), program(2, group=2, done=4)]
    decision = decide([*far, *near], 4500, 0, SETTINGS)
    assert not decision.bypass
    assert decision.admitted == (5, 6)
    assert decision.deferred == (1, 2)


def test_finished_members_bring_their_group_nearer_to_its_end() -> None:
    lone = [program(1, group=1, done=5)]
    nearly = [program(2, group=2, done=3), program(3, group=2, done=10, finished=True)]
    assert decide([*lone, *nearly], 2500, 0, SETTINGS).admitted == (2,)
    assert group_progress([*lone, *nearly]) == {1: 0.5, 2: 0.65}


def test_who_was_admitted_stays_so() -> None:
    decision = decide([program(1, done=9), program(2, admitted=True)], 2500, 0, SETTINGS)
    assert (decision.admitted, decision.deferred) == ((2,), (1,))


def test_a_large_program_is_overtaken_until_it_has_waited_long_enough() -> None:
    large = program(1, group=1, context=6000, final=6000)
    small = [program(2, done=1), program(3, done=1), program(4, done=1)]
    young = decide([large, *small], 6500, 0, SETTINGS)
    assert young.admitted == (2, 3, 4)
    assert young.deferred == (1,)
    held = [program(2, done=1, admitted=True), program(3, done=1), program(4, done=1)]
    old = decide([large, *held], 6500, SETTINGS.age_ns, SETTINGS)
    assert old.admitted == (2,)
    assert old.deferred[0] == 1


def test_a_program_larger_than_all_memory_runs_when_nothing_else_does() -> None:
    assert decide([program(1, context=9000, final=9000)], 5000, 0, SETTINGS).admitted == (1,)


PROGRAMS = st.lists(
    st.builds(
        program,
        st.integers(0, 10_000),
        st.integers(0, 4),
        st.integers(1, 5000),
        st.integers(1, 9000),
        st.integers(0, 12),
        waiting_since=st.integers(0, 1000).map(lambda seconds: seconds * SECOND),
        computing=st.booleans(),
        finished=st.booleans(),
    ),
    max_size=20,
    unique_by=lambda one: one.ident,
)


@given(PROGRAMS, st.integers(0, 60_000))
def test_what_is_admitted_fits_and_everybody_is_either_in_or_in_line(
    programs: list[Program], capacity: int
) -> None:
    decision = decide(programs, capacity, 1000 * SECOND, SETTINGS)
    live = sorted(one.ident for one in programs if not one.finished)
    assert sorted([*decision.admitted, *decision.deferred]) == live
    assert decision.reserved_tokens <= capacity or len(decision.admitted) == 1
    assert bool(decision.admitted) == bool(live)


@given(PROGRAMS, st.integers(0, 60_000), st.randoms(use_true_random=False))
def test_the_order_in_which_programs_are_told_does_not_matter(
    programs: list[Program], capacity: int, shuffler: object
) -> None:
    shuffled = list(programs)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis hands in a random.Random
    assert decide(programs, capacity, 0, SETTINGS) == decide(shuffled, capacity, 0, SETTINGS)
    assert eviction_order(programs) == eviction_order(shuffled)


def test_memory_is_taken_from_finished_ones_then_from_those_furthest_from_their_end() -> None:
    order = eviction_order(
        [
            program(1, group=1, done=8),
            program(2, group=2, done=1),
            program(3, group=2, done=1, computing=True),
            program(4, group=1, finished=True),
        ]
    )
    assert order == (4, 2, 1)


def test_a_group_is_over_when_its_last_member_is() -> None:
    members = [program(1, group=1, finished=True), program(2, group=1), program(3, group=2, finished=True)]
    assert finished_groups(members) == (2,)
    many = [program(ident, group=group, finished=True) for ident, group in enumerate((8, 1, 16))]
    assert finished_groups(many) == (1, 8, 16)


def test_work_past_its_deadline_is_not_begun() -> None:
    assert comes_too_late(5, 6, 10)
    assert not comes_too_late(5, 5, 10)
