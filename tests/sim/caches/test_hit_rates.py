"""Hit rates of prefix caches: closed forms, one rule in two ways, and the public figures."""

import gzip
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.plan.placement.orders import Belady, Recency
from kvpool.plan.placement.policies import NAMES, rule_named
from kvpool.sim.caches.farthest import farthest_hits, next_uses
from kvpool.sim.caches.first_in import first_in_hits
from kvpool.sim.caches.hit_rates import FirstIn, HitRate, Policy, hit_rates
from kvpool.sim.caches.paths import Paths, paths_of
from kvpool.sim.caches.recency_stack import recency_hits
from kvpool.sim.caches.ruled import ruled_hits
from kvpool.sim.caches.unbounded import ceiling_hits
from kvpool.sim.workloads.load import load
from kvpool.sim.workloads.request import Request, Workload

TRACES = Path(__file__).resolve().parents[3] / "traces"
GIB = 2**30
# Llama 3.1 70B at 16 bits: 327,680 bytes a token, 512 tokens a block.
BLOCK_BYTES = 327_680 * 512
# Percent of the tokens of the last half of the requests, as kvcache-simulator 0.1.3 prints them:
# budget in GiB, first in first out, recency, optimal.
PUBLISHED = {
    "conversation": [
        (1, 1.2, 4.5, 4.8),
        (2, 1.9, 4.5, 5.0),
        (4, 2.6, 4.5, 5.4),
        (8, 3.3, 4.5, 6.1),
        (16, 3.8, 4.5, 7.4),
        (32, 4.1, 4.5, 9.5),
        (64, 4.3, 4.5, 12.6),
        (128, 4.5, 4.6, 18.0),
        (256, 5.1, 5.2, 24.5),
        (512, 7.1, 7.3, 32.0),
        (1024, 14.3, 15.3, 38.6),
        (2048, 21.6, 25.0, 39.8),
        (4096, 29.0, 33.0, 39.8),
        (8192, 34.9, 37.8, 39.8),
    ],
    "synthetic": [
        (1, 0.0, 0.1, 0.8),
        (2, 0.0, 0.2, 1.6),
        (4, 0.1, 0.3, 3.0),
        (8, 0.3, 0.6, 5.7),
        (16, 0.7, 1.0, 9.8),
        (32, 1.6, 2.5, 15.9),
        (64, 4.6, 5.3, 23.7),
        (128, 11.0, 11.7, 33.4),
        (256, 18.8, 19.6, 45.6),
        (512, 30.0, 30.2, 60.6),
        (1024, 45.6, 48.8, 73.9),
        (2048, 63.9, 67.7, 86.3),
        (4096, 76.7, 82.6, 86.3),
    ],
}
CEILINGS = {"conversation": 39.8, "synthetic": 86.3}


@cache
def public(name: str) -> Paths:
    with gzip.open(TRACES / f"mooncake_fast25_{name}_trace.jsonl.gz", "rb") as lines:
        return paths_of(load(lines, name))


def workload(*prompts: tuple[int, ...], block_tokens: int = 10) -> Workload:
    """One request a second; each prompt fills its blocks."""
    requests = tuple(
        Request(second * 10**9, block_tokens * len(blocks), 1, blocks)
        for second, blocks in enumerate(prompts)
    )
    return Workload(requests, block_tokens, "made", "")


# Few ids and deep prompts, so that prefixes are shared, cut and come back.
PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5).map(tuple), min_size=1, max_size=40)


@given(PROMPTS, st.integers(0, 12))
def test_recency_in_one_pass_is_recency_block_by_block(prompts: list[tuple[int, ...]], capacity: int) -> None:
    paths = paths_of(workload(*prompts))
    assert list(recency_hits(paths, [capacity])[0]) == list(ruled_hits(paths, Recency(), capacity))


@given(PROMPTS, st.lists(st.integers(0, 12), max_size=6, unique=True))
def test_capacities_do_not_disturb_each_other(prompts: list[tuple[int, ...]], capacities: list[int]) -> None:
    paths = paths_of(workload(*prompts))
    together = recency_hits(paths, sorted(capacities))
    for capacity, hits in zip(sorted(capacities), together, strict=True):
        assert list(hits) == list(recency_hits(paths, [capacity])[0])


@given(PROMPTS, st.integers(0, 12))
def test_belady_by_counts_is_belady_block_by_block(prompts: list[tuple[int, ...]], capacity: int) -> None:
    paths = paths_of(workload(*prompts))
    assert list(farthest_hits(next_uses(paths), capacity)) == list(ruled_hits(paths, Belady(), capacity))


@settings(max_examples=60)
@given(PROMPTS, st.integers(0, 12), st.sampled_from(NAMES))
def test_no_rule_beats_belady_and_nothing_beats_a_cache_that_never_evicts(
    prompts: list[tuple[int, ...]], capacity: int, name: str
) -> None:
    paths = paths_of(workload(*prompts))
    best = sum(farthest_hits(next_uses(paths), capacity))
    assert sum(ruled_hits(paths, rule_named(name), capacity)) <= best
    assert sum(first_in_hits(paths, capacity)) <= best
    assert best <= sum(ceiling_hits(paths))


@given(PROMPTS, st.sampled_from(NAMES))
def test_with_room_for_everything_all_rules_reach_the_ceiling(
    prompts: list[tuple[int, ...]], name: str
) -> None:
    paths = paths_of(workload(*prompts))
    enough = len(paths.parents)
    ceiling = list(ceiling_hits(paths))
    assert list(ruled_hits(paths, rule_named(name), enough)) == ceiling
    assert list(first_in_hits(paths, enough)) == ceiling
    assert list(recency_hits(paths, [enough])[0]) == ceiling
    assert list(farthest_hits(next_uses(paths), enough)) == ceiling


def test_three_rules_part_ways_on_six_requests() -> None:
    paths = paths_of(workload((1,), (2,), (1,), (3,), (1,), (2,)))
    # Two blocks fit. First in first out loses 1 to 3, recency loses 2 to 3, and Belady never admits 3.
    assert list(first_in_hits(paths, 2)) == [0, 0, 1, 0, 0, 0]
    assert list(recency_hits(paths, [2])[0]) == [0, 0, 1, 0, 1, 0]
    assert list(farthest_hits(next_uses(paths), 2)) == [0, 0, 1, 0, 1, 1]
    assert list(farthest_hits(next_uses(paths), 1)) == [0, 0, 1, 0, 1, 0]


def test_only_blocks_up_to_the_first_missing_one_are_hits() -> None:
    # First in first out has room for two blocks: (1,) has left when the last request comes, (1, 2) has not.
    paths = paths_of(workload((1,), (1, 2), (3,), (1, 2)))
    assert list(first_in_hits(paths, 2)) == [0, 1, 0, 0]


def test_equal_blocks_after_other_prefixes_are_other_blocks() -> None:
    paths = paths_of(workload((1, 7), (2, 7), (2, 7)))
    assert list(ceiling_hits(paths)) == [0, 0, 2]
    assert len(paths.parents) == 4


def test_a_partial_last_block_counts_its_tokens() -> None:
    half = Workload((Request(0, 15, 1, (1, 2)), Request(1, 15, 1, (1, 2))), 10, "made", "")
    sweep = hit_rates(paths_of(half), [2], {"LRU": Recency()})
    assert (sweep.rows[0].hit_tokens, sweep.rows[0].measured_tokens) == (15, 15)


def test_only_the_last_half_of_the_requests_is_measured() -> None:
    sweep = hit_rates(paths_of(workload((1,), (1,), (1,), (2,), (1,))), [5], {"FIFO": FirstIn()})
    assert (sweep.measured_requests, sweep.rows[0].hit_tokens, sweep.rows[0].measured_tokens) == (3, 20, 30)
    assert not sweep.rows[0].filled


def test_a_cache_is_full_when_as_many_blocks_came_as_it_holds() -> None:
    # Before measuring begins, 3 blocks came; a shorter prompt brings nothing new.
    made = workload((1, 2), (3,), (1,), (1,), (1,), (1,))
    sweep = hit_rates(paths_of(made), [4, 3, 3], {"LRU": Recency()})
    assert [(row.capacity_blocks, row.filled) for row in sweep.rows] == [(3, True), (4, False)]
    assert (sweep.ceiling.capacity_blocks, sweep.distinct_blocks) == (3, 3)


def test_where_nothing_was_measured_the_rate_is_none_of_it() -> None:
    assert HitRate("LRU", 5, 0, 0, True).rate == 0.0
    assert HitRate("LRU", 5, 3, 4, True).rate == 0.75


def test_a_cache_of_no_blocks_hits_nothing() -> None:
    policies: dict[str, Policy] = {
        "FIFO": FirstIn(),
        "LRU": Recency(),
        "Belady": Belady(),
        "Aged": rule_named("Aged"),
    }
    sweep = hit_rates(paths_of(workload((1,), (1,))), [0], policies)
    assert [row.hit_tokens for row in sweep.rows] == [0, 0, 0, 0]


def test_less_than_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot hold -1 blocks"):
        hit_rates(paths_of(workload((1,))), [-1], {})


def test_a_log_without_prefix_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="made has no prefix blocks"):
        paths_of(Workload((Request(0, 10, 1),), 10, "made", ""))


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_public_table_comes_out(name: str) -> None:
    table = PUBLISHED[name]
    capacities = [gib * GIB // BLOCK_BYTES for gib, *_ in table]
    policies: dict[str, Policy] = {"FIFO": FirstIn(), "LRU": Recency(), "Belady": Belady()}
    sweep = hit_rates(public(name), capacities, policies)
    ours = {(row.policy, row.capacity_blocks): 100 * row.rate for row in sweep.rows}
    for capacity, (_, *theirs) in zip(capacities, table, strict=True):
        for policy, percent in zip(policies, theirs, strict=True):
            assert ours[policy, capacity] == pytest.approx(percent, abs=0.06), (policy, capacity)
    assert 100 * sweep.ceiling.rate == pytest.approx(CEILINGS[name], abs=0.06)
    assert all(row.filled for row in sweep.rows)


def test_the_public_log_is_as_long_and_as_wide_as_its_publishers_say() -> None:
    paths = public("conversation")
    assert (len(paths.nodes), len(paths.parents)) == (12_031, 182_790)
