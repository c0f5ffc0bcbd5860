"""A store behind a Service with several ready endpoints stays where its units are."""

from __future__ import annotations

from kvpool.control.store_poller import chosen

TWO = ("10.0.0.7", "10.0.0.8")


def test_a_leader_stays_with_the_endpoint_that_it_asked_last() -> None:
    assert chosen(TWO, "10.0.0.8:50051", frozenset({"10.0.0.7:50051"})) == "10.0.0.8"


def test_a_new_leader_asks_the_endpoint_that_units_are_mounted_at() -> None:
    assert chosen(TWO, "", frozenset({"10.0.0.8:50051"})) == "10.0.0.8"


def test_another_endpoint_is_chosen_only_when_the_known_one_is_not_ready() -> None:
    assert chosen(TWO, "10.0.0.9:50051", frozenset({"10.0.0.9:50051"})) == "10.0.0.7"
    assert chosen(TWO, "", frozenset()) == "10.0.0.7"
    assert chosen((), "10.0.0.9:50051", frozenset()) is None
