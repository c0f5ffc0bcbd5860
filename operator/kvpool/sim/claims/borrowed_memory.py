"""AIScaler's claim: idle host memory and drives, lent to accelerators, more than double their throughput.

No configuration is published, so there is no gate. What a lent tier can do depends on how many sessions
want to return: with few, HBM holds them all and nothing is gained; with many, those that found no place are
computed again unless they were parked. The sweep shows both ends, and where the published figure lies
between them.
"""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

from kvpool.plan.known_name import one_of
from kvpool.plan.tiers.latency import turn_ns
from kvpool.plan.tiers.lending import expected_ttft_ns, lendable
from kvpool.plan.tiers.planner import TierPlan, plan_tiers
from kvpool.plan.tiers.stack import Demand, Link, Stack, Tier
from kvpool.plan.timing.cards import CARDS, LINKS
from kvpool.plan.timing.constants import constants_for
from kvpool.plan.timing.model import TimingModel
from kvpool.plan.timing.shapes import SHAPES
from kvpool.sim.claims.experiment import Experiment, Parameters, Whole
from kvpool.sim.claims.row import Claim, ClaimRow, Kind, Reading, Verdict
from kvpool.sim.workloads.fields import MOST_TOKENS
from kvpool.sim.workloads.request import Workload

PUBLISHED_GAIN: Final = 2.3


class BorrowedMemory(Parameters):
    """One accelerator whose host lends memory and drives."""

    model: Annotated[str, one_of("model", SHAPES)]
    card: Annotated[str, one_of("accelerator", CARDS)]
    kv_memory_bytes: int = Field(ge=1)
    """What the accelerator has for KV."""
    free_memory_bytes: int = Field(ge=0)
    """Of the host, before anything is lent."""
    free_drive_bytes: int = Field(ge=0)
    reserve_percent: int = Field(ge=0, le=100)
    """Of what is free, never lent."""
    host_link: Annotated[str, one_of("link", LINKS)]
    drive_link: Annotated[str, one_of("link", LINKS)]
    revoked_percent: int = Field(ge=0, le=100)
    """Of the sessions in lent memory, asked back before they return."""
    context_tokens: int = Field(ge=1, le=MOST_TOKENS)
    new_tokens: int = Field(ge=1)
    output_tokens: int = Field(ge=1)
    running: int = Field(ge=1)
    """Sessions that are decoded at once; they are in HBM in any case."""
    return_seconds: float = Field(gt=0)
    sessions_per_base: tuple[Whole, ...]
    """Sessions that want to return, for each that HBM holds."""


def c20(parameters: BorrowedMemory, _: Mapping[str, Workload]) -> ClaimRow:
    """Sweep the sessions; nothing is held against a gate."""
    timing = constants_for(SHAPES[parameters.model], CARDS[parameters.card]).timing
    demand = _demand(parameters, timing)
    stack = _stack(parameters)
    alone, lent = plan_tiers(Stack(stack.tiers[:1]), demand), plan_tiers(stack, demand)
    gains = {
        wanted: _cost_ns(parameters, timing, alone, demand, wanted * alone.base_sessions)
        / _cost_ns(parameters, timing, lent, demand, wanted * alone.base_sessions)
        for wanted in parameters.sessions_per_base
    }
    reached = next((wanted for wanted, gain in gains.items() if gain >= PUBLISHED_GAIN), None)
    use = min(1.0, parameters.running / alone.base_sessions)
    slowest = lent.tiers[-1]
    tail = f"P99 TTFT from {slowest.name} {slowest.ttft_quantile_ns / 1e6:.0f} ms"
    where = f"{PUBLISHED_GAIN}x from {reached}x on" if reached else f"{PUBLISHED_GAIN}x is not reached"
    most = max(gains.values())
    return ClaimRow(
        CLAIM,
        ours=(
            f"throughput {min(gains.values()):.2f}x to {most:.2f}x over {min(gains)}x to {max(gains)}x the "
            f"sessions that HBM holds ({where}); HBM in use by what runs {use:.0%} instead of all; {tail}"
        ),
        band="none: no configuration is published",
        verdict=Verdict.PARTLY if most > 1 else Verdict.NO,
        knob="sessions_per_base: sessions that want to return for each that HBM holds; then revoked_percent",
        figures={
            **{f"throughput with {wanted}x the sessions": gain for wanted, gain in gains.items()},
            "HBM in use by what runs": use,
            **{
                f"P99 TTFT from {tier.name}, milliseconds": tier.ttft_quantile_ns / 1e6 for tier in lent.tiers
            },
        },
        seed=parameters.seed,
    )


def _demand(parameters: BorrowedMemory, timing: TimingModel) -> Demand:
    kappa = SHAPES[parameters.model].kv_bytes_per_token()
    return Demand(
        session_bytes=parameters.context_tokens * kappa,
        return_seconds=parameters.return_seconds,
        context_tokens=parameters.context_tokens,
        new_tokens=parameters.new_tokens,
        new_bytes=(parameters.new_tokens + parameters.output_tokens) * kappa,
        timing=timing,
    )


def _stack(parameters: BorrowedMemory) -> Stack:
    host, drive = LINKS[parameters.host_link], LINKS[parameters.drive_link]

    def lent(free_bytes: int) -> int:
        reserve = free_bytes * parameters.reserve_percent // 100
        return lendable(free_bytes, reserve, free_bytes, 0.0, None).size_bytes

    return Stack(
        (
            Tier("HBM", parameters.kv_memory_bytes),
            Tier("DRAM", lent(parameters.free_memory_bytes), ("host",), borrowed=True),
            Tier("SSD", lent(parameters.free_drive_bytes), ("drive", "host"), borrowed=True),
        ),
        (
            Link("host", host.bytes_per_second, host.setup_ns),
            Link("drive", drive.bytes_per_second, drive.setup_ns),
        ),
    )


def _cost_ns(
    parameters: BorrowedMemory, timing: TimingModel, plan: TierPlan, demand: Demand, sessions: int
) -> float:
    """Accelerator time of one turn, on average over so many sessions that return equally often."""
    again = timing.prefill_ns(demand.context_tokens + demand.new_tokens)
    kept = turn_ns(demand)
    firm = min(plan.firm_sessions, sessions)
    borrowed = min(plan.sessions, sessions) - firm
    lost = sessions - firm - borrowed
    from_borrowed = expected_ttft_ns(kept, again, parameters.revoked_percent / 100)
    prefill = (firm * kept + borrowed * from_borrowed + lost * again) / sessions
    step = timing.step_ns(parameters.running, parameters.running * parameters.context_tokens)
    return prefill + parameters.output_tokens * step / parameters.running


CLAIM: Final = Claim(
    number="C20",
    text="Lent host memory and drives: 2.3 times the throughput, HBM use from 98 % to 63 %",
    source="TRUSTA AIScaler, vendor statement, AI Infra Summit (16 Sep 2026)",
    reading=Reading.SECOND_HAND,
    kind=Kind.DIRECTION,
)

EXPERIMENTS: Final = (Experiment(CLAIM, BorrowedMemory, run=c20),)
