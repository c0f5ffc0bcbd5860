"""Prefixes in the device and in tiers below it."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.plan.placement.policies import NAMES, rule_named
from kvpool.plan.timing.model import LinkModel
from kvpool.sim.prefixes.hierarchy import Found, Hierarchy
from kvpool.sim.prefixes.idle import RecencyOrder, RuledOrder, UseBook
from kvpool.sim.prefixes.resident import ResidentPrefixes
from kvpool.sim.prefixes.store import PrefixStore
from kvpool.sim.prefixes.tier import Tier

BLOCK = 16
LINK = LinkModel(0, 10**9)


@dataclass
class At:
    now_ns: int = 0


def three_tiers(device: int = 4, dram: int = 4, ssd: int = 4, *, keeps: bool = False) -> Hierarchy:
    bottom = PrefixStore(Tier.SSD, ssd, LINK, RecencyOrder())
    middle = PrefixStore(Tier.DRAM, dram, LINK, RecencyOrder(), bottom.put, is_exclusive=not keeps)
    return Hierarchy(ResidentPrefixes(device * BLOCK, BLOCK, middle.put), [middle, bottom])


def use(memory: Hierarchy, *blocks: int) -> None:
    assert memory.acquire(blocks, 0)
    memory.device.release(blocks, 0)


def test_what_the_device_lets_go_is_found_below_until_the_last_tier_drops_it() -> None:
    memory = three_tiers(4, 4, 4)
    use(memory, 1, 2, 3, 4)
    use(memory, 5, 6, 7, 8)
    use(memory, 9, 10, 11, 12)
    assert memory.find((9, 10, 11, 12)).device_blocks == 4
    assert memory.find((5, 6, 7, 8)).lower_blocks == (4, 0)
    assert memory.find((1, 2, 3, 4)).lower_blocks == (0, 4)
    use(memory, 13, 14, 15, 16)
    assert memory.find((1, 2, 3, 4)).blocks == 0


def test_a_block_that_was_brought_up_leaves_an_exclusive_tier_and_stays_in_one_that_keeps_copies() -> None:
    for keeps in (False, True):
        memory = three_tiers(keeps=keeps)
        use(memory, 1, 2, 3, 4)
        use(memory, 5, 6, 7, 8)
        use(memory, 1, 2)
        assert (1 in memory.stores[0]) is keeps
        assert memory.find((1, 2, 3, 4)).device_blocks == 2


def test_what_comes_from_a_tier_crosses_all_ways_above_it() -> None:
    memory = three_tiers(4, 2, 4)
    use(memory, 1, 2, 3, 4)
    use(memory, 5, 6, 7, 8)
    found = memory.find((1, 2, 3, 4))
    assert found.lower_blocks == (2, 2)
    assert memory.crossings(found) == [(1, 2), (0, 4)]
    assert memory.deepest(found) is Tier.SSD


def test_a_tail_leaves_before_its_head_so_what_is_left_of_a_prefix_is_of_use() -> None:
    memory = three_tiers(4, 1, 1)
    use(memory, 1, 2, 3, 4)
    use(memory, 5, 6)
    assert memory.find((1, 2, 3, 4)).blocks == 4
    use(memory, 7, 8)
    assert 0 < memory.find((1, 2, 3, 4)).blocks < 4


def test_a_prefix_may_go_on_in_the_device_behind_a_block_that_lies_below() -> None:
    memory = three_tiers(4, 4, 4)
    use(memory, 1, 2, 3)
    memory.device.forget()
    use(memory, 1, 3)
    memory.stores[0].put(2)
    memory.stores[1].put(4)
    found = memory.find((1, 2, 3, 4, 5))
    assert (found.device_blocks, found.lower_blocks, found.blocks) == (2, (1, 1), 4)
    assert Hierarchy(memory.device).find((1, 2)).lower_blocks == ()


def test_what_does_not_fit_is_not_pinned_and_stays_below() -> None:
    memory = three_tiers(2, 4, 4)
    memory.stores[0].put(1)
    assert not memory.acquire((1, 2, 3), 0)
    assert memory.find((1,)).lower_blocks == (1, 0)


def test_a_tier_that_keeps_copies_gets_one_of_each_from_last_to_first() -> None:
    for keeps in (False, True):
        memory = three_tiers(keeps=keeps)
        assert memory.acquire((1, 2, 3), 5)
        memory.release((1, 2, 3), 5)
        assert memory.stores[0].blocks() == ([3, 2, 1] if keeps else [])
        assert (memory.device.pinned_blocks, memory.device.private_tokens) == (0, 0)


def test_with_its_host_everything_dies_but_what_others_share() -> None:
    for keeps in (False, True):
        memory = three_tiers(4, 4, 4, keeps=keeps)
        use(memory, 1, 2, 3, 4)
        use(memory, 5, 6, 7, 8)
        for store in memory.stores:
            store.put(9)
        memory.forget()
        assert (memory.device.blocks(), 9 in memory.stores[0], 9 in memory.stores[1]) == ([], keeps, False)


def test_the_deepest_tier_is_the_lowest_that_something_was_found_in() -> None:
    memory = three_tiers()
    found = [Found(0, (0, 0)), Found(2, (0, 0)), Found(2, (1, 0)), Found(0, (1, 3))]
    assert [memory.deepest(one) for one in found] == [Tier.NEW, Tier.HBM, Tier.DRAM, Tier.SSD]
    assert [memory.crossings(one) for one in found] == [[], [], [(0, 1)], [(1, 3), (0, 4)]]


def test_a_store_counts_what_came_and_what_it_had_to_drop() -> None:
    below = PrefixStore(Tier.SSD, 1, LINK, RecencyOrder())
    store = PrefixStore(Tier.DRAM, 2, LinkModel(7, 5), RecencyOrder(), below.put)
    for block in (1, 2, 1, 3, 4):
        store.put(block)
    # 1 was put again, so 2 was the oldest when 3 came, and then 1.
    assert (store.blocks(), below.blocks()) == ([3, 4], [1])
    assert (store.demoted_blocks, store.dropped_blocks, below.dropped_blocks) == (4, 2, 1)
    assert store.link == LinkModel(7, 5)
    store.inbound.join(0, 1, 5)
    assert store.inbound.due_ns() == 10**9


def test_below_the_top_a_block_is_noted_once_and_moving_it_is_no_use() -> None:
    book = UseBook(rule_named("LFU"), At())
    lower = RuledOrder(book, top=False)
    lower.add((1, 2))
    lower.discard((1,))
    lower.add((1,))
    assert [book.uses[block].uses for block in (1, 2)] == [1, 1]
    upper = RuledOrder(book, top=True)
    upper.add((1,))
    assert book.uses[1].uses == 2


def test_an_order_that_was_cleared_gives_only_what_came_after() -> None:
    order = RuledOrder(UseBook(rule_named("LRU"), At()), top=True)
    order.add((1, 2))
    order.clear()
    order.add((3, 2))
    assert (len(order), 1 in order, list(order)) == (2, False, [3, 2])
    assert order.take(2) == [3, 2]


USES = st.lists(st.lists(st.integers(0, 15), min_size=1, max_size=4, unique=True), max_size=40)


@settings(deadline=None, max_examples=100)
@given(USES, st.sampled_from([name for name in NAMES if name != "Belady"]))
def test_every_rule_keeps_a_block_in_one_place_and_no_tier_overfull(uses: list[list[int]], name: str) -> None:
    clock = At()
    book = UseBook(rule_named(name), clock)
    bottom = PrefixStore(Tier.SSD, 3, LINK, RuledOrder(book, top=False))
    middle = PrefixStore(Tier.DRAM, 3, LINK, RuledOrder(book, top=False), bottom.put)
    device = ResidentPrefixes(4 * BLOCK, BLOCK, middle.put, RuledOrder(book, top=True))
    memory = Hierarchy(device, [middle, bottom])
    for blocks in uses:
        clock.now_ns += 10**9
        use(memory, *blocks)
        held = [*device.blocks(), *middle.blocks(), *bottom.blocks()]
        assert len(held) == len(set(held))
        assert len(device.blocks()) <= 4
        assert max(len(middle), len(bottom)) <= 3


@settings(deadline=None, max_examples=100)
@given(USES)
def test_recency_as_a_rule_is_the_same_as_the_built_in_order(uses: list[list[int]]) -> None:
    clock = At()
    plain = ResidentPrefixes(5 * BLOCK, BLOCK)
    ruled = ResidentPrefixes(5 * BLOCK, BLOCK, order=RuledOrder(UseBook(rule_named("LRU"), clock), top=True))
    for blocks in uses:
        clock.now_ns += 1
        for memory in (plain, ruled):
            memory.acquire(blocks, 0)
            memory.release(blocks, 0)
        assert sorted(plain.blocks()) == sorted(ruled.blocks())
