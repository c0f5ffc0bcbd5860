"""Layers that leave HBM: what they give, and below which hit rate they cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.placement.layer_groups import (
    Fetching,
    LayerGroup,
    capacity_factor,
    check_groups,
    growth_ns,
    least_hit_rate,
    may_leave,
)

K = 1024
EVEN = LayerGroup("even", 30, 1152)
ODD = LayerGroup("odd", 30, 1152, derivable_from="even", working_tokens=8 * K)
FETCHING = Fetching(
    sequences=64, rows=2048, row_bytes=1152, bytes_per_second=50_000_000_000, layer_ns=500_000
)


def test_half_of_the_layers_outside_nearly_doubles_the_tokens() -> None:
    assert capacity_factor([EVEN, ODD], 128 * K) == pytest.approx(2 / (1 + 1 / 16))


def test_a_context_within_the_working_cache_gains_nothing() -> None:
    assert capacity_factor([EVEN, ODD], 4 * K) == 1.0


def test_full_attention_alone_gains_nothing() -> None:
    assert capacity_factor([EVEN], 128 * K) == 1.0
    assert not may_leave(EVEN, 1, 50_000_000_000, 10**9)


def test_a_group_may_leave_when_its_read_set_is_known_early_enough() -> None:
    assert may_leave(ODD, 25_000_000, 50_000_000_000, 500_000)
    assert not may_leave(ODD, 25_000_001, 50_000_000_000, 500_000)


def test_the_worked_example_needs_83_percent() -> None:
    assert least_hit_rate(FETCHING) == pytest.approx(0.834, abs=0.001)


@given(st.floats(0, 1))
def test_steps_grow_exactly_below_the_least_hit_rate(hit_rate: float) -> None:
    least = least_hit_rate(FETCHING)
    if hit_rate >= least + 1e-9:
        assert growth_ns(FETCHING, hit_rate) == 0
    elif hit_rate < least - 1e-9:
        assert growth_ns(FETCHING, hit_rate) > 0


def test_growth_is_the_time_of_the_missed_rows_less_what_is_hidden() -> None:
    missed_ns = 64 * 2048 * 1152 * 0.5 / 50
    assert growth_ns(FETCHING, 0.5) == pytest.approx(missed_ns - 500_000)


def test_a_fast_link_needs_no_cache_at_all() -> None:
    assert least_hit_rate(Fetching(1, 16, 128, 50_000_000_000, 500_000)) == 0


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (
            [LayerGroup("odd", 1, 1, derivable_from="evn"), EVEN],
            "'evn' has to be another of the groups",
        ),
        ([LayerGroup("odd", 1, 1, derivable_from="odd")], "has to be another"),
        ([EVEN, ODD, LayerGroup("third", 1, 1, derivable_from="odd")], "itself derives from 'even'"),
    ],
)
def test_groups_that_lead_nowhere_are_refused(groups: list[LayerGroup], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_groups(groups)


def test_groups_that_lead_to_a_resident_one_are_fine() -> None:
    check_groups([EVEN, ODD])
