"""Pins while tools run."""

from __future__ import annotations

from kvpool.plan.trajectories.tool_pins import PinSettings, ToolPins

SECOND = 1_000_000_000


def taught(*seconds: float) -> ToolPins:
    pins = ToolPins()
    for one in seconds:
        pins.learn("shell", round(one * SECOND))
    return pins


def test_a_pin_lasts_as_long_as_nine_of_ten_calls_take() -> None:
    pins = taught(*(0.1 * n for n in range(1, 20)))
    pin = pins.decide(
        "shell", recompute_ns=2 * SECOND, pinned_bytes=1, free_bytes=1000, queue_delay_ns=SECOND
    )
    assert pin.ttl_ns == 1.8 * SECOND


def test_a_slow_tool_is_pinned_for_no_longer_than_the_limit_and_only_for_its_quick_calls() -> None:
    pins = taught(*([60.0] * 15 + [1.0] * 5))
    pin = pins.decide(
        "shell", recompute_ns=4 * SECOND, pinned_bytes=1, free_bytes=1000, queue_delay_ns=SECOND
    )
    assert pin.ttl_ns == PinSettings().most_ns
    assert pin.saved_ns == 1 * SECOND


def test_no_pin_when_those_that_queue_lose_more_than_the_program_saves() -> None:
    pins = taught(*([1.0] * 20))
    scarce = pins.decide(
        "shell", recompute_ns=2 * SECOND, pinned_bytes=900, free_bytes=100, queue_delay_ns=SECOND
    )
    ample = pins.decide(
        "shell", recompute_ns=2 * SECOND, pinned_bytes=900, free_bytes=1000, queue_delay_ns=SECOND
    )
    assert scarce.ttl_ns == 0
    assert scarce.delay_ns > scarce.saved_ns
    assert ample.ttl_ns == SECOND


def test_an_unknown_tool_is_pinned_for_up_to_the_limit() -> None:
    pin = ToolPins().decide("new", 2 * SECOND, 1, 1000, SECOND)
    assert pin.ttl_ns == PinSettings().most_ns
    assert pin.saved_ns == 2 * SECOND


def test_only_the_last_calls_of_a_tool_count() -> None:
    pins = ToolPins(PinSettings(calls=2, quantile=0.5))
    for took_ns in (900, 5, 7):
        pins.learn("shell", took_ns)
    assert pins.decide("shell", 2 * SECOND, 1, 1000, SECOND).ttl_ns == 7


def test_a_pin_has_to_save_more_than_it_delays() -> None:
    assert ToolPins().decide("new", 100, 20, 10, 50).ttl_ns == 0
    assert ToolPins().decide("new", 101, 20, 10, 50).ttl_ns > 0


def test_the_last_free_byte_counts_and_none_is_taken_for_one() -> None:
    assert ToolPins().decide("new", 1, 20, 1, 50).delay_ns == 1000
    assert ToolPins().decide("new", 1, 20, 0, 50).delay_ns == 1000
