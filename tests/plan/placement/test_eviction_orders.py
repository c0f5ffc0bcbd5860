"""In which order objects leave, rule by rule."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.placement.eviction import NEVER, EvictionRule, Use
from kvpool.plan.placement.orders import Aged, Belady, Ewma, Frequency, Predicted, Recency
from kvpool.plan.placement.policies import NAMES, rule_named
from kvpool.plan.placement.residents import SLACK, Residents

SECOND = 1_000_000_000
HISTORIES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 100)), min_size=1, max_size=60)


def leaving(rule: EvictionRule, history: list[tuple[int, int]]) -> list[int]:
    """Objects in the order in which they leave, after uses given as (object, seconds after the last one)."""
    residents = Residents(rule)
    uses: dict[int, Use] = {}
    now = 0
    for turn, (item, wait) in enumerate(history):
        now += wait * SECOND
        if item in uses:
            uses[item].again(now, turn)
        else:
            uses[item] = Use(item, now, turn)
        residents.add(uses[item], rule.key(uses[item]))
    return [residents.pop(now) for _ in range(len(residents))]


def test_recency_lets_the_longest_unused_object_go_first() -> None:
    assert leaving(Recency(), [(1, 0), (2, 1), (3, 1), (1, 1)]) == [2, 3, 1]


def test_frequency_lets_the_least_used_go_first_and_of_those_the_least_recent() -> None:
    assert leaving(Frequency(), [(1, 0), (1, 1), (2, 1), (3, 1)]) == [2, 3, 1]


def test_aged_forgets_an_old_favourite_that_frequency_keeps() -> None:
    history = [(1, 0), (1, 1), (1, 1), (1, 1), (2, 3600), (2, 1)]
    assert leaving(Frequency(), history) == [2, 1]
    assert leaving(Aged(half_life_ns=600 * SECOND), history) == [1, 2]


@given(HISTORIES)
def test_aged_orders_as_the_faded_counts_do(history: list[tuple[int, int]]) -> None:
    half_life = 50.0
    now = sum(wait for _, wait in history)
    count: dict[int, int] = {}
    last: dict[int, int] = {}
    clock = 0
    for item, wait in history:
        clock += wait
        count[item] = count.get(item, 0) + 1
        last[item] = clock
    order = leaving(Aged(half_life_ns=50 * SECOND), history)
    faded = [count[item] * 2.0 ** (-(now - last[item]) / half_life) for item in order]
    assert all(left <= right * (1 + 1e-9) for left, right in pairwise(faded))


def test_ewma_lets_objects_used_once_go_before_all_others() -> None:
    # Object 1 comes every 10 s and object 2 every 2 s; 3 and 4 came once.
    history = [(1, 0), (2, 8), (1, 2), (2, 0), (3, 1), (4, 1)]
    assert leaving(Ewma(), history) == [3, 4, 1, 2]


def test_a_gap_is_smoothed_with_half_of_the_newest() -> None:
    use = Use(1, 0, 0)
    use.again(10, 1)
    assert (use.gap_ns, use.waited_ns) == (10, 10)
    use.again(30, 2)
    assert (use.gap_ns, use.waited_ns) == (15, 20)


def test_a_gap_of_no_time_is_a_gap() -> None:
    use = Use(1, 5, 0)
    use.again(5, 1)
    use.again(15, 2)
    assert use.gap_ns == 5
    # Object 1 was used twice at the same moment, 2 and 3 once: they go first.
    assert leaving(Ewma(), [(1, 0), (1, 0), (2, 5), (3, 1)]) == [2, 3, 1]


def test_the_next_use_is_what_is_known_of_it_now() -> None:
    use = Use(1, 0, 0, next_ns=10)
    use.again(10, 1, next_ns=30)
    assert use.next_ns == 30
    use.again(30, 2)
    assert use.next_ns == NEVER


def test_belady_lets_the_object_go_whose_next_use_is_farthest() -> None:
    rule = Belady()
    residents = Residents(rule)
    for item, after in ((1, 50), (2, NEVER), (3, 20)):
        use = Use(item, 0, item, next_ns=after)
        residents.add(use, rule.key(use))
    assert [residents.pop(0) for _ in range(3)] == [2, 1, 3]


@given(HISTORIES)
def test_predicted_is_recency_by_another_name(history: list[tuple[int, int]]) -> None:
    assert leaving(rule_named("Predicted"), history) == leaving(rule_named("Recency"), history)
    assert Predicted is Recency


@given(HISTORIES, st.sampled_from(NAMES))
def test_every_rule_lets_each_object_go_exactly_once(history: list[tuple[int, int]], name: str) -> None:
    assert sorted(leaving(rule_named(name), history)) == sorted({item for item, _ in history})


def test_keys_that_were_replaced_do_not_pile_up() -> None:
    residents = Residents(Recency())
    use = Use(1, 0, 0)
    for turn in range(10_000):
        use.again(turn, turn)
        residents.add(use, (turn,))
    assert sum(len(heap) for heap in residents._heaps.values()) < 100


def test_keys_are_swept_only_when_most_of_them_were_replaced_and_the_order_stays() -> None:
    residents = Residents(Recency())
    uses = {item: Use(item, 0, 0) for item in range(100)}
    newest: dict[int, int] = {}

    def add(turn: int) -> int:
        # Every key once in an order that jumps about.
        item = turn * 37 % 100
        newest[item] = turn * 7919 % 10_007
        residents.add(uses[item], (newest[item],))
        return len(residents._heaps[""])

    most = SLACK + 2 * 100
    assert [add(turn) for turn in range(most)] == list(range(1, most + 1))
    assert add(most) == 100
    assert [residents.pop(0) for _ in range(100)] == sorted(newest, key=lambda item: newest[item])


def test_objects_that_were_taken_out_do_not_leave() -> None:
    residents = Residents(Recency())
    for item in range(300):
        use = Use(item, item, item)
        residents.add(use, (item,))
        if item % 3:
            residents.discard(item)
    assert 1 not in residents
    assert 3 in residents
    assert [residents.pop(300) for _ in range(len(residents))] == list(range(0, 300, 3))
    with pytest.raises(LookupError, match="no object may leave"):
        residents.first(300)


def test_an_unknown_policy_names_the_nearest_one() -> None:
    with pytest.raises(ValueError, match="policy 'Recensy' is none; did you mean Recency"):
        rule_named("Recensy")
    with pytest.raises(ValueError, match="known are Recency, Frequency"):
        rule_named("zzz")


@pytest.mark.parametrize(("alias", "name"), [("LRU", "Recency"), ("lfu", "Frequency"), ("optimal", "Belady")])
def test_common_short_names_are_known(alias: str, name: str) -> None:
    assert type(rule_named(alias)) is type(rule_named(name))


def test_a_rule_with_parameters_takes_them() -> None:
    assert rule_named("Aged", half_life_ns=7) == Aged(7)
