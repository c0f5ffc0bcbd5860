"""What each keeper of hybrid state keeps and gives up, in strands that can be followed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from kvpool.plan.placement.checkpoints import CheckpointCost, interval_tokens
from kvpool.plan.placement.marconi import HybridShape
from kvpool.plan.placement.worth import Sizes
from kvpool.plan.timing.model import TimingModel
from kvpool.sim.caches.keepers import Dense, Keeper, Marconi, OneScore
from kvpool.sim.caches.strands import NOBODY, Match, Strand, Strands
from kvpool.sim.caches.turns import Served, Server, serve
from kvpool.sim.workloads.request import Request, Workload

SECOND = 10**9
SIZES = Sizes(token_bytes=3, checkpoint_bytes=50)
LINEAR = TimingModel(0, 1000, 0, 0, 0, 0)
SHAPE = HybridShape(1, 1, 1, 16, 4)
COST = CheckpointCost(50, 1.0, 1e-3, 1.0, 10)
NOTHING: Sequence[int] = ()


def turn(keeper: Keeper, strands: Strands, path: Sequence[int], now_ns: int = 0, session: int = 0) -> Strand:
    """A prompt of ten tokens a node is served."""
    found = strands.match(path)
    strand = strands.put(path, found, session, now_ns)
    keeper.served(strands, found, strand, 10 * len(path), now_ns)
    return strand


def marks(strands: Strands) -> list[list[int]]:
    return [strand.checkpoints for strand in strands.strands]


def kept(strands: Strands) -> list[int]:
    return [strand.kept for strand in strands.strands]


def put(strands: Strands, path: Sequence[int], *positions: int, now_ns: int = 0) -> None:
    strands.add_checkpoints(strands.put(path, strands.match(path), 0, now_ns), positions)


def test_a_prompt_goes_on_along_its_strand_and_leaves_it_only_where_it_differs() -> None:
    strands = Strands(SIZES, 10)
    for path in ([1, 2, 3], [1, 2], [1, 2, 3, 4]):
        put(strands, path)
        assert len(strands.strands) == 1
    put(strands, [1, 2, 9])
    assert [(one.parent, one.start, one.tip, one.kept) for one in strands.strands] == [
        (NOBODY, 0, 40, 40),
        (0, 20, 30, 30),
    ]
    assert strands.held_bytes == (40 + 10) * 3


def test_serving_a_branch_is_a_use_of_what_it_left() -> None:
    strands = Strands(SIZES, 10)
    put(strands, [1, 2, 3], now_ns=1)
    put(strands, [7], now_ns=2)
    put(strands, [1, 2, 9], now_ns=5)
    assert [strand.last_ns for strand in strands.strands] == [5, 2, 5]


def test_a_checkpoint_is_held_once() -> None:
    strands = Strands(SIZES, 10)
    put(strands, [1, 2, 3], 20)
    strand = strands.strands[0]
    assert strands.add_checkpoints(strand, [20, 30]) == [(0, 30)]
    assert (strand.checkpoints, strands.held_bytes) == ([20, 30], 30 * 3 + 2 * 50)


def test_a_checkpoint_behind_where_a_strand_was_left_is_of_no_use_to_who_left() -> None:
    strands = Strands(SIZES, 10)
    put(strands, [1, 2, 3, 4], 10, 40)
    put(strands, [1, 2, 8, 7])
    put(strands, [1, 2, 8, 6])
    assert [strand.start for strand in strands.strands] == [0, 20, 30]
    assert strands.match([1, 2, 8, 6, 5]) == Match(2, 40, 40, 10, 0)


def test_a_strand_that_lost_its_kv_leaves_what_its_parent_has() -> None:
    strands = Strands(SIZES, 10)
    put(strands, [1, 2, 3, 4], 10)
    put(strands, [1, 2, 8, 7])
    strands.cut(1, 0)
    assert strands.match([1, 2, 8, 7]) == Match(1, 40, 20, 10, 0)


def test_kv_is_needed_as_far_as_the_farthest_that_left_and_holds_something() -> None:
    strands = Strands(SIZES, 10)
    put(strands, [1, 2, 3, 4])
    put(strands, [1, 9])
    put(strands, [1, 2, 3, 8])
    assert strands.floor(strands.strands[0]) == 30
    strands.cut(2, 0)
    assert strands.floor(strands.strands[0]) == 10
    strands.add_checkpoints(strands.strands[2], [40])
    assert strands.floor(strands.strands[0]) == 30


def test_dense_checkpoints_come_at_whole_steps_and_at_the_end() -> None:
    strands, keeper = Strands(SIZES, 10), Dense(20)
    turn(keeper, strands, [1, 2, 3, 4, 5])
    assert marks(strands) == [[20, 40, 50]]
    turn(keeper, strands, [1, 2, 3, 4, 5, 6, 7])
    assert marks(strands) == [[20, 40, 50, 60, 70]]


def test_dense_gives_up_the_tail_of_the_least_recent_sequence_first() -> None:
    strands, keeper = Strands(SIZES, 10), Dense(20)
    turn(keeper, strands, [1, 2, 3, 4], 2)
    turn(keeper, strands, [5, 6, 7, 8], 1)
    keeper.shrink(strands, 1, 9)
    assert (marks(strands), kept(strands)) == ([[20, 40], [20]], [40, 20])
    keeper.shrink(strands, 50 + 20 * 3, 9)
    assert (marks(strands), kept(strands)) == ([[20, 40], []], [40, 0])
    keeper.shrink(strands, 1, 9)
    assert (marks(strands), kept(strands)) == ([[20], []], [20, 0])
    assert strands.held_bytes == 50 + 20 * 3


def test_dense_keeps_what_a_later_branch_needs_and_of_the_same_moment_the_elder() -> None:
    strands, keeper = Strands(SIZES, 10), Dense(20)
    turn(keeper, strands, [1, 2, 3, 4], 1)
    turn(keeper, strands, [1, 2, 9, 8], 1)
    # The branch leaves at 20 and has the checkpoint at 40; the elder has those at 20 and 40.
    assert marks(strands) == [[20, 40], [40]]
    keeper.shrink(strands, 1, 9)
    assert (marks(strands), kept(strands)) == ([[20, 40], []], [40, 20])
    turn(keeper, strands, [1, 2, 9, 8], 1)
    strands.strands[0].last_ns = 0
    keeper.shrink(strands, 50 + 20 * 3 + 1, 9)
    assert (marks(strands)[0], kept(strands)[0]) == ([20], 20)


def test_marconi_takes_checkpoints_where_sequences_part_and_at_their_ends() -> None:
    strands, keeper = Strands(SIZES, 10), Marconi(SIZES, SHAPE, 0.0)
    turn(keeper, strands, [1, 2, 3, 4])
    turn(keeper, strands, [1, 2, 3, 4, 5])
    assert marks(strands) == [[40, 50]]
    turn(keeper, strands, [1, 2, 9])
    assert marks(strands) == [[20, 40, 50], [30]]
    turn(keeper, strands, [1, 2, 8])
    assert marks(strands) == [[20, 40, 50], [30], [30]]


def test_marconi_gives_up_the_checkpoint_that_was_used_longest_ago() -> None:
    strands, keeper = Strands(SIZES, 10), Marconi(SIZES, SHAPE, 0.0)
    turn(keeper, strands, [1, 2], 1)
    turn(keeper, strands, [5, 6], 2)
    turn(keeper, strands, [1, 2, 3], 3)
    # The first was used again: the second leaves, with the KV that only it made usable.
    keeper.shrink(strands, 1, 9)
    assert (marks(strands), kept(strands)) == ([[20, 30], []], [30, 0])
    keeper.shrink(strands, 1, 9)
    assert (marks(strands), kept(strands)) == ([[30], []], [30, 0])


def test_marconi_weighs_what_a_checkpoint_saves_for_its_bytes() -> None:
    def left(alpha: float) -> list[list[int]]:
        strands, keeper = Strands(SIZES, 10), Marconi(SIZES, SHAPE, alpha)
        turn(keeper, strands, list(range(100, 120)), 1)
        turn(keeper, strands, [5], 2)
        keeper.shrink(strands, 1, 9)
        return marks(strands)

    assert left(0.0) == [[], [10]]
    assert left(10.0) == [[200], []]


def test_marconi_weighs_kv_with_the_last_checkpoint_of_a_sequence_only() -> None:
    strands, keeper = Strands(SIZES, 10), Marconi(SIZES, SHAPE, 100.0)
    turn(keeper, strands, [1, 2, 3, 4], 1)
    turn(keeper, strands, [1, 2, 3, 4, 5, 6, 7, 8], 2)
    # Both save 40 tokens; the second of them also holds the KV of its 40.
    keeper.shrink(strands, 1, 9)
    assert (marks(strands), kept(strands)) == ([[40]], [40])


def test_marconi_keeps_the_checkpoint_that_several_sequences_went_on_from() -> None:
    strands, keeper = Strands(SIZES, 10), Marconi(SIZES, SHAPE, 0.0)
    turn(keeper, strands, [1, 2], 1)
    turn(keeper, strands, [1, 2, 3], 2)
    turn(keeper, strands, [1, 2, 9], 3)
    assert marks(strands) == [[20, 30], [30]]
    for used in ((0, 30), (1, 30)):
        keeper._last_ns[used] = 8
    # The one at 20 was used longest ago, but two went on from it: of those the elder goes, then 20 itself.
    keeper.shrink(strands, 1, 9)
    assert (marks(strands), kept(strands)) == ([[20], [30]], [20, 30])
    keeper.shrink(strands, 1, 9)
    assert (marks(strands), kept(strands)) == ([[], [30]], [20, 30])


def test_kv_that_no_checkpoint_makes_usable_goes_branches_first() -> None:
    strands, keeper = Strands(SIZES, 10), Marconi(SIZES, SHAPE, 1.0)
    put(strands, [1, 2, 3])
    put(strands, [1, 2, 9])
    keeper.shrink(strands, 1, 9)
    assert (kept(strands), strands.held_bytes) == ([0, 20], 0)


def test_the_interval_of_one_score_follows_returns_that_go_back() -> None:
    assert [interval_tokens(COST, 90, 0.1 * share) for share in (0.25, 0.5)] == [20, 10]
    strands, keeper = Strands(SIZES, 10), OneScore(SIZES, LINEAR, COST, 60 * SECOND)
    turn(keeper, strands, [1, 2, 3, 4, 5], 0)
    assert marks(strands) == [[50]]
    # One of 2 turns came, after 10 s, and went on: 1 in 4 is taken to go back.
    turn(keeper, strands, [1, 2, 3, 4, 5, 6, 7, 8, 9], 10 * SECOND)
    assert marks(strands) == [[50, 60, 80, 90]]
    back = OneScore(SIZES, LINEAR, COST, 60 * SECOND)
    strands = Strands(SIZES, 10)
    turn(back, strands, [1, 2, 3, 4, 5], 0)
    turn(back, strands, [1, 2, 11, 12, 13, 14, 15, 16, 17], 10 * SECOND)
    assert marks(strands) == [[10, 20, 50], [30, 40, 50, 60, 70, 80, 90]]


def test_one_score_keeps_the_newest_of_a_session_and_the_session_that_was_here_last() -> None:
    strands, keeper = Strands(SIZES, 10), OneScore(SIZES, LINEAR, COST, 60 * SECOND)
    turn(keeper, strands, [1, 2], 0, session=1)
    turn(keeper, strands, [3, 4], 1, session=1)
    keeper.shrink(strands, 1, 2)
    assert marks(strands) == [[], [10, 20]]
    aged, strands = OneScore(SIZES, LINEAR, COST, 60 * SECOND), Strands(SIZES, 10)
    turn(aged, strands, [1, 2], 50 * SECOND, session=1)
    turn(aged, strands, [3, 4], 0, session=2)
    aged.shrink(strands, 1, 60 * SECOND)
    assert marks(strands) == [[20], []]


def test_kv_goes_with_the_checkpoint_that_one_score_gives_up() -> None:
    strands, keeper = Strands(SIZES, 10), OneScore(SIZES, LINEAR, COST, 60 * SECOND)
    turn(keeper, strands, [1, 2])
    keeper.shrink(strands, 51, SECOND)
    assert (marks(strands), kept(strands), strands.held_bytes) == ([[]], [0], 0)


@dataclass
class Told:
    """Keeps no checkpoints, notes how much is wanted, and frees so many bytes of KV at a time."""

    frees_tokens: int
    wanted: list[int] = field(default_factory=list)

    def served(self, strands: Strands, found: Match, strand: Strand, tokens: int, now_ns: int) -> None:
        pass

    def shrink(self, strands: Strands, wanted_bytes: int, now_ns: int) -> None:
        self.wanted.append(wanted_bytes)
        last = strands.strands[-1]
        strands.cut(last.name, last.kept - self.frees_tokens)


def prompts(*asked: Request) -> Workload:
    return Workload(asked, 10, "made", "")


@pytest.mark.parametrize(
    ("memory", "frees", "wanted"),
    [(60, 20, []), (59, 20, [60 - 35]), (59, 5, [25, 10]), (59, 0, [25])],
)
def test_a_full_memory_is_emptied_to_its_lower_mark_as_far_as_its_keeper_can(
    memory: int, frees: int, wanted: list[int]
) -> None:
    # 20 tokens of 3 bytes; 60 percent of 59 are 35.
    keeper = Told(frees)
    serve(prompts(Request(0, 20, 1, (1, 2))), Server(LINEAR, memory, SIZES, 1, 60), keeper)
    assert keeper.wanted == wanted


def test_the_next_turn_comes_after_the_answer_and_a_think_time() -> None:
    first = Request(7, 20, 3, (1, 2), session=4)
    follow = Request(8, 30, 1, (1, 2, 3), session=4, think_ns=1_000_000)
    server = Server(LINEAR, 10_000, SIZES, output_token_ns=500)
    served = serve(prompts(first, follow), server, Dense(20))
    assert list(served.ttft_ns) == [20_000, 10_000]
    assert served.span_ns == 7 + 20_000 + 3 * 500 + 1_000_000 + 10_000
    # A think time that is not known is none.
    at_once = serve(prompts(first, replace(follow, think_ns=-1)), server, Dense(20))
    assert at_once.span_ns == served.span_ns - 1_000_000


def test_requests_of_no_session_wait_for_nobody() -> None:
    alone = [Request(at, 20, 1_000, (at, at + 1), session=-1) for at in (0, 50_000)]
    served = serve(prompts(*alone), Server(LINEAR, 10_000, SIZES, 1_000), Dense(20))
    assert (list(served.ttft_ns), served.span_ns) == ([20_000, 20_000], 70_000)


def test_a_prompt_that_is_there_whole_still_computes_its_last_token() -> None:
    same = [Request(0, 20, 1, (1, 2), session=1), Request(0, 20, 1, (1, 2), session=1, think_ns=0)]
    served = serve(prompts(*same), Server(LINEAR, 10_000, SIZES, 1), Dense(20))
    assert (list(served.ttft_ns), served.busy_ns) == ([20_000, 1_000], 21_000)


def test_a_percentile_is_that_of_the_ordered_times() -> None:
    served = Served((5, 1, 3, 2, 4), 0, 0, 0, 0)
    assert [served.ttft_at(percent) for percent in (0, 19, 20, 50, 99, 100)] == [1, 1, 2, 3, 5, 5]
