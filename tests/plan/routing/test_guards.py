"""When the clever rule is not asked, why, and when it is asked again."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import replace

import pytest

from kvpool.plan.routing.guards import Calibration, Cause, Fallback, Guarded, GuardSettings
from kvpool.plan.routing.views import Ask, Instance
from kvpool.plan.timing.model import TimingModel
from tests.plan.routing.fleet import CARD, Counter, Seen, Sequence, ask

SECOND = 1_000_000_000


class Last:
    """A clever rule that always takes the last one, so that one sees when it was asked."""

    def choose(self, ask: Ask, instances: Many[Instance], now_ns: int) -> int:
        return len(instances) - 1


def pool(share: float, count: int = 5) -> list[Seen]:
    return [Seen([Sequence(100, round(54_000 * share), 1000)]) for _ in range(count)]


def guarded(**settings: float) -> Guarded:
    return Guarded(Last(), Counter(), GuardSettings(**settings))  # type: ignore[arg-type]  # floats in a test


def cause(rule: Guarded) -> Cause | None:
    return rule.fallback.cause if rule.fallback else None


def test_up_to_three_instances_are_counted_and_four_are_not() -> None:
    rule = guarded()
    small = [Seen(waiting=1), Seen(), Seen(waiting=2)]
    assert rule.choose(ask(), small, 0) == 1
    assert cause(rule) is Cause.SMALL_POOL
    assert rule.choose(ask(), [*small, Seen(waiting=9)], 0) == 3
    assert cause(rule) is None


def test_small_pools_of_unequal_cards_are_not_counted() -> None:
    rule = guarded()
    slow = replace(CARD, step_base_ns=40e6, step_sequence_ns=240_000, step_token_ns=1600)
    rule.choose(ask(), [Seen(), Seen(timing=slow)], 0)
    assert cause(rule) is None
    nearly = replace(CARD, step_base_ns=22e6)
    rule.choose(ask(), [Seen(), Seen(timing=nearly)], 0)
    assert cause(rule) is Cause.SMALL_POOL


def test_scarcity_must_last_before_requests_are_sprayed_and_ends_well_below() -> None:
    rule = guarded()
    seen = []
    for at, share in [(0, 0.97), (1, 0.97), (3, 0.97), (4, 0.90), (5, 0.86), (6, 0.84), (7, 0.97), (8, 0.97)]:
        rule.choose(ask(prompt=10, expected=10), pool(share), at * SECOND)
        seen.append(cause(rule))
    scarce = Cause.SCARCITY
    assert seen == [None, None, scarce, scarce, scarce, None, None, None]


def test_scarcity_begins_above_its_limit_and_ends_below_the_other_one() -> None:
    rule = guarded()
    for at, share in [(0, 0.95), (3, 0.95), (6, 0.95)]:
        rule.choose(ask(prompt=10, expected=10), pool(share), at * SECOND)
        assert cause(rule) is None
    for at, share in [(7, 0.97), (9, 0.97), (10, 0.97), (11, 0.85)]:
        rule.choose(ask(prompt=10, expected=10), pool(share), at * SECOND)
    assert rule.fallback == Fallback(Cause.SCARCITY, 0.85, 0.85)


def test_one_instance_with_room_is_enough_to_be_clever() -> None:
    rule = guarded()
    for at in range(5):
        rule.choose(ask(), [*pool(1.0), *pool(0.3, count=1)], at * SECOND)
        assert cause(rule) is None


def test_a_short_relief_begins_the_count_again() -> None:
    rule = guarded()
    for at, share in [(0, 0.97), (1, 0.94), (2, 0.97), (4, 0.97)]:
        rule.choose(ask(prompt=10, expected=10), pool(share), at * SECOND)
    assert cause(rule) is None


def test_spraying_does_not_follow_load() -> None:
    rule = guarded()
    full = pool(0.99)
    chosen = [rule.choose(ask(prompt=10, expected=10), full, at * SECOND) for at in range(13)]
    assert chosen[3:] == [0, 1, 2, 3, 4] * 2


def test_a_request_that_fits_nowhere_is_sprayed_and_the_message_says_by_how_much() -> None:
    rule = guarded()
    rule.choose(ask(prompt=60_000, expected=1000), pool(0.1), 0)
    assert rule.fallback is not None
    assert rule.fallback.cause is Cause.OVERSIZED
    assert "61000 tokens" in rule.fallback.message
    assert "54000" in rule.fallback.message


def test_a_request_fits_when_the_largest_instance_just_holds_it() -> None:
    unequal = [*pool(0.1, count=4), Seen(capacity_tokens=90_000)]
    rule = guarded()
    rule.choose(ask(prompt=80_000, expected=10_000), unequal, 0)
    assert cause(rule) is None
    rule.choose(ask(prompt=80_000, expected=10_001), unequal, 0)
    assert rule.fallback == Fallback(Cause.OVERSIZED, 90_001, 90_000)


def test_constants_are_old_only_when_they_are_older_than_their_limit() -> None:
    rule = Guarded(Last(), Counter(), GuardSettings(calibration_age_ns=5 * SECOND), Calibration(True, SECOND))
    rule.choose(ask(), pool(0.1), 6 * SECOND)
    assert cause(rule) is None
    rule.choose(ask(), pool(0.1), 8 * SECOND)
    assert rule.fallback == Fallback(Cause.STALE_CALIBRATION, 7.0, 5.0)


def test_cards_are_unequal_below_their_share_and_not_at_it() -> None:
    def judged(*steps: TimingModel) -> Fallback | None:
        rule = guarded()
        rule.choose(ask(), [Seen(timing=step) for step in steps], 0)
        return rule.fallback

    seven, ten = TimingModel(0, 0, 0, 7_000, 0, 0), TimingModel(0, 0, 0, 10_000, 0, 0)
    assert judged(seven, ten) == Fallback(Cause.SMALL_POOL, 2, 3)
    assert judged(replace(seven, step_base_ns=6_999), ten) is None
    # 32 sequences of 1,024 tokens: 1,024 ns for each sequence are 1 ns for each token.
    assert judged(TimingModel(0, 0, 0, 0, 1_024, 0), TimingModel(0, 0, 0, 0, 0, 1)) is not None


@pytest.mark.parametrize(
    ("calibration", "expected"),
    [
        (None, None),
        (Calibration(True, 0), None),
        (Calibration(False, 0), Cause.UNCALIBRATED),
        (Calibration(True, -86_400 * SECOND), Cause.STALE_CALIBRATION),
    ],
)
def test_constants_that_failed_or_are_old_are_not_believed(
    calibration: Calibration | None, expected: Cause | None
) -> None:
    rule = Guarded(Last(), Counter(), calibration=calibration)
    rule.choose(ask(), pool(0.1), SECOND)
    assert cause(rule) is expected


def test_every_message_is_one_sentence_that_says_what_happens_instead() -> None:
    for one in Cause:
        text = Fallback(one, 0.5, 0.9).message
        assert "counted" in text or "sprayed" in text
