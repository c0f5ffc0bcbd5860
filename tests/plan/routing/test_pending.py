"""Sums over sequences by remaining length, against the walk that they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.routing.pending import Pending

SEQUENCES = st.lists(
    st.tuples(st.integers(-3, 40), st.integers(1, 50), st.sampled_from([50, 100]), st.sampled_from([60, 90])),
    max_size=25,
)


def filled(sequences: list[tuple[int, int, int, int]], steps: int) -> tuple[Pending, list[int]]:
    pending = Pending()
    ends = [
        pending.enter(remaining, reserved, weight, tpot) for remaining, reserved, weight, tpot in sequences
    ]
    pending.steps = steps
    return pending, ends


def left(remaining: int, steps: int) -> int:
    """What a sequence still needs, after that many steps, at least one token."""
    return max(1, max(1, remaining) - steps)


@given(SEQUENCES, st.integers(0, 30), st.integers(1, 50))
def test_who_is_delayed_and_how_long_is_what_a_walk_over_all_finds(
    sequences: list[tuple[int, int, int, int]], steps: int, most: int
) -> None:
    pending, _ = filled(sequences, steps)
    walked = sum(weight * min(left(remaining, steps), most) for remaining, _, weight, _ in sequences)
    assert pending.delayed_tokens(most) == walked
    assert pending.remaining_tokens() == sum(left(remaining, steps) for remaining, *_ in sequences)


@given(SEQUENCES, st.integers(0, 30), st.integers(1, 400))
def test_room_comes_when_the_nearest_ends_together_have_freed_it(
    sequences: list[tuple[int, int, int, int]], steps: int, wanted: int
) -> None:
    pending, _ = filled(sequences, steps)
    freed, expected = 0, 0
    for remaining, reserved, *_ in sorted(sequences, key=lambda one: max(1, one[0])):
        expected = left(remaining, steps)
        freed += reserved
        if freed >= wanted:
            break
    assert pending.freed_after_tokens(wanted) == (expected if sequences else 0)


@given(SEQUENCES, SEQUENCES, st.integers(0, 30))
def test_sequences_that_left_leave_no_trace(
    stay: list[tuple[int, int, int, int]], go: list[tuple[int, int, int, int]], steps: int
) -> None:
    pending, ends = filled([*go, *stay], steps)
    for end, (_, reserved, weight, tpot) in zip(ends, go, strict=False):
        pending.leave(end, reserved, weight, tpot)
    alone, _ = filled(stay, steps)
    assert len(pending) == len(alone)
    assert pending.delayed_tokens(17) == alone.delayed_tokens(17)
    assert pending.broken_weight(0, 75) == alone.broken_weight(0, 75)
    assert pending.freed_after_tokens(30) == alone.freed_after_tokens(30)


def test_sums_follow_when_sequences_come_and_go() -> None:
    pending = Pending()
    first = pending.enter(5, 10, 100, 60)
    assert (pending.remaining_tokens(), pending.delayed_tokens(9)) == (5, 500)
    second = pending.enter(7, 30, 50, 90)
    assert (pending.remaining_tokens(), pending.delayed_tokens(9)) == (12, 500 + 350)
    assert [pending.freed_after_tokens(wanted) for wanted in (10, 11, 40, 41)] == [5, 7, 7, 7]
    pending.leave(first, 10, 100, 60)
    assert (pending.remaining_tokens(), pending.delayed_tokens(9)) == (7, 350)
    assert pending.freed_after_tokens(30) == 7
    pending.leave(second, 30, 50, 90)
    assert (pending.remaining_tokens(), pending.delayed_tokens(9), pending.freed_after_tokens(1)) == (0, 0, 0)


def test_a_sequence_that_never_entered_cannot_leave() -> None:
    pending = Pending()
    pending.enter(5, 10, 100, 60)
    with pytest.raises(KeyError):
        pending.leave(5, 11, 100, 60)


def test_only_promises_between_the_two_step_times_count_as_broken() -> None:
    pending = Pending()
    for tpot in (50, 60, 70):
        pending.enter(5, 10, 100, tpot)
    assert pending.broken_weight(50, 70) == 200
    assert pending.broken_weight(51, 60) == 0
