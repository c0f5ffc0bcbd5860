"""HBM and host memory as an exclusive pair: states, copies that take time, and what it finds."""

from hypothesis import given
from hypothesis import strategies as st

from kvpool.sim.caches.paths import Paths, paths_of
from kvpool.sim.caches.recency_stack import recency_hits
from kvpool.sim.tiers.accesses import Access
from kvpool.sim.tiers.pair import ExclusivePair
from kvpool.sim.workloads.request import Request, Workload

SECOND = 10**9
PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4).map(tuple), min_size=1, max_size=40)


def paths(prompts: list[tuple[int, ...]]) -> Paths:
    requests = tuple(Request(at * SECOND, 512 * len(ids), 1, ids) for at, ids in enumerate(prompts))
    return paths_of(Workload(requests, 512, "made", ""))


def served(pair: ExclusivePair, prompts: list[tuple[int, ...]]) -> list[int]:
    made = paths(prompts)
    return [pair.access(Access(now, nodes)) for now, nodes in zip(made.arrivals_ns, made.nodes, strict=True)]


@given(PROMPTS, st.integers(4, 8), st.integers(0, 8))
def test_a_pair_finds_what_one_cache_of_both_sizes_finds(
    prompts: list[tuple[int, ...]], hbm: int, host: int
) -> None:
    assert served(ExclusivePair(hbm, host), prompts) == list(recency_hits(paths(prompts), [hbm + host])[0])


@given(PROMPTS, st.integers(1, 6), st.integers(0, 6), st.integers(0, 4 * SECOND))
def test_no_block_rests_in_both_and_no_side_holds_more_than_it_can(
    prompts: list[tuple[int, ...]], hbm: int, host: int, copy_ns: int
) -> None:
    pair = ExclusivePair(hbm, host, copy_ns)
    made = paths(prompts)
    for now, nodes in zip(made.arrivals_ns, made.nodes, strict=True):
        pair.access(Access(now, nodes))
        assert pair.used[1] <= host
        assert pair.in_both <= pair.most_in_both
    pair.settle()
    assert pair.in_both == 0
    assert pair.used[1] <= host


def test_a_copy_under_way_holds_a_slot_on_both_sides() -> None:
    pair = ExclusivePair(1, 1, copy_ns=10 * SECOND)
    served(pair, [(1,), (2,)])
    assert (pair.in_both, pair.used) == (1, (2, 1))
    pair.settle()
    assert (pair.in_both, pair.used) == (0, (1, 1))


def test_a_block_that_is_used_while_it_is_copied_down_stays() -> None:
    pair = ExclusivePair(1, 1, copy_ns=10 * SECOND)
    assert served(pair, [(1,), (2,), (1,)]) == [0, 0, 1]
    pair.settle()
    # 2 went down in its place.
    assert pair.used == (1, 1)
