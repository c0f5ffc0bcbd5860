"""From how many cached tokens on loading beats computing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.tiers.breakeven import load_wins_from_tokens
from kvpool.plan.timing.model import LinkModel, TimingModel
from tests.plan.tiers.stacks import GB, KAPPA, QWEN


def test_host_memory_wins_at_once_and_by_more_than_six_times() -> None:
    link = LinkModel(0, 50 * GB)
    assert load_wins_from_tokens(QWEN, KAPPA, link) == 1
    computed = QWEN.prefill_token_ns + QWEN.prefill_square_ns
    assert computed / link.transfer_ns(KAPPA) == pytest.approx(6.6, abs=0.05)


def test_one_drive_of_6_gigabytes_a_second_wins_from_about_ten_thousand_tokens() -> None:
    found = load_wins_from_tokens(QWEN, KAPPA, LinkModel(0, 6 * GB))
    assert found == pytest.approx(10_200, rel=0.01)


def test_without_a_square_a_slow_link_never_wins_and_a_fast_one_pays_its_setup_back() -> None:
    linear = TimingModel(0, 1_000, 0, 0, 0, 0)
    assert load_wins_from_tokens(linear, 1_000, LinkModel(0, GB)) is None
    assert load_wins_from_tokens(linear, 1_000, LinkModel(10_000, 2 * GB)) == 21
    assert load_wins_from_tokens(linear, 1_000, LinkModel(10_250, 2 * GB)) == 21


def test_with_a_square_alone_loading_wins_where_the_squares_outgrow_the_tokens() -> None:
    # 3 n^2 outgrows 1,000 n above 333.3, and 1,000 n + 2,000 above 335.3.
    squares = TimingModel(0, 0, 3, 0, 0, 0)
    assert load_wins_from_tokens(squares, 1_000, LinkModel(0, GB)) == 334
    assert load_wins_from_tokens(squares, 1_000, LinkModel(2_000, GB)) == 336


@given(st.integers(10**8, 10**11), st.integers(0, 10**7), st.integers(10**3, 10**6))
def test_loading_wins_from_the_break_even_on_and_not_before(rate: int, setup: int, kappa: int) -> None:
    link = LinkModel(setup, rate)
    tokens = load_wins_from_tokens(QWEN, kappa, link)
    assert tokens is not None

    def loading(count: int) -> float:
        return setup + count * kappa * 1e9 / rate

    def computing(count: int) -> float:
        return QWEN.prefill_token_ns * count + QWEN.prefill_square_ns * count * count

    assert loading(tokens) <= computing(tokens) * (1 + 1e-9)
    assert loading(tokens + 1_000) <= computing(tokens + 1_000)
    if tokens > 1:
        assert loading(tokens - 1) >= computing(tokens - 1) * (1 - 1e-9)
