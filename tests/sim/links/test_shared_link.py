"""Transfers that share one link."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.plan.timing.model import LinkModel
from kvpool.sim.links.shared import SharedLink

GB = 1_000_000_000


def ends_of(link_rate: int, transfers: list[tuple[int, int]]) -> dict[int, int]:
    """Run transfers, given as (start, bytes) in order of start; returns the end of each by its place."""
    link = SharedLink(link_rate)
    ends: dict[int, int] = {}

    def until(now_ns: int | None) -> None:
        while (due := link.due_ns()) is not None and (now_ns is None or due <= now_ns):
            ends.update(dict.fromkeys(link.take(due), due))

    for place, (start, count_bytes) in enumerate(transfers):
        until(start)
        link.join(start, place, count_bytes)
    until(None)
    return ends


def exact_ends(link_rate: int, transfers: list[tuple[int, int]]) -> dict[int, Fraction]:
    """The same by definition, with fractions: everyone present gets an equal share."""
    left = {place: Fraction(count_bytes) for place, (_, count_bytes) in enumerate(transfers)}
    now, present, coming, ends = Fraction(0), list[int](), list(range(len(transfers))), {}
    while present or coming:
        rate = Fraction(link_rate, 10**9) / len(present) if present else Fraction(0)
        ending = now + min(left[place] for place in present) / rate if present else None
        if coming and (ending is None or transfers[coming[0]][0] <= ending):
            then = Fraction(transfers[coming[0]][0])
        else:
            assert ending is not None
            then = ending
        for place in present:
            left[place] -= rate * (then - now)
        now = then
        for place in [place for place in present if left[place] <= 0]:
            ends[place] = now
            present.remove(place)
        while coming and transfers[coming[0]][0] <= now:
            present.append(coming.pop(0))
    return ends


def test_one_flow_alone_takes_bytes_over_bandwidth() -> None:
    assert ends_of(10 * GB, [(5, 3 * GB)]) == {0: 5 + LinkModel(0, 10 * GB).transfer_ns(3 * GB)}


def test_two_equal_flows_that_start_together_take_twice_as_long() -> None:
    assert ends_of(GB, [(0, GB), (0, GB)]) == {0: 2 * GB, 1: 2 * GB}


def test_of_two_flows_the_smaller_ends_after_twice_its_time_and_the_larger_after_both() -> None:
    # The small one shares all the time: 2 s. By then the large one has 1 GB of 3, and has the link alone.
    assert ends_of(GB, [(0, GB), (0, 3 * GB)]) == {0: 2 * GB, 1: 4 * GB}


def test_a_flow_that_comes_in_the_middle_delays_the_one_before_it_by_what_it_takes() -> None:
    # 1 s alone (1 of 2 GB), then shared: the rest takes 2 s. The newcomer has 1 of 1.5 GB by then.
    assert ends_of(GB, [(0, 2 * GB), (GB, 3 * GB // 2)]) == {0: 3 * GB, 1: 7 * GB // 2}


TRANSFERS = st.lists(st.tuples(st.integers(0, 10**7), st.integers(1, 10**6)), min_size=1, max_size=12).map(
    sorted
)


@settings(deadline=None, max_examples=100)
@given(TRANSFERS, st.sampled_from([10**6, 25 * GB // 7, 10**9]))
def test_ends_are_those_of_exact_sharing_to_the_nanosecond(
    transfers: list[tuple[int, int]], rate: int
) -> None:
    told, exact = ends_of(rate, transfers), exact_ends(rate, transfers)
    assert told.keys() == exact.keys()
    for place, end in exact.items():
        assert -1 <= told[place] - end <= len(transfers) + 1


@settings(deadline=None, max_examples=100)
@given(TRANSFERS)
def test_a_link_is_busy_for_the_bytes_that_it_carried(transfers: list[tuple[int, int]]) -> None:
    link = SharedLink(GB)
    for place, (_, count_bytes) in enumerate(transfers):
        link.join(0, place, count_bytes)
    total = sum(count_bytes for _, count_bytes in transfers)
    assert link.backlog_ns(0) == total
    assert sorted(link.take(total + len(transfers))) == list(range(len(transfers)))
    assert link.moved_bytes == total
    assert total <= link.busy_ns <= total + len(transfers)
    assert (len(link), link.due_ns(), link.backlog_ns(total * 2)) == (0, None, 0)


def test_what_is_left_on_a_link_shrinks_as_time_passes_though_nobody_takes_it() -> None:
    link = SharedLink(GB)
    link.join(0, 1, GB)
    assert [link.backlog_ns(at) for at in (0, GB // 4, GB)] == [GB, 3 * GB // 4, 0]
    link.take(GB)
    link.join(2 * GB, 2, GB)
    link.join(2 * GB, 3, GB)
    assert link.backlog_ns(3 * GB) == GB


def test_a_link_has_been_busy_until_now_and_not_while_it_was_idle() -> None:
    link = SharedLink(GB)
    link.join(GB, 1, GB)
    assert link.take(GB + GB // 4) == []
    assert link.busy_ns == GB // 4
    assert link.take(5 * GB) == [1]
    assert link.busy_ns == GB


def test_a_link_whose_end_died_carries_nothing_more() -> None:
    link = SharedLink(GB)
    link.join(0, 1, GB)
    link.forget()
    assert (len(link), link.due_ns(), link.take(9 * GB), link.moved_bytes) == (0, None, [], GB)


def test_a_byte_a_second_is_a_bandwidth() -> None:
    assert ends_of(1, [(0, 2)]) == {0: 2 * GB}


def test_a_link_without_bandwidth_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        SharedLink(0)
