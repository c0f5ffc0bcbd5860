"""Prefix blocks in the memory of one instance."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.sim.prefixes.resident import ResidentPrefixes

BLOCK = 16


def memory(blocks: int) -> ResidentPrefixes:
    return ResidentPrefixes(blocks * BLOCK, BLOCK)


def test_only_the_leading_run_of_blocks_counts_as_found() -> None:
    held = memory(8)
    assert held.acquire((1, 2, 3), 0)
    assert held.match((1, 2, 9, 3)) == 2
    assert held.match((9, 1)) == 0
    assert held.match(()) == 0


def test_tails_leave_before_heads() -> None:
    held = memory(4)
    held.acquire((1, 2, 3, 4), 0)
    held.release((1, 2, 3, 4), 0)
    held.acquire((9,), 0)
    assert [block in held for block in (1, 2, 3, 4)] == [True, True, True, False]


def test_what_was_used_least_recently_leaves_first() -> None:
    held = memory(4)
    for block in (1, 2, 3, 4):
        held.acquire((block,), 0)
        held.release((block,), 0)
    held.acquire((1,), 0)
    held.release((1,), 0)
    held.acquire((5, 6), 0)
    assert [block in held for block in (1, 2, 3, 4)] == [True, False, False, True]


def test_pinned_blocks_stay_and_what_does_not_fit_beside_them_changes_nothing() -> None:
    held = memory(4)
    assert held.acquire((1, 2, 3), 0)
    assert not held.acquire((7, 8), 0)
    assert not held.acquire((7,), 1)
    assert (held.pinned_blocks, held.private_tokens, 7 in held) == (3, 0, False)
    assert held.acquire((1, 2, 8), 0)


def test_what_runs_keeps_room_to_grow_when_shared_blocks_are_let_in() -> None:
    held = memory(4)
    assert held.acquire((), 1)
    assert not held.acquire((1, 2, 3), 0, spare_tokens=BLOCK)
    assert held.acquire((1, 2, 3), 0, spare_tokens=BLOCK - 1)


def test_a_block_is_idle_only_when_its_last_user_has_ended() -> None:
    held = memory(4)
    held.acquire((1, 2), 0)
    held.acquire((1, 3), 0)
    held.release((1, 2), 0)
    assert (held.pinned_blocks, held.idle_blocks) == (2, 1)
    held.release((1, 3), 0)
    assert (held.pinned_blocks, held.idle_blocks) == (0, 3)


def test_private_tokens_push_idle_blocks_out_and_never_pinned_ones() -> None:
    evicted: list[int] = []
    held = ResidentPrefixes(4 * BLOCK, BLOCK, evicted.append)
    held.acquire((1, 2), 0)
    held.acquire((3, 4), 0)
    held.release((3, 4), 0)
    held.grow(BLOCK + 1)
    assert evicted == [4, 3]
    assert held.evicted_blocks == 2
    with pytest.raises(ValueError, match="exceed"):
        held.grow(BLOCK)


def test_a_dead_instance_holds_nothing() -> None:
    held = memory(4)
    held.acquire((1, 2), 5)
    held.forget()
    assert (held.used_tokens, held.idle_blocks, 1 in held) == (0, 0, False)


def test_a_memory_smaller_than_one_block_is_refused() -> None:
    with pytest.raises(ValueError, match="one block"):
        ResidentPrefixes(BLOCK - 1, BLOCK)


PROMPTS = st.lists(
    st.tuples(st.lists(st.integers(0, 12), unique=True, max_size=5), st.integers(0, 40), st.booleans()),
    max_size=40,
)


@settings(deadline=None, max_examples=100)
@given(PROMPTS)
def test_used_and_idle_never_exceed_the_memory_and_nothing_is_lost_from_the_books(
    prompts: list[tuple[list[int], int, bool]],
) -> None:
    held = memory(8)
    open_prompts: list[tuple[list[int], int]] = []
    for blocks, private, ends in prompts:
        if ends and open_prompts:
            held.release(*open_prompts.pop(0))
        if held.acquire(blocks, private):
            open_prompts.append((blocks, private))
            assert held.match(blocks) == len(blocks)
        assert held.used_tokens + held.idle_blocks * BLOCK <= held.capacity_tokens
        assert held.private_tokens == sum(private for _, private in open_prompts)
        assert held.pinned_blocks == len({block for blocks, _ in open_prompts for block in blocks})
    for blocks, private in open_prompts:
        held.release(blocks, private)
    assert held.used_tokens == 0


def test_memory_of_one_block_holds_one_and_less_holds_none() -> None:
    assert memory(1).acquire((1,), 0)
    with pytest.raises(ValueError, match="15 tokens of memory do not hold one block of 16"):
        ResidentPrefixes(15, 16)


def test_after_its_death_an_instance_has_all_its_memory_again() -> None:
    held = memory(4)
    held.acquire((1, 2), 3)
    held.acquire((3,), 0)
    held.release((3,), 0)
    held.forget()
    assert (held.blocks(), held.idle_blocks, held.used_tokens) == ([], 0, 0)
    assert held.acquire((3, 4, 5, 6), 0)


def test_what_runs_may_grow_to_the_last_token_of_the_memory() -> None:
    held = memory(2)
    held.acquire((1,), 0)
    held.grow(BLOCK)
    assert held.used_tokens == held.capacity_tokens
    with pytest.raises(ValueError, match="1 tokens more than 32 used exceed 32"):
        held.grow(1)
