"""Which limit binds, in words."""

from dataclasses import replace

import pytest

from kvpool.sim.report.binding import binding_of
from kvpool.sim.report.figures import (
    Alone,
    ClassFigures,
    Inputs,
    Latencies,
    LinkFigures,
    Quantiles,
    Report,
    TooLarge,
    Totals,
)
from kvpool.sim.serving.run import Sample

MS = 1_000_000
QUICK = Quantiles(100, MS, MS, MS, MS, MS)
SLOW = Quantiles(100, MS, MS, 900 * MS, 2000 * MS, 3000 * MS)
EASY = Alone(20 * MS, 5 * MS, 0)
IDLE = tuple(Sample(at, 1, 0, 100, 0) for at in range(10))
BUSY = (*IDLE[:8], Sample(8, 9, 3, 150, 0), Sample(9, 9, 4, 190, 0))
FULL = (*BUSY, Sample(10, 9, 5, 950, 0), Sample(11, 9, 6, 990, 0))
TOTALS = Totals(100, 100, {}, 10**9, 1, 1, 0, 1, 0, 0, 1, 0, 1.0, 1000, {})


def report(
    met: int,
    totals: Totals = TOTALS,
    links: tuple[LinkFigures, ...] = (),
    timeline: tuple[Sample, ...] = IDLE,
    alone: Alone = EASY,
) -> Report:
    latencies = Latencies(QUICK, QUICK, QUICK) if met == 100 else Latencies(SLOW, QUICK, SLOW)
    one = ClassFigures("interactive", 100, 0, met, 500 * MS, 50 * MS, latencies, alone)
    return Report("a run", Inputs("a test", "", "", 0), (), totals, (one,), (), (), links, timeline)


def two_links(busy_share: float) -> tuple[LinkFigures, ...]:
    return (LinkFigures("SSD-0", 1, busy_share), LinkFigures("DRAM-0", 1, busy_share / 2))


@pytest.mark.parametrize(
    ("found", "limit"),
    [
        (report(100), "Nothing"),
        (report(99), "Nothing"),
        (report(60), "Time"),
        (report(60, timeline=FULL), "Memory"),
        (report(60, timeline=BUSY), "Time"),
        (report(60, timeline=(*FULL, *BUSY)), "Time"),
        (report(60, totals=replace(TOTALS, preempted=11)), "Memory"),
        (report(60, links=two_links(0.95)), "Link"),
        (report(60, links=two_links(0.5)), "Time"),
        (report(60, links=two_links(0.95), timeline=FULL), "Memory"),
        (report(60, timeline=()), "Time"),
        (report(60, totals=replace(TOTALS, too_large=TooLarge(21, 5000, 1000))), "Memory"),
        (report(60, totals=replace(TOTALS, too_large=TooLarge(20, 5000, 1000))), "Time"),
        (report(99, totals=replace(TOTALS, too_large=TooLarge(1, 5000, 1000))), "Nothing"),
    ],
)
def test_what_is_full_while_promises_break_is_what_binds(found: Report, limit: str) -> None:
    assert binding_of(found).limit == limit


def test_the_promise_that_broke_is_named_with_both_times() -> None:
    told = binding_of(report(60)).reasons
    assert "interactive: time to first token was 900.0 ms or more for 5 %, promised were 500.0 ms" in told
    assert not any("time per token" in line for line in told)


def test_a_promise_below_what_a_request_takes_alone_binds_with_both_times() -> None:
    told = binding_of(report(0, timeline=FULL, alone=Alone(2000 * MS, 5 * MS, 100)))
    assert told.limit == "Promise"
    (line,) = told.impossible
    assert "100 of 100 requests break a promise even alone" in line
    assert "the first token takes 2.00 s at least, promised are 500.0 ms (4x)" in line
    assert "further token" not in line


def test_a_few_requests_too_long_for_their_promise_are_a_reason_and_no_finding() -> None:
    told = binding_of(report(60, alone=Alone(20 * MS, 5 * MS, 30)))
    assert (told.limit, told.impossible) == ("Time", ())
    assert "interactive: 30 of 100 requests would break a promise even alone" in told.reasons


def test_how_much_of_the_waiting_was_for_memory_is_told() -> None:
    assert (
        "of the waiting, 61 % was done while that memory was full"
        in binding_of(report(60, timeline=FULL)).reasons
    )


def test_refused_requests_are_told_with_the_reason() -> None:
    told = binding_of(report(60, totals=replace(TOTALS, refused={"it is too long": 3}))).reasons
    assert told[0] == "3 requests were refused: it is too long"


def test_requests_of_which_most_fit_nowhere_are_a_finding_with_their_size_and_the_room() -> None:
    told = binding_of(report(20, totals=replace(TOTALS, too_large=TooLarge(51, 5000, 1000))))
    assert told.limit == "Memory"
    (line,) = told.impossible
    assert "51 of 100 requests do not fit in an instance: the largest has 5,000 tokens of KV" in line
    assert "an instance has room for 1,000 (5x): give kvMemory, or more cards" in line


def test_how_much_the_largest_refused_request_needs_is_a_reason() -> None:
    told = binding_of(report(99, totals=replace(TOTALS, refused={"x": 1}, too_large=TooLarge(1, 5000, 1000))))
    assert told.reasons[1] == (
        "the largest of those has 5,000 tokens of KV, and an instance has room for 1,000"
    )
