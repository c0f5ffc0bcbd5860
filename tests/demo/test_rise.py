"""The weights that a slot gets again after a failure."""

from __future__ import annotations

from demo.route_watch import Carried, rise


def steps(*weights: int) -> list[Carried]:
    return [Carried(number, {"moved": weight, "other": 100}, 0.0) for number, weight in enumerate(weights)]


def test_the_rise_begins_with_the_first_zero_and_tells_each_weight_once() -> None:
    assert rise(steps(100, 0, 0, 10, 50, 50, 100), "moved") == [0, 10, 50, 100]


def test_a_slot_that_never_got_nothing_has_no_rise() -> None:
    assert rise(steps(100, 50, 100), "other") == []


def test_a_slot_that_the_route_does_not_name_gets_nothing() -> None:
    assert rise(steps(100, 0), "unknown") == [0]
