"""Spare cards: how often a domain is whole, and how long a swap takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.availability import Swap, availability, spares_for
from kvpool.plan.timing.model import LinkModel


@pytest.mark.parametrize(("spares", "percent"), [(0, 77.4), (1, 97.2), (2, 99.77), (3, 99.985)])
def test_256_cards_that_are_down_a_thousandth_of_the_time(spares: int, percent: float) -> None:
    digits = len(str(percent).partition(".")[2])
    assert round(100 * availability(256, spares, 0.001), digits) == percent


def test_spares_are_counted_until_the_availability_is_reached() -> None:
    assert spares_for(256, 0.001, 0.99) == 2
    assert spares_for(256, 0.001, 0.5) == 0
    assert spares_for(256, 0.9, 0.999, most=8) is None


def test_an_availability_that_is_just_reached_is_enough_and_the_last_spare_counts() -> None:
    just = availability(256, 3, 0.001)
    assert spares_for(256, 0.001, just) == 3
    assert spares_for(256, 0.001, just, most=3) == 3
    assert spares_for(256, 0.001, just, most=2) is None


@pytest.mark.parametrize(
    ("cards", "spares", "down", "share"),
    [
        # Of so many, as many as in a Poisson distribution of mean 10 are down.
        (10_000_000, 10, 1e-6, 0.58304),
        # At least one of 65 is up, each once in a million.
        (1, 64, 1 - 1e-6, 65e-6),
        (256, 2, 0.0, 1.0),
        (256, 2, 1.0, 0.0),
    ],
)
def test_neither_large_domains_nor_bad_cards_are_too_much(
    cards: int, spares: int, down: float, share: float
) -> None:
    assert availability(cards, spares, down) == pytest.approx(share, rel=1e-4)


@given(st.integers(1, 600), st.integers(0, 8), st.floats(0, 1))
def test_availability_is_a_share_that_a_spare_never_lowers(cards: int, spares: int, down: float) -> None:
    fewer, more = availability(cards, spares, down), availability(cards, spares + 1, down)
    assert -1e-9 <= fewer <= more + 1e-9
    assert more <= 1 + 1e-9


@given(st.integers(1, 600), st.integers(0, 8), st.floats(1e-6, 0.5))
def test_one_more_spare_helps_by_exactly_the_states_that_it_saves(
    cards: int, spares: int, down: float
) -> None:
    # Adding one card to k of n systems: the new one is up, or at most s of the old ones are down.
    fewer, more = availability(cards, spares, down), availability(cards, spares + 1, down)
    wider = availability(cards - 1, spares + 1, down) if cards > 1 else 1.0
    assert more == pytest.approx(down * fewer + (1 - down) * wider, abs=1e-9)


def test_a_swap_takes_its_detection_its_switch_its_weights_and_the_kv_that_has_no_copy() -> None:
    link = LinkModel(setup_ns=1_000_000, bytes_per_second=40_000_000_000)
    swap = Swap(3_000_000_000, 500_000_000, 80_000_000_000, 0, link, link)
    assert swap.outage_ns() == 3_000_000_000 + 500_000_000 + 2_001_000_000
    copied = Swap(3_000_000_000, 500_000_000, 80_000_000_000, 4_000_000_000, link, link)
    assert copied.outage_ns() - swap.outage_ns() == 101_000_000
    slower = LinkModel(setup_ns=5_000_000, bytes_per_second=4_000_000_000)
    apart = Swap(3_000_000_000, 500_000_000, 80_000_000_000, 4_000_000_000, link, slower)
    assert apart.outage_ns() - swap.outage_ns() == 1_005_000_000


def test_figures_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="cards 0 must be 1 or more"):
        availability(0, 1, 0.1)
    with pytest.raises(ValueError, match=r"down_share is 1\.5"):
        availability(1, 1, 1.5)
