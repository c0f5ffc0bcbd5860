"""Shares of members of which a router knows only weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.routing.shares import Member, ShareSettings, headroom, shares
from kvpool.plan.timing.model import TimingModel
from tests.plan.routing.fleet import CARD

SETTINGS = ShareSettings()
SLOW = replace(CARD, step_base_ns=40e6, step_sequence_ns=240_000, step_token_ns=1600)


def member(name: str, *, healthy: bool = True, slow: bool = False, usage: float | None = 0.2) -> Member:
    return Member(name, healthy, SLOW if slow else CARD, usage)


def test_a_card_of_half_the_speed_gets_half_the_share() -> None:
    got = shares([member("fast"), member("slow", slow=True)], SETTINGS)
    assert dict(got.by_name) == {"fast": 100, "slow": 50}


def test_who_is_not_healthy_gets_nothing_and_the_others_share_the_rest() -> None:
    got = shares([member("gone", healthy=False), member("slow", slow=True)], SETTINGS)
    assert dict(got.by_name) == {"gone": 0, "slow": 100}


def test_one_member_without_constants_makes_all_equally_fast_and_is_named() -> None:
    got = shares([member("fast"), member("slow", slow=True), Member("new", True, None, 0.1)], SETTINGS)
    assert dict(got.by_name) == {"fast": 100, "slow": 100, "new": 100}
    assert got.uncalibrated == ("new",)


def test_full_memory_takes_most_of_a_share_and_never_all_of_it() -> None:
    got = shares([member("easy"), member("full", usage=1.0)], SETTINGS)
    assert dict(got.by_name) == {"easy": 100, "full": 10}
    assert headroom(None, SETTINGS) == headroom(0.7, SETTINGS) == 1.0
    assert headroom(0.85, SETTINGS) == pytest.approx(0.55)


def test_a_small_change_changes_nothing_so_that_routers_are_left_alone() -> None:
    before = shares([member("a"), member("b", usage=0.80)], SETTINGS).by_name
    nudged = shares([member("a"), member("b", usage=0.81)], SETTINGS, before).by_name
    moved = shares([member("a"), member("b", usage=0.90)], SETTINGS, before).by_name
    assert nudged == before
    assert moved["b"] < before["b"]


def test_coming_and_going_is_never_held_back_by_the_step() -> None:
    assert shares([member("a", healthy=False), member("b")], SETTINGS, {"a": 3, "b": 100}).by_name["a"] == 0
    assert shares([member("b", usage=0.1)], SETTINGS, {"b": 98}).by_name["b"] == 100


def test_speeds_are_compared_with_a_full_batch_of_long_contexts() -> None:
    one, two = (TimingModel(0, 0, 0, 0, 0, each) for each in (1, 2))
    got = shares([Member("one", True, one, None), Member("two", True, two, None)], SETTINGS).by_name
    assert dict(got) == {"one": 100, "two": 50}


def test_the_slowest_member_still_gets_a_share_and_more_than_full_memory_takes_no_more() -> None:
    crawling = Member("crawling", True, TimingModel(0, 0, 0, 10**12, 0, 0), None)
    assert shares([member("fast"), crawling], SETTINGS).by_name["crawling"] == 1
    assert headroom(1.2, SETTINGS) == pytest.approx(0.1)


def test_a_share_that_is_off_by_a_whole_step_changes_and_a_new_one_is_given_at_once() -> None:
    def share(previous: dict[str, int]) -> int:
        return shares([member("fast"), member("slow", slow=True)], SETTINGS, previous).by_name["slow"]

    assert [share({"slow": before}) for before in (45, 46, 54, 55)] == [50, 46, 54, 50]
    rare = Member("rare", True, TimingModel(0, 0, 0, 30 * CARD.step_ns(32, 65_536), 0, 0), 0.2)
    assert shares([member("fast"), rare], SETTINGS).by_name["rare"] == 3


@given(
    st.lists(st.tuples(st.booleans(), st.floats(0, 1), st.floats(1e6, 1e8)), max_size=12),
    st.dictionaries(st.sampled_from([str(n) for n in range(12)]), st.integers(0, 100)),
)
def test_healthy_members_always_get_something_the_best_gets_all_and_others_get_nothing(
    drawn: list[tuple[bool, float, float]], previous: dict[str, int]
) -> None:
    members = [
        Member(str(n), healthy, replace(CARD, step_base_ns=base), usage)
        for n, (healthy, usage, base) in enumerate(drawn)
    ]
    got = shares(members, SETTINGS, previous).by_name
    for one in members:
        assert (got[one.name] >= 1) == one.healthy
        assert got[one.name] <= 100
    if any(one.healthy for one in members):
        assert max(got.values()) == 100
