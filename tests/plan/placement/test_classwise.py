"""Eviction by what each class of requests does."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.placement.classwise import ClassWise, ReuseFit
from kvpool.plan.placement.eviction import GroupedRule, Use
from kvpool.plan.placement.residents import Residents

SECOND = 1_000_000_000


def use_of(item: int, now_ns: int, group: str) -> Use:
    return Use(item, now_ns, item, group=group)


def test_the_class_that_comes_back_keeps_its_objects() -> None:
    rule = ClassWise(lifetime_ns=60 * SECOND)
    for item in range(50):
        chat = use_of(item, 0, "chat")
        rule.key(chat)
        chat.again(10 * SECOND, item)
        rule.key(chat)
        rule.key(use_of(100 + item, 0, "batch"))
    residents = Residents(rule)
    assert isinstance(rule, GroupedRule)
    for use in (use_of(1000, 20 * SECOND, "chat"), use_of(1001, 25 * SECOND, "batch")):
        residents.add(use, rule.key(use))
    assert residents.pop(30 * SECOND) == 1001


def test_within_a_class_the_least_recent_object_leaves() -> None:
    rule = ClassWise()
    residents = Residents(rule)
    for item, when in ((1, 5), (2, 3), (3, 9)):
        use = use_of(item, when, "chat")
        residents.add(use, rule.key(use))
    assert [residents.pop(10) for _ in range(3)] == [2, 1, 3]


def test_the_fit_finds_the_share_and_the_mean_that_it_was_fed() -> None:
    fit = ReuseFit()
    for item in range(4000):
        use = use_of(item, 0, "")
        fit.note(use)
        if item % 2:
            use.again(20 * SECOND, item)
            fit.note(use)
    # Of 6,000 uses 2,000 are followed by another one, after 20 s.
    ahead = 30 * SECOND
    expected = (1 - math.exp(-30 / 20)) / 3
    assert fit.chance(0, ahead) == pytest.approx(expected, rel=0.01)


def test_the_chance_of_a_class_is_its_share_and_its_rate_with_one_of_each_assumed() -> None:
    # 2 of 4 uses were followed, after 20 in all: a share of 3/6, and 3 returns in 20 + 10.
    fit = ReuseFit(uses=4, returns=2, waited_ns=20)
    alive = 0.5 * math.exp(-0.1 * 30)
    assert fit.chance(30, 10) == pytest.approx(alive * (1 - math.exp(-1)) / (0.5 + alive))
    assert ReuseFit().chance(0, 10) == pytest.approx(0.5 * (1 - math.exp(-0.1 * 10)))


def test_a_use_at_the_same_moment_is_a_return_without_a_wait() -> None:
    fit = ReuseFit()
    use = use_of(1, 7, "")
    fit.note(use)
    use.again(7, 2)
    fit.note(use)
    assert (fit.uses, fit.returns, fit.waited_ns) == (2, 1, 0)


def test_an_object_stands_as_its_class_does_after_its_time_without_use() -> None:
    rule = ClassWise(lifetime_ns=10)
    rule.fits["chat"] = ReuseFit(uses=4, returns=2, waited_ns=20)
    assert rule.standing("chat", (70, 3), 100) == rule.fits["chat"].chance(30, 10)


def test_of_classes_that_stand_alike_the_first_by_name_lets_go() -> None:
    rule = ClassWise()
    residents = Residents(rule)
    for item, group in ((1, "mail"), (2, "chat")):
        residents.add(use_of(item, 5, group), (5, 0))
    assert residents.pop(10) == 2


@given(st.floats(0, 1e12), st.floats(1, 1e12), st.integers(0, 50), st.integers(0, 50))
def test_a_chance_is_one_and_falls_with_age(age: float, ahead: float, returns: int, more: int) -> None:
    fit = ReuseFit(uses=returns + more, returns=returns, waited_ns=returns * 1e9)
    chance = fit.chance(age, ahead)
    assert 0.0 <= chance <= 1.0
    assert fit.chance(age * 2 + 1, ahead) <= chance + 1e-12
