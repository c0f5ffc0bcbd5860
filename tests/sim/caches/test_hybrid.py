"""State of hybrid models: strands, what a request can go on from, and three ways to keep state."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.plan.placement.checkpoints import CheckpointCost
from kvpool.plan.placement.marconi import HybridShape
from kvpool.plan.placement.worth import Sizes
from kvpool.plan.timing.model import TimingModel
from kvpool.sim.caches.keepers import Dense, Keeper, Marconi, OneScore
from kvpool.sim.caches.paths import paths_of
from kvpool.sim.caches.strands import NOBODY, Strands
from kvpool.sim.caches.turns import Server, serve
from kvpool.sim.workloads.request import Request, Workload

SECOND = 10**9
SIZES = Sizes(token_bytes=1, checkpoint_bytes=50)
LINEAR = TimingModel(0, 1000, 0, 0, 0, 0)
COST = CheckpointCost(50, 1e6, 1e-9, 1.0, 10)
SHAPE = HybridShape(1, 1, 1, 16, 4)
KEEPERS: dict[str, Callable[[], Keeper]] = {
    "one score": lambda: OneScore(SIZES, LINEAR, COST, 60 * SECOND),
    "Marconi": lambda: Marconi(SIZES, SHAPE, 1.0),
    "dense": lambda: Dense(20),
}
PROMPTS = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple)),
    min_size=1,
    max_size=40,
)


def workload(*prompts: tuple[int, tuple[int, ...]]) -> Workload:
    """Prompts as (session, blocks of ten tokens); a session's turns follow each other after a second."""
    seen: list[int] = []
    requests = []
    for at, (session, blocks) in enumerate(prompts):
        think = SECOND if session in seen else -1
        seen.append(session)
        requests.append(Request(at, 10 * len(blocks), 1, blocks, session=session, think_ns=think))
    return Workload(tuple(requests), 10, "made", "")


def held(strands: Strands) -> int:
    """Bytes counted anew."""
    return sum((s.kept - s.start) * 1 + len(s.checkpoints) * 50 for s in strands.strands)


def put(strands: Strands, path: list[int], *marks: int) -> None:
    strands.add_checkpoints(strands.put(path, strands.match(path), 0, 0), marks)


def test_a_prompt_goes_on_from_the_last_checkpoint_within_what_matched() -> None:
    strands = Strands(SIZES, 10)
    put(strands, [1, 2, 3, 4], 20, 40)
    found = strands.match([1, 2, 3, 9])
    assert (found.known_tokens, found.matched_tokens, found.usable_tokens) == (30, 30, 20)
    assert strands.match([7]).strand == NOBODY


def test_kv_without_a_checkpoint_is_worth_nothing() -> None:
    strands = Strands(SIZES, 10)
    put(strands, [1, 2, 3])
    assert strands.match([1, 2, 3]).usable_tokens == 0


def test_a_branch_uses_the_checkpoints_of_the_sequence_that_it_left() -> None:
    strands = Strands(SIZES, 10)
    put(strands, [1, 2, 3, 4], 20)
    put(strands, [1, 2, 3, 9], 40)
    assert [strand.start for strand in strands.strands] == [0, 30]
    strands.drop_checkpoint(1, 40)
    found = strands.match([1, 2, 3, 9, 8])
    assert (found.usable_tokens, found.holder) == (20, 0)


def test_what_a_branch_needs_is_not_cut_under_it() -> None:
    strands = Strands(SIZES, 10)
    put(strands, [1, 2, 3, 4], 40)
    put(strands, [1, 2, 3, 9], 40)
    strands.cut(0, 0)
    assert strands.strands[0].kept == 30
    strands.drop_checkpoint(1, 40)
    strands.cut(1, 0)
    strands.cut(0, 0)
    assert strands.strands[0].kept == 0
    assert strands.held_bytes == held(strands) == 50


def test_a_checkpoint_before_the_branch_belongs_to_the_sequence_that_was_left() -> None:
    strands = Strands(SIZES, 10)
    put(strands, [1, 2, 3, 4])
    put(strands, [1, 2, 3, 9], 30, 40)
    assert [strand.checkpoints for strand in strands.strands] == [[30], [40]]


@settings(max_examples=60, deadline=None)
@given(PROMPTS, st.sampled_from(sorted(KEEPERS)), st.integers(60, 600))
def test_every_keeper_fits_the_memory_and_serves_every_prompt(
    prompts: list[tuple[int, tuple[int, ...]]], name: str, memory: int
) -> None:
    made = workload(*prompts)
    served = serve(made, Server(LINEAR, memory, SIZES, 1000), KEEPERS[name]())
    assert len(served.ttft_ns) == len(prompts)
    assert 0 <= served.reused_tokens <= served.prompt_tokens == sum(r.prompt_tokens for r in made.requests)
    # Every prompt computes at least its last token, and nothing that it can go on from.
    least = served.prompt_tokens - served.reused_tokens
    assert served.busy_ns >= 1000 * max(least, len(prompts))


@settings(max_examples=60, deadline=None)
@given(PROMPTS, st.sampled_from(sorted(KEEPERS)), st.integers(0, 400))
def test_bytes_are_conserved_and_no_strand_has_a_hole(
    prompts: list[tuple[int, tuple[int, ...]]], name: str, wanted: int
) -> None:
    paths = paths_of(workload(*prompts))
    strands, keeper = Strands(SIZES, 10), KEEPERS[name]()
    for now, path in enumerate(paths.nodes):
        found = strands.match(path)
        assert found.usable_tokens <= found.matched_tokens <= found.known_tokens
        strand = strands.put(path, found, 0, now)
        keeper.served(strands, found, strand, 10 * len(path), now)
        assert strands.match(path).usable_tokens == 10 * len(path)
        before = strands.held_bytes
        keeper.shrink(strands, wanted, now)
        assert strands.held_bytes == held(strands) <= before
        for one in strands.strands:
            assert one.kept >= strands.floor(one)
            assert all(mark <= max(one.kept, one.start) for mark in one.checkpoints)


def test_a_session_that_returns_finds_its_newest_state() -> None:
    made = workload((0, (1, 2)), (0, (1, 2, 3)), (0, (1, 2, 3, 4)))
    for make in KEEPERS.values():
        served = serve(made, Server(LINEAR, 10_000, SIZES, 1000), make())
        assert served.reused_tokens == 20 + 30
        assert list(served.ttft_ns) == [20_000, 10_000, 10_000]


def test_prompts_wait_for_the_server_in_order_of_arrival() -> None:
    made = workload((0, (1, 2)), (1, (5,)))
    served = serve(made, Server(LINEAR, 10_000, SIZES, 1000), Dense(20))
    assert list(served.ttft_ns) == [20_000, 30_000 - 1]
    assert served.ttft_at(99) == 29_999
    assert served.busy_ns == served.span_ns == 30_000


def test_memory_for_nothing_recomputes_everything() -> None:
    made = workload((0, (1, 2)), (0, (1, 2, 3)))
    for make in KEEPERS.values():
        assert serve(made, Server(LINEAR, 0, SIZES, 1000), make()).reused_tokens == pytest.approx(0)
