"""One score thins checkpoints and reclaims KV; Marconi's is the baseline beside it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.placement.marconi import Entry, HybridShape, admitted, scores, victim
from kvpool.plan.placement.worth import Branch, Sizes, reclaim
from kvpool.plan.timing.model import TimingModel

LINEAR = TimingModel(0, 1000, 0, 0, 0, 0)
SIZES = Sizes(token_bytes=100, checkpoint_bytes=1_000_000)


def dropped(branches: list[Branch], wanted: int) -> list[tuple[int, int, bool]]:
    return [(d.branch, d.position, d.is_checkpoint) for d in reclaim(branches, SIZES, LINEAR, wanted)]


def test_kv_behind_the_last_checkpoint_goes_first() -> None:
    branch = Branch(7, 0.9, (4000,), 6000)
    assert dropped([branch], 1) == [(7, 4000, False)]
    assert reclaim([branch], SIZES, LINEAR, 1)[0].freed_bytes == 2000 * 100


def test_neighbours_thin_each_other() -> None:
    # The checkpoint at 2,100 saves 100 tokens over the one at 2,000; the others save 1,900 or 2,000.
    branch = Branch(1, 1.0, (2000, 2100, 4000, 6000), 6000, revisit=0.2)
    assert dropped([branch], 1)[0] == (1, 2100, True)


def test_the_branch_that_comes_back_keeps_its_checkpoint() -> None:
    hot, cold = Branch(1, 0.9, (4000,), 4000), Branch(2, 0.1, (4000,), 4000)
    assert dropped([hot, cold], 1) == [(2, 4000, True)]


def test_kv_leaves_with_the_checkpoint_that_made_it_usable() -> None:
    assert dropped([Branch(1, 0.5, (4000,), 4000)], 1_000_001) == [(1, 4000, True), (1, 0, False)]


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.lists(st.integers(1, 50), max_size=8, unique=True), st.integers(0, 20)),
        max_size=6,
    ),
    st.integers(0, 60_000_000),
)
def test_enough_is_freed_or_everything(parts: list[tuple[float, list[int], int]], wanted: int) -> None:
    branches = [
        Branch(
            name, reuse, tuple(sorted(n * 100 for n in marks)), max(marks, default=0) * 100 + tail * 100, 0.1
        )
        for name, (reuse, marks, tail) in enumerate(parts)
    ]
    held = sum(len(b.checkpoints) * 1_000_000 + b.kv_tokens * 100 for b in branches)
    drops = reclaim(branches, SIZES, LINEAR, wanted)
    freed = sum(drop.freed_bytes for drop in drops)
    assert min(wanted, held) <= freed <= held
    assert sum(drop.freed_bytes for drop in drops[:-1]) < max(wanted, 1)
    marks = [(d.branch, d.position) for d in drops if d.is_checkpoint]
    assert len(marks) == len(dict.fromkeys(marks))


def test_marconi_checkpoints_branch_points_and_the_end() -> None:
    assert admitted([3000, 1000, 3000, 0], 8000) == (1000, 3000, 8000)


def test_marconi_trades_recency_for_flops_by_alpha() -> None:
    old_and_large, new_and_small = Entry(1, 0, 1000, 10), Entry(2, 100, 100, 10)
    assert victim([old_and_large, new_and_small], alpha=0.0) == 1
    assert victim([old_and_large, new_and_small], alpha=2.0) == 2
    assert scores([], 1.0) == {}
    with pytest.raises(ValueError, match="no entries"):
        victim([], 1.0)


def test_a_finely_checkpointed_prompt_of_a_7b_hybrid_takes_17_gigabytes() -> None:
    # 4 attention, 24 recurrent and 28 MLP layers; a checkpoint every 16 tokens of 10,000.
    shape = HybridShape(attention_layers=4, mlp_layers=28, recurrent_layers=24, width=4096, state_width=128)
    total = 10_000 // 16 * shape.state_bytes() + shape.kv_bytes(10_000)
    assert 15e9 < total < 20e9
    assert shape.prefill_flops(2000) > 2 * shape.prefill_flops(1000)
