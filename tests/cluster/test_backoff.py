"""Waiting longer after every failure, never in step with others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.cluster.backoff import jittered


@pytest.mark.parametrize(
    ("failures", "draw", "seconds"),
    [(1, 0.0, 0.25), (1, 1.0, 0.5), (2, 1.0, 1.0), (3, 1.0, 2.0), (7, 1.0, 30.0), (10_000, 0.0, 15.0)],
)
def test_each_failure_doubles_the_wait_up_to_the_limit(failures: int, draw: float, seconds: float) -> None:
    assert jittered(lambda: draw)(failures) == seconds


@given(st.integers(-1, 10**9), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_never_nothing_and_never_above_the_limit(failures: int, draw: float) -> None:
    assert 0 < jittered(lambda: draw, first_seconds=0.5, limit_seconds=30.0)(failures) <= 30.0
