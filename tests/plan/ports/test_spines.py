"""Choosing spines: both ends, ties, lost links, and the closed forms of what chance does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.ports.collisions import chosen_most, flows_seen, idle_share, no_collision
from kvpool.plan.ports.spines import Coordinator, View, worth_choosing
from kvpool.sim.streams import Stream


def first(_: int) -> int:
    return 0


def test_the_spine_that_is_least_used_at_its_worse_end_is_chosen() -> None:
    fabric = Coordinator(leaves=3, spines=3)
    fabric.started(1, 0, 2, 0)
    fabric.started(2, 1, 2, 1)
    assert fabric.choose(0, 2, first) == 2
    fabric.started(3, 0, 1, 2)
    fabric.started(4, 0, 1, 2)
    # Leaf 0 sends 1, 0, 2 flows to the spines, leaf 2 gets 1, 1, 0: at worse 1, 1, 2, in sum 2, 1, 2.
    assert fabric.choose(0, 2, first) == 1


def test_the_worse_end_counts_before_the_sum_of_both() -> None:
    fabric = Coordinator(leaves=4, spines=2)
    # Spine 0 carries 3 flows at one end and none at the other, spine 1 carries 2 at each.
    for number, (source, destination, spine) in enumerate(
        [(0, 3, 0), (0, 3, 0), (0, 3, 0), (0, 3, 1), (0, 3, 1), (3, 1, 1), (3, 1, 1)]
    ):
        fabric.started(number, source, destination, spine)
    assert fabric.choose(0, 1, first) == 1
    assert fabric.choose(0, 2, first) == 1
    fabric.started(8, 3, 1, 1)
    assert fabric.choose(0, 1, first) == 0


def test_no_lot_is_drawn_where_one_spine_is_least_used() -> None:
    def never(_: int) -> int:
        raise AssertionError

    fabric = Coordinator(leaves=2, spines=3)
    fabric.started(1, 0, 1, 0)
    fabric.started(2, 0, 1, 2)
    assert fabric.choose(0, 1, never) == 1


def test_of_the_spines_that_are_left_the_least_used_is_chosen() -> None:
    fabric = Coordinator(leaves=2, spines=4)
    for number, spine in enumerate((1, 1, 2, 3, 3, 3)):
        fabric.started(number, 0, 1, spine)
    fabric.link_lost(0, 0)
    assert fabric.choose(0, 1, first) == 2
    assert fabric.choose_by(View.SOURCE_LEAF, 0, 0, 1, first) == 2


def test_a_lost_link_tells_of_what_it_carried_either_way() -> None:
    fabric = Coordinator(leaves=3, spines=2)
    fabric.started(1, 0, 2, 0)
    fabric.started(2, 2, 1, 0)
    fabric.started(3, 0, 1, 0)
    fabric.started(4, 0, 2, 1)
    assert fabric.link_lost(2, 0) == (1, 2)


def test_equal_spines_are_drawn_by_lot() -> None:
    fabric = Coordinator(leaves=2, spines=4)
    draw = Stream(1)
    assert {fabric.choose(0, 1, draw.below) for _ in range(100)} == {0, 1, 2, 3}


def test_only_both_ends_see_a_crowd_at_the_receiver() -> None:
    fabric = Coordinator(leaves=3, spines=2)
    fabric.started(1, 1, 2, 0)
    draw = Stream(2)
    seen = {
        view: {fabric.choose_by(view, 0, 0, 2, draw.below) for _ in range(60)}
        for view in (View.NONE, View.OWN, View.SOURCE_LEAF, View.BOTH_ENDS)
    }
    assert seen[View.BOTH_ENDS] == {1}
    assert seen[View.SOURCE_LEAF] == seen[View.OWN] == seen[View.NONE] == {0, 1}


def test_a_sender_on_its_own_goes_round_the_spines() -> None:
    fabric = Coordinator(leaves=2, spines=4)
    taken = [fabric.choose_by(View.OWN, 7, 0, 1, first) for _ in range(6)]
    assert taken == [0, 1, 2, 3, 0, 1]


def test_a_flow_that_ends_no_longer_counts() -> None:
    fabric = Coordinator(leaves=2, spines=2)
    fabric.started(1, 0, 1, 0)
    assert fabric.active(0) == ((1, 0), (0, 0))
    assert fabric.active(1) == ((0, 0), (1, 0))
    fabric.ended(1)
    fabric.ended(1)
    assert fabric.active(0) == fabric.active(1) == ((0, 0), (0, 0))


def test_a_flow_is_counted_once() -> None:
    fabric = Coordinator(leaves=2, spines=2)
    fabric.started(1, 0, 1, 0)
    with pytest.raises(ValueError, match="flow 1 is under way already"):
        fabric.started(1, 0, 1, 1)


def test_a_lost_link_is_not_chosen_and_its_flows_are_told() -> None:
    fabric = Coordinator(leaves=3, spines=2)
    fabric.started(1, 0, 1, 0)
    fabric.started(2, 0, 1, 1)
    fabric.started(3, 2, 0, 0)
    assert fabric.link_lost(0, 0) == (1, 3)
    assert fabric.active(0) == ((0, 1), (0, 0))
    for view in View:
        assert fabric.choose_by(view, 0, 0, 1, first) == 1
    assert fabric.link_lost(1, 1) == (2,)
    assert fabric.choose(0, 1, first) is None
    assert fabric.choose_by(View.NONE, 0, 0, 1, first) is None
    fabric.link_back(0, 0)
    assert fabric.choose(0, 1, first) == 0


def test_flows_below_fifty_milliseconds_are_not_worth_a_question() -> None:
    assert worth_choosing(50_000_000)
    assert not worth_choosing(49_999_999)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40),
    st.integers(1, 6),
    st.integers(0, 2**32),
)
def test_counts_come_back_to_zero_whatever_was_chosen(
    ends: list[tuple[int, int]], spines: int, seed: int
) -> None:
    fabric, draw = Coordinator(4, spines), Stream(seed)
    for number, (source, destination) in enumerate(ends):
        spine = fabric.choose(source, destination, draw.below)
        assert spine is not None
        fabric.started(number, source, destination, spine)
    assert sum(sum(fabric.active(leaf)[0]) for leaf in range(4)) == len(ends)
    for number in range(len(ends)):
        fabric.ended(number)
    assert all(fabric.active(leaf) == ((0,) * spines, (0,) * spines) for leaf in range(4))


@given(st.integers(1, 64), st.integers(1, 16))
def test_flows_between_two_leaves_are_spread_evenly_when_chosen(count: int, spines: int) -> None:
    fabric, draw = Coordinator(2, spines), Stream(count)
    for number in range(count):
        spine = fabric.choose(0, 1, draw.below)
        assert spine is not None
        fabric.started(number, 0, 1, spine)
    assert max(fabric.active(0)[0]) == chosen_most(count, spines)


@pytest.mark.parametrize(("flows", "spines", "seen"), [(8, 8, 1.875), (16, 16, 1.9375), (1, 8, 1.0)])
def test_random_flows_see_one_and_f_minus_one_over_s(flows: int, spines: int, seen: float) -> None:
    assert flows_seen(flows, spines) == seen
    draw = Stream(4)
    total = rounds = 0
    for _ in range(4_000):
        taken = [draw.below(spines) for _ in range(flows)]
        total += sum(taken.count(spine) for spine in taken)
        rounds += flows
    assert total / rounds == pytest.approx(seen, abs=0.02)


def test_no_collision_and_idle_spines_have_their_closed_forms() -> None:
    assert no_collision(8, 8) == pytest.approx(0.0024, abs=0.00005)
    assert no_collision(9, 8) == 0.0
    assert no_collision(2, 8) == 7 / 8
    assert idle_share(8, 8) == pytest.approx(0.344, abs=0.001)
    assert idle_share(16, 16) == pytest.approx(0.356, abs=0.001)
    assert chosen_most(9, 8) == 2
