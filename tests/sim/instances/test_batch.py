"""Runs of decode steps that are skipped at once."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.plan.timing.model import TimingModel
from kvpool.sim.instances.batch import Batch, whole_steps
from kvpool.sim.instances.pace import TICKS_PER_NS, Pace, ns_of_ticks, ticks_of_ns

FAST = TimingModel(2_210_000, 19_490, 0.5, 5_310_000, 7_900, 32.7)


@dataclass
class Sequence:
    ident: int
    context: int
    left: int


class StepByStep:
    """The same batch, walked: every sequence is touched every step."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.clock = 0
        self.sequences: list[Sequence] = []
        self.ended: list[tuple[int, int]] = []

    def join(self, ident: int, context: int, left: int) -> None:
        self.sequences.append(Sequence(ident, context, left))

    def step(self) -> int:
        kv_tokens = sum(one.context for one in self.sequences)
        return self.pace.base + self.pace.sequence * len(self.sequences) + self.pace.token * kv_tokens

    def advance(self, until: int) -> None:
        while self.sequences and self.clock + self.step() <= until:
            self.clock += self.step()
            for one in self.sequences:
                one.context += 1
                one.left -= 1
            self.ended += sorted((one.ident, self.clock) for one in self.sequences if one.left == 0)
            self.sequences = [one for one in self.sequences if one.left]


JOINS = st.lists(
    st.tuples(st.integers(0, 400_000_000), st.integers(1, 5000), st.integers(1, 60)), min_size=1, max_size=12
)
TIMINGS = st.builds(
    TimingModel,
    st.just(0.0),
    st.just(0.0),
    st.just(0.0),
    st.floats(1, 1e7),
    st.floats(0, 1e5),
    st.floats(0, 1e3),
)


@settings(deadline=None, max_examples=100)
@given(JOINS, TIMINGS, st.lists(st.integers(0, 10**9), max_size=5))
def test_skipping_runs_of_steps_gives_the_very_times_of_single_steps(
    joins: list[tuple[int, int, int]], timing: TimingModel, looks: list[int]
) -> None:
    skipping, walking = Batch(Pace.of(timing)), StepByStep(Pace.of(timing))
    happenings: list[tuple[int, tuple[int, int] | None]] = [(time, None) for time in looks]
    happenings += [(time, (context, left)) for time, context, left in joins]
    for number, (time, joined) in enumerate(sorted(happenings, key=lambda one: one[0])):
        skipping.advance(ticks_of_ns(time))
        walking.advance(ticks_of_ns(time))
        if joined is not None:
            skipping.idle_until(ticks_of_ns(time))
            walking.clock = skipping.clock
            skipping.join(number, *joined)
            walking.join(number, *joined)
        assert skipping.running == len(walking.sequences)
        assert skipping.kv_tokens == sum(one.context for one in walking.sequences)
    skipping.advance(1 << 90)
    walking.advance(1 << 90)
    assert skipping.ended == walking.ended
    assert skipping.made_tokens == sum(left for _, _, left in joins)


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 10**15), st.integers(1, 10**12), st.integers(0, 10**9))
def test_the_count_of_whole_steps_is_the_largest_that_fits(span: int, first: int, growth: int) -> None:
    count = whole_steps(span, first, growth)
    assert count * first + growth * (count * (count - 1) // 2) <= span
    assert (count + 1) * first + growth * ((count + 1) * count // 2) > span


def test_steps_that_grow_are_counted_to_the_last_tick() -> None:
    # Steps of 5, 10 and 15; and steps of 5 that do not grow.
    counts = {span: whole_steps(span, 5, 5) for span in (0, 4, 5, 14, 15, 29, 30, 49, 50)}
    assert counts == {0: 0, 4: 0, 5: 1, 14: 1, 15: 2, 29: 2, 30: 3, 49: 3, 50: 4}
    assert [whole_steps(span, 5, 0) for span in (4, 5, 9, 10)] == [0, 1, 1, 2]


def test_chunks_take_as_long_together_as_the_prompt_at_once() -> None:
    pace = Pace.of(TimingModel(7, 5, 3, 0, 0, 0))
    whole = (5 * 10 + 3 * 10 * 10) * TICKS_PER_NS
    assert pace.chunk_ticks(0, 10) == pace.chunk_ticks(0, 4) + pace.chunk_ticks(4, 6) == whole
    assert pace.prefill_base == 7 * TICKS_PER_NS


def test_a_step_takes_at_least_a_nanosecond_and_times_are_rounded_up() -> None:
    assert Pace.of(TimingModel(0, 0, 0, 0.5, 0, 0)).base == TICKS_PER_NS
    assert [ns_of_ticks(TICKS_PER_NS + more) for more in (-1, 0, 1)] == [1, 1, 2]


def test_a_sequence_alone_takes_the_sum_of_its_steps() -> None:
    batch = Batch(Pace.of(FAST))
    batch.join(7, 1000, 100)
    due = batch.due_ns()
    assert due is not None
    by_hand = sum(FAST.step_ns(1, 1000 + step) for step in range(100))
    assert abs(due - by_hand) <= 100
    batch.advance(ticks_of_ns(due))
    assert [(ident, ns_of_ticks(ticks)) for ident, ticks in batch.take(ticks_of_ns(due))] == [(7, due)]
    assert (batch.running, batch.kv_tokens, batch.due_ns()) == (0, 0, None)


def test_a_sequence_that_was_taken_out_leaves_the_others_as_they_would_be_without_it() -> None:
    batch = Batch(Pace.of(FAST))
    batch.join(1, 10, 5)
    batch.join(2, 100, 50)
    batch.step()
    assert batch.remove(1) == 4
    assert (batch.running, batch.kv_tokens) == (1, 101)
    assert 1 not in batch
    assert batch.context_tokens(2) == 101


def test_a_step_that_runs_is_told_when_it_has_ended() -> None:
    batch = Batch(Pace.of(FAST))
    batch.join(1, 10, 1)
    batch.step()
    due = batch.due_ns()
    assert due is not None
    assert batch.take(ticks_of_ns(due - 1)) == []
    assert [ident for ident, _ in batch.take(ticks_of_ns(due))] == [1]


def test_of_those_that_have_ended_only_those_until_then_are_taken() -> None:
    batch = Batch(Pace.of(TimingModel(0, 0, 0, 1000, 0, 0)))
    for ident, left in ((3, 2), (1, 1), (2, 4)):
        batch.join(ident, 10, left)
    batch.advance(ticks_of_ns(9_000))
    taken = [
        [ident for ident, _ in batch.take(ticks_of_ns(now))] for now in (999, 1_000, 3_999, 4_000, 9_000)
    ]
    assert taken == [[], [1], [3], [2], []]


def test_who_was_taken_out_does_not_end_and_the_others_end_in_their_order() -> None:
    batch = Batch(Pace.of(TimingModel(0, 0, 0, 1000, 0, 0)))
    for ident, left in ((1, 2), (2, 9), (3, 3), (4, 4), (5, 5)):
        batch.join(ident, 10, left)
    assert [batch.remove(ident) for ident in (1, 4)] == [2, 4]
    batch.advance(ticks_of_ns(99_000))
    assert [(ident, ns_of_ticks(ticks)) for ident, ticks in batch.ended] == [
        (3, 3_000),
        (5, 5_000),
        (2, 9_000),
    ]
    assert (batch.running, batch.kv_tokens, batch.made_tokens) == (0, 0, 3 + 5 + 9)


def test_the_clock_of_a_batch_that_runs_does_not_move_for_those_who_wait() -> None:
    batch = Batch(Pace.of(TimingModel(0, 0, 0, 1000, 0, 0)))
    batch.idle_until(7)
    batch.join(1, 10, 5)
    batch.idle_until(ticks_of_ns(5))
    assert batch.clock == 7
    batch.step(extra_ticks=3)
    assert (batch.clock, batch.kv_tokens, batch.made_tokens) == (7 + ticks_of_ns(1_000) + 3, 11, 1)


def test_a_sequence_without_tokens_to_make_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Batch(Pace.of(FAST)).join(1, 10, 0)


def test_a_sequence_that_is_taken_out_before_its_first_token_tells_none() -> None:
    batch = Batch(Pace.of(TimingModel(0, 0, 0, 1000, 0, 0)))
    for ident in (1, 2):
        batch.join(ident, 10, 5)
        batch.fresh.append(ident)
    batch.remove(2)
    batch.step()
    assert [ident for ident, _ in batch.firsts] == [1]
