"""How many checkpoints a session keeps, and where."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.placement.checkpoints import CheckpointCost, ReturnRates, interval_tokens, usable_tokens
from kvpool.plan.placement.object_classes import ObjectClass, Tier, tier_of
from kvpool.plan.timing.model import LinkModel

COST = CheckpointCost(
    checkpoint_bytes=100_000_000,
    prefill_tokens_per_second=10_000,
    byte_second_price=1e-15,
    second_price=1e-3,
    block_tokens=512,
)
HBM = Tier("HBM", LinkModel(0, 4_000_000_000_000))
DRAM = Tier("DRAM", LinkModel(10_000, 50_000_000_000))
SSD = Tier("SSD", LinkModel(100_000, 7_000_000_000))


def cost_rate(interval: float, context: int, returns: float) -> float:
    wait = returns * interval / (2 * COST.prefill_tokens_per_second) * COST.second_price
    return wait + context / interval * COST.checkpoint_bytes * COST.byte_second_price


@given(st.integers(5_000, 200_000), st.floats(0.001, 1.0))
def test_no_other_whole_interval_costs_less(context: int, returns: float) -> None:
    chosen = interval_tokens(COST, context, returns)
    blocks = -(-context // 512)
    best = min(cost_rate(n * 512, context, returns) for n in range(1, blocks + 1))
    assert cost_rate(chosen, context, returns) <= best * (1 + 1e-9)


def test_the_interval_follows_the_square_root() -> None:
    expected = math.sqrt(2 * 10_000 * 100_000 * 100_000_000 * 1e-15 / (0.01 * 1e-3))
    assert interval_tokens(COST, 100_000, 0.01) == pytest.approx(expected, abs=512)


def test_sessions_that_return_more_often_keep_more() -> None:
    assert interval_tokens(COST, 100_000, 0.1) < interval_tokens(COST, 100_000, 0.001)


def test_a_full_tier_doubles_the_interval() -> None:
    calm = interval_tokens(COST, 100_000, 0.01)
    assert interval_tokens(COST, 100_000, 0.01, above_watermark=True) == pytest.approx(2 * calm, abs=1024)


@pytest.mark.parametrize(("context", "returns"), [(100_000, 0.0), (300, 5.0), (100_000, 1e12)])
def test_the_interval_stays_between_a_block_and_the_context(context: int, returns: float) -> None:
    interval = interval_tokens(COST, context, returns)
    assert 512 <= interval <= max(512, -(-context // 512) * 512)
    assert interval % 512 == 0


def test_a_short_or_empty_context_is_one_block() -> None:
    assert interval_tokens(COST, 300, 0.0) == 512
    assert interval_tokens(COST, 0, 0.0) == 512
    assert interval_tokens(COST, 1_024, 0.0) == 1_024


@pytest.mark.parametrize(
    ("checkpoints", "matched", "usable"),
    [((), 5000, 0), ((1024, 4096), 1023, 0), ((1024, 4096), 1024, 1024), ((1024, 4096), 9000, 4096)],
)
def test_the_last_checkpoint_within_the_match_is_what_can_be_used(
    checkpoints: tuple[int, ...], matched: int, usable: int
) -> None:
    assert usable_tokens(checkpoints, matched) == usable


def test_the_return_rate_is_learnt_from_gaps() -> None:
    rates = ReturnRates()
    assert rates.per_second("chat") == 0
    rates.note("chat", 10_000_000_000)
    assert rates.per_second("chat") == pytest.approx(0.1)
    for _ in range(100):
        rates.note("chat", 1_000_000_000)
    assert rates.per_second("chat") == pytest.approx(1.0, rel=0.01)


def test_a_fifth_of_the_newest_gap_enters_the_smoothed_one() -> None:
    rates = ReturnRates()
    rates.note("chat", 10_000_000_000)
    rates.note("chat", 5_000_000_000)
    assert rates.per_second("chat") == pytest.approx(1 / 9)
    assert rates.per_second("other") == 0


def test_a_checkpoint_goes_to_the_slowest_tier_that_hardly_delays_the_first_token() -> None:
    tiers = [HBM, DRAM, SSD]
    # 14.4 ms from SSD: within 5 % of 300 ms, not within 5 % of 100 ms.
    assert tier_of(ObjectClass.CHECKPOINT, 100_000_000, tiers, 300_000_000) is SSD
    assert tier_of(ObjectClass.CHECKPOINT, 100_000_000, tiers, 100_000_000) is DRAM
    assert tier_of(ObjectClass.CHECKPOINT, 10**12, tiers, 1) is HBM


def test_a_checkpoint_that_takes_just_its_share_of_the_time_may_stay_there() -> None:
    slow = Tier("slow", LinkModel(0, 1_000_000_000))
    assert tier_of(ObjectClass.CHECKPOINT, 5, [HBM, slow], 100) is slow
    assert tier_of(ObjectClass.CHECKPOINT, 5, [HBM, slow], 99) is HBM
    assert tier_of(ObjectClass.CHECKPOINT, 5, [HBM, slow], 99, share_percent=6) is slow


def test_below_the_top_of_two_tiers_is_the_lower_one() -> None:
    assert tier_of(ObjectClass.NEWEST_CHECKPOINT, 1, [HBM, SSD], 1) is SSD


def test_other_classes_have_their_place() -> None:
    tiers = [HBM, DRAM, SSD]
    assert tier_of(ObjectClass.ATTENTION_BLOCK, 1, tiers, 10**9) is HBM
    assert tier_of(ObjectClass.STEP_STATE, 1, tiers, 10**9) is HBM
    assert tier_of(ObjectClass.NEWEST_CHECKPOINT, 1, tiers, 10**9) is DRAM
    assert tier_of(ObjectClass.INDEXED_LAYER, 1, [HBM], 10**9) is HBM
    with pytest.raises(ValueError, match="no tiers"):
        tier_of(ObjectClass.CHECKPOINT, 1, [], 10**9)
