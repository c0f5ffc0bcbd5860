"""Max-min shares: closed forms, conservation, and the same answer as filling everything at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.ports.collisions import flows_seen
from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.fabric.sharing import SharedLinks
from kvpool.sim.streams import Stream

GIGA = 10**9


def finish_all(links: SharedLinks) -> dict[int, int]:
    ended = {}
    while (following := links.next_finish()) is not None:
        at_ns, flow = following
        links.end(flow, at_ns)
        ended[flow] = at_ns
    return ended


def test_one_flow_takes_its_size_over_the_narrowest_link() -> None:
    links = SharedLinks([4 * GIGA, 2 * GIGA])
    links.start(1, (0, 1), 2 * GIGA, 0)
    assert finish_all(links) == {1: NS_PER_SECOND}


def test_two_flows_on_one_link_get_half_each_until_one_ends() -> None:
    links = SharedLinks([GIGA])
    links.start(1, (0,), GIGA, 0)
    links.start(2, (0,), 2 * GIGA, 0)
    assert links.rate(1) == links.rate(2) == GIGA / 2
    assert finish_all(links) == {1: 2 * NS_PER_SECOND, 2: 3 * NS_PER_SECOND}


def test_what_one_flow_cannot_use_goes_to_the_others() -> None:
    """The textbook's example: a flow held to 1 by its own link leaves 9 to the two that share 10 with it."""
    links = SharedLinks([10 * GIGA, GIGA])
    links.start(1, (0, 1), GIGA, 0)
    links.start(2, (0,), GIGA, 0)
    links.start(3, (0,), GIGA, 0)
    assert links.rate(1) == GIGA
    assert links.rate(2) == links.rate(3) == 4.5 * GIGA


def test_a_flow_over_two_full_links_gets_the_smaller_share() -> None:
    links = SharedLinks([6 * GIGA, 6 * GIGA])
    links.start(1, (0, 1), GIGA, 0)
    links.start(2, (0,), GIGA, 0)
    for flow in (3, 4):
        links.start(flow, (1,), GIGA, 0)
    assert [links.rate(flow) for flow in (1, 2, 3, 4)] == [2 * GIGA, 4 * GIGA, 2 * GIGA, 2 * GIGA]


def test_a_flow_that_starts_later_slows_the_other_from_then_on() -> None:
    links = SharedLinks([GIGA])
    links.start(1, (0,), GIGA, 0)
    links.start(2, (0,), GIGA, NS_PER_SECOND // 2)
    assert finish_all(links) == {1: 3 * NS_PER_SECOND // 2, 2: 2 * NS_PER_SECOND}


def test_random_spines_slow_flows_by_one_and_f_minus_one_over_s() -> None:
    spines, flows, draw = 8, 8, Stream(3)
    slowdowns: list[float] = []
    for _ in range(2_000):
        links = SharedLinks([GIGA] * spines)
        for flow in range(flows):
            links.start(flow, (draw.below(spines),), GIGA, 0)
        slowdowns.extend(GIGA / links.rate(flow) for flow in range(flows))
    assert sum(slowdowns) / len(slowdowns) == pytest.approx(flows_seen(flows, spines), abs=0.03)


PATHS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True),
        st.integers(1, 10**9),
        st.integers(0, 10**9),
    ),
    min_size=1,
    max_size=14,
)
CAPACITIES = st.lists(st.integers(10**6, 10**9), min_size=6, max_size=6)


def filled_at_once(capacities: list[int], paths: dict[int, tuple[int, ...]]) -> dict[int, float]:
    """Progressive filling of all flows over all links, as the textbook says."""
    rates: dict[int, float] = {}
    while len(rates) < len(paths):
        shares = {}
        for link, capacity in enumerate(capacities):
            waiting = [flow for flow, path in paths.items() if link in path and flow not in rates]
            used = sum(rates[flow] for flow, path in paths.items() if link in path and flow in rates)
            if waiting:
                shares[link] = (capacity - used) / len(waiting)
        tightest = min(shares, key=lambda link: (shares[link], link))
        for flow, path in paths.items():
            if tightest in path and flow not in rates:
                rates[flow] = shares[tightest]
    return rates


@given(CAPACITIES, PATHS, st.data())
def test_sharing_out_again_what_a_change_touches_gives_what_sharing_out_all_does(
    capacities: list[int], flows: list[tuple[list[int], int, int]], data: st.DataObject
) -> None:
    links = SharedLinks(capacities)
    under_way = {}
    for flow, (path, _, _) in enumerate(flows):
        links.start(flow, path, 10**15, 0)
        under_way[flow] = tuple(path)
    for flow in data.draw(st.lists(st.sampled_from(sorted(under_way)), unique=True)):
        links.end(flow, 0)
        del under_way[flow]
    expected = filled_at_once(capacities, under_way)
    assert {flow: links.rate(flow) for flow in under_way} == pytest.approx(expected, rel=1e-9)


@given(CAPACITIES, PATHS)
def test_every_flow_ends_with_nothing_left_and_no_link_carries_more_than_it_can(
    capacities: list[int], flows: list[tuple[list[int], int, int]]
) -> None:
    links = SharedLinks(capacities)
    paths = {flow: path for flow, (path, _, _) in enumerate(flows)}
    sizes = {flow: size for flow, (_, size, _) in enumerate(flows)}
    starts = sorted((start, flow) for flow, (_, _, start) in enumerate(flows))
    begun: list[int] = []
    ended: dict[int, int] = {}

    def end_until(limit_ns: int | None) -> None:
        while (following := links.next_finish()) is not None and (
            limit_ns is None or following[0] <= limit_ns
        ):
            at_ns, flow = following
            assert links.end(flow, at_ns) < 1.0
            ended[flow] = at_ns

    for start, flow in starts:
        end_until(start)
        links.start(flow, paths[flow], sizes[flow], start)
        begun.append(flow)
        for link, capacity in enumerate(capacities):
            carried = sum(links.rate(one) for one in begun if one not in ended and link in paths[one])
            assert carried <= capacity * (1 + 1e-9)
    end_until(None)
    assert sorted(ended) == sorted(paths)
    for link, capacity in enumerate(capacities):
        over = [flow for flow in paths if link in paths[flow]]
        if over:
            busy_ns = max(ended[flow] for flow in over) - min(start for start, flow in starts if flow in over)
            assert (
                sum(sizes[flow] for flow in over) <= capacity * (busy_ns + 1) / NS_PER_SECOND * (1 + 1e-9) + 1
            )


def test_a_flow_cannot_start_twice() -> None:
    links = SharedLinks([GIGA])
    links.start(1, (0,), GIGA, 0)
    with pytest.raises(ValueError, match="flow 1"):
        links.start(1, (0,), GIGA, 0)
