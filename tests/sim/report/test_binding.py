"""Which limit binds, in words."""

from dataclasses import replace

import pytest

from kvpool.sim.report.binding import binding_of
from kvpool.sim.report.figures import (
    ClassFigures,
    Inputs,
    Latencies,
    LinkFigures,
    Quantiles,
    Report,
    Totals,
)
from kvpool.sim.serving.run import Sample

MS = 1_000_000
QUICK = Quantiles(100, MS, MS, MS, MS, MS)
SLOW = Quantiles(100, MS, MS, 900 * MS, 2000 * MS, 3000 * MS)
IDLE = tuple(Sample(at, 1, 0, 100, 0) for at in range(10))
BUSY = (*IDLE[:8], Sample(8, 9, 3, 150, 0), Sample(9, 9, 4, 190, 0))
FULL = (*BUSY, Sample(10, 9, 5, 950, 0), Sample(11, 9, 6, 990, 0))
TOTALS = Totals(100, 100, {}, 10**9, 1, 1, 0, 1, 0, 0, 1, 0, 1.0, 1000, {})


def report(
    met: int,
    totals: Totals = TOTALS,
    links: tuple[LinkFigures, ...] = (),
    timeline: tuple[Sample, ...] = IDLE,
) -> Report:
    latencies = Latencies(QUICK, QUICK, QUICK) if met == 100 else Latencies(SLOW, QUICK, SLOW)
    one = ClassFigures("interactive", 100, 0, met, 500 * MS, 50 * MS, latencies)
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
    ],
)
def test_what_is_full_while_promises_break_is_what_binds(found: Report, limit: str) -> None:
    assert binding_of(found).limit == limit


def test_the_promise_that_broke_is_named_with_both_times() -> None:
    told = binding_of(report(60)).reasons
    assert "interactive: time to first token was 900.0 ms or more for 5 %, promised were 500.0 ms" in told
    assert not any("time per token" in line for line in told)


def test_how_much_of_the_waiting_was_for_memory_is_told() -> None:
    assert (
        "of the waiting, 61 % was done while that memory was full"
        in binding_of(report(60, timeline=FULL)).reasons
    )


def test_refused_requests_are_told_with_the_reason() -> None:
    told = binding_of(report(60, totals=replace(TOTALS, refused={"it is too long": 3}))).reasons
    assert told[0] == "3 requests were refused: it is too long"
