"""One pool, one workload, one rule: how many requests are served as promised."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kvpool.plan.routing.router import RouterFactory
from kvpool.plan.routing.views import Objective
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.building import at_speed
from kvpool.sim.report.summary import quantiles
from kvpool.sim.serving.design import InstanceSpec, SplitDesign
from kvpool.sim.serving.lengths import Lengths, NoisyLengths
from kvpool.sim.serving.split import SplitFleet
from kvpool.sim.serving.views import Belief
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.request import BATCH, INTERACTIVE, Workload

OBJECTIVES: Mapping[str, Objective] = {
    INTERACTIVE: Objective(3_000_000_000, 60_000_000, 100),
    BATCH: Objective(6_000_000_000, 90_000_000, 50),
}
"""First token and time per token: 3 s and 60 ms, 6 s and 90 ms for batch work."""


@dataclass(frozen=True, slots=True)
class Card:
    """One kind of instance, and the KV of its model."""

    timing: TimingModel
    capacity_tokens: int
    link: LinkModel
    bytes_per_token: int


@dataclass(frozen=True, slots=True)
class Pool:
    """Decode instances of one card at several speeds, and enough prefill instances before them."""

    card: Card
    speeds: tuple[float, ...]
    """Of each decode instance, against the card."""
    prefill_instances: int
    report_interval_ns: int = 0
    """How old the load may be that the router sees."""
    belief: Belief | None = None
    """What the router takes every decode instance for; None: for what it is."""
    prediction_sigma: float = 0.35
    """Spread of the logarithm of predicted over true length."""
    objectives: Mapping[str, Objective] = field(default_factory=lambda: OBJECTIVES)
    """By class of service."""

    def of_speeds(self, speeds: tuple[float, ...], prefill_instances: int) -> "Pool":
        """Return the same with other instances."""
        return replace(self, speeds=speeds, prefill_instances=prefill_instances)

    @property
    def full_cards(self) -> float:
        """How many cards of full speed it amounts to."""
        return sum(self.speeds)


@dataclass(frozen=True, slots=True)
class Served:
    """What became of the requests of one run."""

    goodput: float
    """Share of all requests whose first token and time per token kept their promise."""
    p99_ns: int
    """End to end, of those that were served."""
    mean_ns: int
    """Likewise."""
    preempted: int
    """Times that a sequence lost its memory while it ran."""


def falling_speeds(count: int, slowest: float) -> tuple[float, ...]:
    """Return speeds that fall evenly from 1 to `slowest`."""
    return tuple(1 - (1 - slowest) * place / max(1, count - 1) for place in range(count))


def serve(
    pool: Pool, workload: Workload, rule: RouterFactory, seed: int, lengths: Lengths | None = None
) -> Served:
    """Serve the workload once.

    `lengths` None: lengths are predicted with an error that depends on the seed and the request, not on the
    rule, and as much is reserved as is predicted.
    """
    card = pool.card
    decode = tuple(
        InstanceSpec(at_speed(card.timing, speed), card.capacity_tokens, card.link, belief=pool.belief)
        for speed in pool.speeds
    )
    design = SplitDesign(
        (InstanceSpec(card.timing, 1 << 40, card.link),) * pool.prefill_instances,
        decode,
        pool.card.bytes_per_token,
        pool.objectives,
        report_interval_ns=pool.report_interval_ns,
    )
    root = Stream(seed)
    noisy = NoisyLengths(root.split("lengths"), pool.prediction_sigma)
    fleet = SplitFleet(design, rule(root.split("router")), lengths=lengths or noisy)
    outcomes = fleet.run(workload).outcomes
    times = quantiles([outcome.e2e_ns for outcome in outcomes if not outcome.refused])
    kept = sum(outcome.keeps(pool.objectives[outcome.slo_class]) for outcome in outcomes)
    return Served(
        kept / max(1, len(outcomes)),
        times.p99_ns,
        times.mean_ns,
        sum(outcome.preempted for outcome in outcomes),
    )
