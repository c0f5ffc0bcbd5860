"""Requests are counted against the instant of weight 0, fault by fault."""

from __future__ import annotations

from demo.load import NOT_SENT, SentRequest
from demo.requests_told import (
    Window,
    WindowCounts,
    achieved_rate,
    count,
    failed,
    failures_after_zero,
)


def request(sent_at: float, status: int = 200) -> SentRequest:
    return SentRequest(number=0, sent_at=sent_at, finished_at=sent_at + 0.1, status=status)


def test_failures_before_weight_zero_are_counted_apart() -> None:
    requests = [request(9.0), request(10.0, 503), request(10.4, 500), request(10.5), request(11.0, 503)]
    window = Window(injected_at=10.0, zero_at=10.5, ends_at=20.0)
    assert count(requests, window) == WindowCounts(sent=4, failed_before_zero=2, failed_after_zero=1)


def test_a_window_ends_where_the_next_fault_begins() -> None:
    requests = [request(10.1), request(20.0, 504), request(20.1, 504)]
    assert count(requests, Window(10.0, 10.5, ends_at=20.0)) == WindowCounts(1, 0, 0)
    assert failed(requests) == 2


def test_what_was_in_flight_at_the_next_fault_belongs_to_that() -> None:
    cut_off = request(19.95, 502)
    first, second = Window(10.0, 10.5, ends_at=20.0), Window(20.0, 20.5, ends_at=30.0)
    assert count([cut_off], first) == WindowCounts(0, 0, 0)
    assert count([cut_off], second) == WindowCounts(1, failed_before_zero=1, failed_after_zero=0)


def test_failures_after_weight_zero_are_named() -> None:
    window = Window(injected_at=10.0, zero_at=10.5, ends_at=20.0)
    (line,) = failures_after_zero([request(10.2, 503), request(10.75, 503), request(11.0)], window)
    assert "sent 0.2500 s after weight 0: 503" in line


def test_the_achieved_rate_counts_what_was_sent_whatever_became_of_it() -> None:
    requests = [request(10.0), request(10.5, 503), request(11.0), request(10.7, NOT_SENT)]
    assert achieved_rate(requests) == 2.0
    assert achieved_rate([*requests, request(12.0, NOT_SENT)]) == 2.0


def test_a_single_request_has_no_rate() -> None:
    assert achieved_rate([request(10.0)]) == achieved_rate([]) == 0.0
