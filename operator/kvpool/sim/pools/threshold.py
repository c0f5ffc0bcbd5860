"""From which pool size on a clever rule pays, for a mix of requests and how unequal the cards are.

Every cell is put under the load at which counting requests keeps the wanted share of promises: far below it
every rule keeps all of them, far above none can. Then all rules serve the same logs with the same errors of
prediction. kvpool's own method.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Final

from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.plan.routing.router import RouterFactory
from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.pools.density import with_density
from kvpool.sim.pools.pool import Pool, Served, falling_speeds, serve
from kvpool.sim.workloads.request import Workload

SIMPLE: Final = ("RoundRobin", "LeastOutstanding", "LeastLoaded", "LengthAware")
"""Rules that know no constants."""
REFERENCE: Final = "LeastOutstanding"
FIRST_RATE: Final = 0.25
"""Requests a second for each card of full speed that the search for a load begins with."""
FIRST_STEP: Final = 2.0
STEP: Final = 1.3
"""Between two loads that are tried, once one is known."""
HALVINGS: Final = 2
MOST_STEPS: Final = 30


@dataclass(frozen=True, slots=True)
class Question:
    """What the table is made for."""

    pool: Pool
    """The card, the promises and what routers know; its speeds are replaced."""
    logs: tuple[Workload, ...]
    """At least one; each cell is run with all of them."""
    sizes: tuple[int, ...]
    slowest: tuple[float, ...]
    """Speeds of the slowest card against the fastest; the others lie evenly between."""
    clever: RouterFactory
    prefill_per_decode: float = 1.0
    wanted_goodput: float = 0.9
    least_points: float = 1.0
    """A smaller mean gain is not worth a rule that has to be calibrated."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Cell:
    """One pool: what the clever rule gains over the best simple one."""

    size: int
    slowest: float
    requests_per_second: float
    clever_goodput: float
    simple_goodput: float
    simple_rule: str
    """The best of the simple ones, by its mean."""
    gains_points: tuple[float, ...]
    """Of each log, against that rule."""
    error_points: float
    """Standard error of their mean; 0 for a single log."""
    pays: bool
    log_seconds: float
    """From the first arrival to the last, mean over the logs at this load."""
    request_seconds: float
    """End to end under the reference, mean over the logs."""

    @property
    def is_one_burst(self) -> bool:
        """Whether the last request came before a usual one had ended: that is a heap, not a load."""
        return self.log_seconds < self.request_seconds

    @property
    def gain_points(self) -> float:
        """Mean over the logs."""
        return fmean(self.gains_points)


@dataclass(frozen=True, slots=True)
class Threshold:
    """The table, and what it says."""

    cells: tuple[Cell, ...]
    pays_from: Mapping[float, int | None]
    """By speed of the slowest card: the size from which on every pool gains; None: none of them does."""


def threshold(question: Question, told: Callable[[int], None] | None = None) -> Threshold:
    """Fill the table. `told` is called with the number of cells that are done.

    A cell pays when the mean gain is at least `least_points` and twice its own standard error.

    Raises:
        ValueError: when the logs cannot load a pool, requests keep no promise even when few come, or too many
            do not fit in an instance.
    """
    for log in question.logs:
        _check(log, question)
    cells: list[Cell] = []
    search = _Search(question)
    for slowest in question.slowest:
        for size in question.sizes:
            cells.append(_cell(question, size, slowest, search))
            if told is not None:
                told(len(cells))
    pays_from = {
        slowest: _pays_from([cell for cell in cells if cell.slowest == slowest])
        for slowest in question.slowest
    }
    return Threshold(tuple(cells), pays_from)


def _check(log: Workload, question: Question) -> None:
    """Refuse a log that is one moment, or of which too many requests are larger than an instance."""
    if len({request.arrival_ns for request in log.requests}) < 2:
        raise ValueError(
            f"{log.source} has {len(log.requests)} requests, all at one moment: that is no load; "
            "give a longer log"
        )
    sizes = [request.prompt_tokens + request.output_tokens for request in log.requests]
    room = question.pool.card.capacity_tokens
    too_large = sum(size > room for size in sizes)
    if too_large > (1 - question.wanted_goodput) * len(sizes):
        raise ValueError(
            f"{too_large} of {len(sizes)} requests of {log.source} do not fit in an instance: the largest "
            f"has {max(sizes)} tokens of KV, and an instance has room for {room}: give kvMemory, or more "
            "cards"
        )


def _pays_from(cells: Sequence[Cell]) -> int | None:
    found = None
    for cell in sorted(cells, key=lambda one: one.size, reverse=True):
        if not cell.pays:
            break
        found = cell.size
    return found


def _cell(question: Question, size: int, slowest: float, search: "_Search") -> Cell:
    prefills = max(1, round(question.prefill_per_decode * size))
    pool = question.pool.of_speeds(falling_speeds(size, slowest), prefills)
    logs = search.logs_for(pool)

    def served(rule: RouterFactory) -> list[Served]:
        return [serve(pool, log, rule, question.seed + place) for place, log in enumerate(logs)]

    by_rule = {name: served(ROUTERS[name]) for name in SIMPLE}
    simple = {name: [one.goodput for one in runs] for name, runs in by_rule.items()}
    best = max(SIMPLE, key=lambda name: fmean(simple[name]))
    clever = [one.goodput for one in served(question.clever)]
    gains = tuple(100 * (mine - theirs) for mine, theirs in zip(clever, simple[best], strict=True))
    error = stdev(gains) / sqrt(len(gains)) if len(gains) > 1 else 0.0
    return Cell(
        size,
        slowest,
        fmean(_rate(log) for log in logs),
        fmean(clever),
        fmean(simple[best]),
        best,
        gains,
        error,
        fmean(gains) >= max(question.least_points, 2 * error),
        fmean(_seconds(log) for log in logs),
        fmean(one.mean_ns for one in by_rule[REFERENCE]) / NS_PER_SECOND,
    )


def _rate(log: Workload) -> float:
    """Requests a second."""
    return len(log.requests) / max(1e-9, _seconds(log))


def _seconds(log: Workload) -> float:
    return log.requests[-1].arrival_ns / NS_PER_SECOND if log.requests else 0.0


class _Search:
    """Finds the density at which the reference keeps the wanted share; begins with the last one found."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._per_card = FIRST_RATE / max(_rate(log) for log in question.logs)
        self._step = FIRST_STEP

    def logs_for(self, pool: Pool) -> list[Workload]:
        """The logs at that density."""
        cards = pool.full_cards
        low = high = self._per_card
        for _ in range(MOST_STEPS):
            if self._keeps(pool, low * cards):
                break
            high, low = low, low / self._step
        else:
            raise ValueError(self._never_kept(pool))
        for _ in range(MOST_STEPS):
            if high > low and not self._keeps(pool, high * cards):
                break
            low, high = high, high * self._step
        else:
            raise ValueError(self._always_kept(pool, low * cards))
        for _ in range(HALVINGS):
            middle = sqrt(low * high)
            low, high = (middle, high) if self._keeps(pool, middle * cards) else (low, middle)
        self._per_card, self._step = low, STEP
        return self._logs(self._per_card * cards)

    def _logs(self, factor: float) -> list[Workload]:
        question = self._question
        return [with_density(log, factor, question.seed + place) for place, log in enumerate(question.logs)]

    def _keeps(self, pool: Pool, factor: float) -> bool:
        return self._goodput(pool, factor) >= self._question.wanted_goodput

    def _goodput(self, pool: Pool, factor: float) -> float:
        question = self._question
        return fmean(
            serve(pool, log, ROUTERS[REFERENCE], question.seed + place).goodput
            for place, log in enumerate(self._logs(factor))
        )

    def _always_kept(self, pool: Pool, factor: float) -> str:
        log = self._question.logs[0]
        most = max(len(one.requests) for one in self._question.logs)
        return (
            f"{log.source} cannot load a pool of {len(pool.speeds)}: with all its {most} requests within "
            f"{max(_seconds(one) for one in self._logs(factor)):.2g} s goodput is still "
            f"{self._goodput(pool, factor):.3f}, and is to fall to {self._question.wanted_goodput:g}: give a "
            "longer log, fewer parts of it, or smaller pools"
        )

    def _never_kept(self, pool: Pool) -> str:
        return (
            f"a pool of {len(pool.speeds)} never keeps {self._question.wanted_goodput:g} of the promises, "
            f"however few requests of {self._question.logs[0].source} come: one alone is too slow for them; "
            "promise longer times"
        )
