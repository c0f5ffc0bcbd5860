"""What memory outside the rack buys, and how much a node may lend."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.tiers.lending import Lent, LentBy, expected_ttft_ns, lendable
from kvpool.plan.tiers.pooling import Buys, pooling_verdict


def test_while_the_rack_carries_all_returns_memory_outside_buys_capacity() -> None:
    assert pooling_verdict(10.0, 2_000, 20_001).buys is Buys.CAPACITY
    beyond = pooling_verdict(20.0, 2_000, 20_001)
    assert beyond.buys is Buys.LATENCY
    assert beyond.load == pytest.approx(2, abs=0.001)
    assert pooling_verdict(10.0, 2_000, 20_000).buys is Buys.LATENCY
    assert pooling_verdict(0.1, 1, 1).buys is Buys.CAPACITY


def test_a_rack_without_links_is_refused() -> None:
    with pytest.raises(ValueError, match="inside_bytes_per_second is 0"):
        pooling_verdict(1.0, 1, 0)


def test_what_is_lent_is_decided_by_what_is_free_by_a_cap_or_by_the_time_to_return_it() -> None:
    assert lendable(1_000, 200, 900, 10.0, 100) == Lent(800, LentBy.FREE)
    assert lendable(1_000, 200, 500, 10.0, 100) == Lent(500, LentBy.CAP)
    assert lendable(1_000, 200, 900, 2.0, 100) == Lent(200, LentBy.RETURN_TIME)
    assert lendable(1_000, 200, 900, 2.0, None) == Lent(800, LentBy.FREE)
    assert lendable(100, 200, 900, 2.0, None) == Lent(0, LentBy.FREE)


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12), st.floats(0, 100))
def test_what_is_lent_never_touches_the_reserve_and_returns_in_time(
    free: int, reserve: int, cap: int, seconds: float
) -> None:
    lent = lendable(free, reserve, cap, seconds, 10**9)
    assert 0 <= lent.size_bytes <= max(0, free - reserve)
    assert lent.size_bytes <= seconds * 10**9


def test_what_was_asked_back_is_computed_again() -> None:
    assert expected_ttft_ns(100, 1_000, 0.0) == 100
    assert expected_ttft_ns(100, 1_000, 0.1) == 190
