"""What kept a fleet from serving more, in words: kvpool's own reading of the figures of a run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kvpool.sim.report.figures import ClassFigures, Report, TooLarge

FULL: Final = 0.9
"""From which share of its room on a memory counts as full, and of the run on a link as always busy."""
MANY: Final = 0.1
"""From which share of the requests on many had to give their KV back."""
MOST: Final = 0.5
"""From which share on it is most of the waiting."""
NEARLY_ALL: Final = 0.99
"""Goodput from which on nothing is said to bind."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The limit, and the figures that say so."""

    limit: str
    """`Nothing`, `Promise`, `Memory`, `Link`, `Time`."""
    verdict: str
    """One sentence."""
    reasons: tuple[str, ...]
    impossible: tuple[str, ...] = ()
    """One line for each class whose promise no fleet of such instances can keep, or one when most requests do
    not fit in them."""


def binding_of(report: Report) -> Binding:
    """Say which limit binds.

    The memory for KV does when most requests fit in no instance, and a promise that most requests of a class
    break even alone. Nothing does when nearly all requests were served within their promises. Else it is the
    memory again, when most of those that were not did not fit, most of the waiting was done while it was full
    with running requests, or many had to give their KV back; else the busiest link, when it was hardly ever
    idle; else the time of the instances themselves.
    """
    reasons = tuple(_reasons(report))
    goodput = f"{100 * report.goodput:.1f} %"
    kept = f"{goodput} of the requests had what was promised"
    large = report.totals.too_large
    if large.requests > MOST * report.totals.requests:
        return Binding(
            "Memory",
            f"Memory for KV binds: {kept}, and most do not fit in an instance.",
            reasons,
            (_misfits(large, report.totals.requests),),
        )
    impossible = tuple(line for one in report.classes for line in _impossible(one))
    if impossible:
        return Binding(
            "Promise",
            f"What is promised binds: {goodput} of the requests had it, and most of a class could not have it"
            " even alone.",
            reasons,
            impossible,
        )
    if report.goodput >= NEARLY_ALL:
        return Binding("Nothing", f"Nothing binds: {goodput} of the requests had what was promised.", reasons)
    if _memory_is_full(report):
        return Binding("Memory", f"Memory for KV binds: {kept}.", reasons)
    busiest = max(report.links, key=lambda link: link.busy_share, default=None)
    if busiest is not None and busiest.busy_share >= FULL:
        return Binding("Link", f"Link {busiest.name} binds: {kept}.", reasons)
    return Binding(
        "Time",
        f"The time of the instances binds: {kept}; neither memory nor links held them up.",
        reasons,
    )


def _misfits(large: TooLarge, requests: int) -> str:
    return (
        f"{large.requests:,} of {requests:,} requests do not fit in an instance: the largest has"
        f" {large.most_tokens:,} tokens of KV, and an instance has room for {large.room_tokens:,}"
        f" ({large.most_tokens / large.room_tokens:.3g}x): give kvMemory, or more cards"
    )


def _memory_is_full(report: Report) -> bool:
    totals = report.totals
    missed = totals.requests - sum(one.met for one in report.classes)
    return (
        totals.too_large.requests > MOST * missed
        or totals.preempted > MANY * totals.served
        or _waited_for_memory(report) >= MOST
    )


def _waited_for_memory(report: Report) -> float:
    """Of the waiting, the share that was done while running requests filled the memory."""
    full = FULL * report.totals.capacity_tokens
    waited = sum(sample.waiting for sample in report.timeline)
    for_memory = sum(sample.waiting for sample in report.timeline if sample.used_tokens >= full)
    return for_memory / waited if waited else 0.0


def _reasons(report: Report) -> Iterator[str]:
    totals = report.totals
    for why, count in totals.refused.items():
        yield f"{count:,} requests were refused: {why}"
    if totals.too_large.requests:
        large = totals.too_large
        yield (
            f"the largest of those has {large.most_tokens:,} tokens of KV, and an instance has room for"
            f" {large.room_tokens:,}"
        )
    for one in report.classes:
        yield from _missed(one)
        if one.alone.too_slow:
            yield (
                f"{one.slo_class}: {one.alone.too_slow:,} of {one.requests:,} requests would break a promise"
                " even alone"
            )
    if report.timeline and totals.capacity_tokens:
        most = max(sample.used_tokens for sample in report.timeline) / totals.capacity_tokens
        waiting = max(sample.waiting for sample in report.timeline)
        yield (
            f"running requests filled at most {100 * most:.0f} % of the accelerators' memory for KV;"
            f" {waiting:,} waited at most"
        )
        if waiting:
            share = 100 * _waited_for_memory(report)
            yield f"of the waiting, {share:.0f} % was done while that memory was full"
    if totals.preempted:
        yield f"{totals.preempted:,} times a request had to give its KV back"
    busiest = max(report.links, key=lambda link: link.busy_share, default=None)
    if busiest is not None:
        yield f"the busiest link, {busiest.name}, was in use {100 * busiest.busy_share:.1f} % of the time"


def _impossible(one: ClassFigures) -> Iterator[str]:
    """Which promise of a class is below what a request takes alone, and by how much."""
    alone = one.alone
    if alone.too_slow <= MOST * one.requests:
        return
    text = (
        f"{one.slo_class}: {alone.too_slow:,} of {one.requests:,} requests break a promise even alone on the"
        " fastest instance"
    )
    for name, least_ns, promise_ns in (
        ("the first token", alone.least_ttft_ns, one.ttft_promise_ns),
        ("each further token", alone.least_tpot_ns, one.tpot_promise_ns),
    ):
        if least_ns > promise_ns:
            factor = f" ({least_ns / promise_ns:.3g}x)" if promise_ns else ""
            text += f"; {name} takes {_ms(least_ns)} at least, promised are {_ms(promise_ns)}{factor}"
    yield f"{text}: promise longer times, or take faster instances"


def _missed(one: ClassFigures) -> Iterator[str]:
    """Which promise the slowest requests of a class had broken."""
    for name, spread, promise_ns in (
        ("time to first token", one.latencies.ttft, one.ttft_promise_ns),
        ("time per token", one.latencies.tpot, one.tpot_promise_ns),
    ):
        for rank, value_ns in ((50, spread.p50_ns), (95, spread.p95_ns), (99, spread.p99_ns)):
            if value_ns > promise_ns:
                yield (
                    f"{one.slo_class}: {name} was {_ms(value_ns)} or more for {100 - rank} %,"
                    f" promised were {_ms(promise_ns)}"
                )
                break


def _ms(time_ns: int) -> str:
    return f"{time_ns / 1e9:,.2f} s" if time_ns >= 1e9 else f"{time_ns / 1e6:,.1f} ms"
