"""Parameters that the claims about routing share, and what they say in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Final

from pydantic import Field

from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.plan.routing.router import RouterFactory
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.claims.experiment import Parameters
from kvpool.sim.claims.row import Verdict
from kvpool.sim.pools.pool import Card, Pool, Served, falling_speeds, serve
from kvpool.sim.workloads.generators.bounds import Factor, Sigma, Span
from kvpool.sim.workloads.generators.mix import Mix, mix

CLEVER: Final = "CompletionTime"
SIMPLE: Final = ("RoundRobin", "LeastOutstanding", "LeastLoaded", "LengthAware")
SOURCE: Final = "Tumkur et al., Calibrate, Then Route, arXiv 2609.16206 (Sep 2026)"


Instances = Annotated[int, Field(ge=1, le=1000)]
"""Decode instances of a pool."""


class RouterMix(Parameters):
    """The card, the mix and how long it comes for. Times are for a card of full speed.

    The defaults serve other questions about the same card; a claim takes every value from its file.
    """

    logs: int = Field(3, ge=1, le=1000)
    """Arrival logs, each from its own seed."""
    log_seconds: Span = 600
    length_sigma: Sigma = 0.6
    """Spread of the logarithm of lengths around their medians."""
    prediction_sigma: Sigma = 0.35
    batch_share: float = Field(0.3, ge=0, le=1)
    burst_factor: Factor = 3.0
    prefill_per_decode: float = Field(1.0, gt=0)
    """Prefill instances for each decode instance: enough for decoding to be the limit."""
    prefill_base_ns: float = 15e6
    prefill_token_ns: float = 192_307.7
    prefill_square_ns: float = 2.0
    step_base_ns: float = 20e6
    step_sequence_ns: float = 120e3
    step_token_ns: float = 800.0
    capacity_tokens: int = Field(54_000, ge=1)
    bytes_per_token: int = Field(500_000, ge=0)
    link_bytes_per_second: int = Field(8_000_000_000, ge=1)
    link_setup_ns: int = Field(1_000_000, ge=0)

    def card(self) -> Card:
        """The card."""
        timing = TimingModel(
            self.prefill_base_ns,
            self.prefill_token_ns,
            self.prefill_square_ns,
            self.step_base_ns,
            self.step_sequence_ns,
            self.step_token_ns,
        )
        link = LinkModel(self.link_setup_ns, self.link_bytes_per_second)
        return Card(timing, self.capacity_tokens, link, self.bytes_per_token)

    def pool(self, count: int, slowest: float) -> Pool:
        """`count` decode instances, from full speed down to `slowest`."""
        prefills = max(1, round(self.prefill_per_decode * count))
        return Pool(
            self.card(), falling_speeds(count, slowest), prefills, prediction_sigma=self.prediction_sigma
        )

    def mix(self, rate_per_second: float, *, equal: bool = False) -> Mix:
        """The mix at that mean rate."""
        return Mix(
            self.log_seconds,
            rate_per_second,
            self.length_sigma,
            equal,
            self.batch_share,
            self.burst_factor,
        )


@dataclass(frozen=True, slots=True)
class Tried:
    """One rule over all logs of one cell."""

    goodput: tuple[float, ...]
    """Of each log."""
    p99_seconds: tuple[float, ...]
    preempted: int

    @property
    def mean(self) -> float:
        """Mean goodput."""
        return fmean(self.goodput)

    @property
    def spread(self) -> float:
        """Best log less worst log."""
        return max(self.goodput) - min(self.goodput)

    def figures(self) -> tuple[tuple[str, float], ...]:
        """By what they are, with their unit."""
        return (
            ("goodput", round(self.mean, 4)),
            ("goodput spread over logs", round(self.spread, 4)),
            ("P99 end to end seconds", round(self.p99, 2)),
        )

    @property
    def p99(self) -> float:
        """Mean over the logs of the 99th percentile of end-to-end time, seconds."""
        return fmean(self.p99_seconds)


def try_rules(
    parameters: RouterMix,
    pool: Pool,
    mixed: Mix,
    rules: Sequence[str] | Mapping[str, RouterFactory],
) -> dict[str, Tried]:
    """Serve every log with every rule. All rules see the same logs and the same errors of prediction."""
    logs = [(seed, mix(mixed, seed)) for seed in range(parameters.seed, parameters.seed + parameters.logs)]
    named = rules if isinstance(rules, Mapping) else {name: ROUTERS[name] for name in rules}
    return {
        name: _tried([serve(pool, workload, rule, seed) for seed, workload in logs])
        for name, rule in named.items()
    }


def best_simple(tried: Mapping[str, Tried]) -> Tried:
    """The rule with the best mean among those that know no constants."""
    return max((tried[name] for name in SIMPLE if name in tried), key=lambda one: one.mean)


def overall(held: Sequence[bool]) -> Verdict:
    """What several parts of a gate come to; nothing to hold against it counts as not held."""
    if held and all(held):
        return Verdict.REPRODUCED
    return Verdict.PARTLY if any(held) else Verdict.NO


def _tried(runs: Sequence[Served]) -> Tried:
    return Tried(
        tuple(run.goodput for run in runs),
        tuple(run.p99_ns / 1e9 for run in runs),
        sum(run.preempted for run in runs),
    )
