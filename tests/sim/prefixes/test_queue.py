"""The queue of idle blocks."""

from collections import OrderedDict

from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.sim.prefixes.queue import RecencyQueue


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=200))
def test_it_gives_blocks_in_the_order_in_which_they_became_idle_last(moves: list[tuple[int, int]]) -> None:
    queue, plain = RecencyQueue(), OrderedDict[int, None]()
    for block, count in moves:
        if block in plain:
            queue.discard((block,))
            del plain[block]
        else:
            queue.add((block,))
            plain[block] = None
        expected = [plain.popitem(last=False)[0] for _ in range(min(count, len(plain) // 3))]
        assert queue.take(len(expected)) == expected
        assert len(queue) == len(plain)


def test_entries_of_blocks_that_are_used_again_and_again_do_not_pile_up() -> None:
    queue = RecencyQueue()
    queue.add(range(100))
    for _ in range(200):
        queue.discard(range(50))
        queue.add(range(50))
    assert len(queue) == 100
    assert queue.entries < 5000
    assert queue.take(100) == [*range(50, 100), *range(50)]


def test_a_sweep_keeps_the_last_entry_of_blocks_that_are_idle_again() -> None:
    queue = RecencyQueue()
    queue.add(range(100))
    queue.discard(range(50, 100))
    queue.add(range(50, 100))
    for _ in range(19):
        queue.discard(range(50))
        queue.add(range(50))
    # 1,000 entries are stale: not yet more than may be.
    assert (len(queue), queue.entries) == (100, 1_100)
    for _ in range(40):
        queue.discard(range(50))
        queue.add(range(50))
    assert (len(queue), queue.entries < 2_200) == (100, True)
    assert queue.take(100) == [*range(50, 100), *range(50)]


def test_a_queue_that_was_cleared_begins_anew() -> None:
    queue = RecencyQueue()
    queue.add((1, 2, 3))
    queue.discard((2,))
    queue.clear()
    assert (len(queue), queue.entries) == (0, 0)
    queue.add((2, 1))
    assert queue.take(2) == [2, 1]
