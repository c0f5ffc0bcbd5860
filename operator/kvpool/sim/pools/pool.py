"""One pool, one workload, one rule: how many requests are served as promised."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kvpool.plan.routing.router import RouterFactory
from kvpool.plan.routing.views import Objective
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.serving.design import InstanceSpec, SplitDesign
from kvpool.sim.serving.lengths import Lengths, NoisyLengths
from kvpool.sim.serving.outcome import Outcome
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

    def at_speed(self, speed: float) -> TimingModel:
        """The timing of a card that does everything `speed` times as fast."""
        constants = self.timing
        return TimingModel(
            constants.prefill_base_ns / speed,
            constants.prefill_token_ns / speed,
            constants.prefill_square_ns / speed,
            constants.step_base_ns / speed,
            constants.step_sequence_ns / speed,
            constants.step_token_ns / speed,
        )


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
    mean_ns: float
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
    believed = pool.belief
    prefill = InstanceSpec(pool.card.timing, 1 << 40, pool.card.link)
    decode = tuple(
        InstanceSpec(pool.card.at_speed(speed), pool.card.capacity_tokens, pool.card.link, belief=believed)
        for speed in pool.speeds
    )
    design = SplitDesign(
        (prefill,) * pool.prefill_instances,
        decode,
        pool.card.bytes_per_token,
        OBJECTIVES,
        report_interval_ns=pool.report_interval_ns,
    )
    root = Stream(seed)
    noisy = NoisyLengths(root.split("lengths"), pool.prediction_sigma)
    fleet = SplitFleet(design, rule(root.split("router")), lengths=lengths or noisy)
    outcomes = fleet.run(workload).outcomes
    times = sorted(outcome.e2e_ns for outcome in outcomes if not outcome.refused)
    kept = sum(keeps_promise(outcome) for outcome in outcomes)
    return Served(
        kept / max(1, len(outcomes)),
        times[min(len(times) - 1, 99 * len(times) // 100)] if times else 0,
        sum(times) / max(1, len(times)),
        sum(outcome.preempted for outcome in outcomes),
    )


def keeps_promise(outcome: Outcome) -> bool:
    """Whether the request was served, in time for the first token and for each one after it."""
    objective = OBJECTIVES[outcome.slo_class]
    in_time = outcome.ttft_ns <= objective.ttft_ns and outcome.tpot_ns <= objective.tpot_ns
    return not outcome.refused and in_time


def at_rate(workload: Workload, factor: float) -> Workload:
    """Return the workload with every arrival `factor` times as often: times are divided by it."""
    requests = tuple(
        replace(request, arrival_ns=round(request.arrival_ns / factor)) for request in workload.requests
    )
    return replace(workload, requests=requests, source=f"{workload.source}, arrivals x{factor:.4g}")
