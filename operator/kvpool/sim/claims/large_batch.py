"""An open question: does it matter which eviction rule is taken when many sequences decode at once?"""

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from kvpool.plan.placement.policies import rule_named
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.claims.experiment import Experiment, Parameters, Whole
from kvpool.sim.claims.moved_bytes import TUMKUR, Rule
from kvpool.sim.claims.row import Claim, ClaimRow, Kind, Reading, Verdict
from kvpool.sim.tiers.batch import Instance, Outcome, decode_in_batches
from kvpool.sim.workloads.generators.bounds import Count, Seconds, Span
from kvpool.sim.workloads.generators.chat import Chat, chat
from kvpool.sim.workloads.request import Workload

MATTERS: Final = 1.1
"""Mean TTFT of the worst rule over that of the best, from which on the rule is said to matter."""


class Batch(BaseModel):
    """A batch, and people enough to keep it at work."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slots: int = Field(ge=1)
    users: Count


class ManyAtOnce(Parameters):
    """People who chat, before one instance."""

    batches: tuple[Batch, ...]
    hours: Span
    away_seconds: Seconds
    hbm_one_in: int = Field(ge=1)
    """HBM holds one in so many of the distinct chunks, whatever the batch."""
    rules: tuple[Rule, ...]
    token_bytes: int = Field(ge=1)
    """An 8B model with 8 KV heads at 16 bits."""
    links_bytes_per_second: tuple[Whole, ...]
    """Of the link to the host: PCIe 5, and a quarter of it, as where four cards share one."""
    link_setup_ns: int = Field(ge=0)
    prefill_base_ns: float = Field(ge=0)
    prefill_token_ns: float = Field(ge=0)
    prefill_square_ns: float = Field(ge=0)
    step_base_ns: float = Field(ge=0)
    step_sequence_ns: float = Field(ge=0)
    step_token_ns: float = Field(ge=0)

    def timing(self) -> TimingModel:
        """The instance's times."""
        return TimingModel(
            self.prefill_base_ns,
            self.prefill_token_ns,
            self.prefill_square_ns,
            self.step_base_ns,
            self.step_sequence_ns,
            self.step_token_ns,
        )


def e1b(parameters: ManyAtOnce, _: Mapping[str, Workload]) -> ClaimRow:
    """Run every rule at every batch; the table is the answer."""
    timing = parameters.timing()
    told: list[str] = []
    figures: dict[str, float] = {}
    spreads: list[float] = []
    for batch in parameters.batches:
        people = Chat(batch.users, parameters.hours, away_seconds=parameters.away_seconds)
        workload = chat(people, parameters.seed)
        for rate in parameters.links_bytes_per_second:
            link = LinkModel(parameters.link_setup_ns, rate)
            instance = Instance(batch.slots, parameters.hbm_one_in, parameters.token_bytes, timing, link)
            found = {
                rule: decode_in_batches(workload, instance, rule_named(rule)) for rule in parameters.rules
            }
            name = f"batch {batch.slots}, {rate / 1e9:g} GB/s"
            means = {rule: outcome.mean_ttft_ns for rule, outcome in found.items()}
            spreads.append(max(means.values()) / min(means.values()))
            busy = max(outcome.link_busy_share for outcome in found.values())
            shown = ", ".join(f"{rule} {mean / 1e6:,.0f}" for rule, mean in means.items())
            told.append(f"{name}: {shown} (link busy up to {100 * busy:.0f} %)")
            figures[f"{name}: worst mean TTFT over best"] = spreads[-1]
            for rule, outcome in found.items():
                figures |= _figures(f"{name}, {rule}", outcome)
    matters = [spread >= MATTERS for spread in spreads]
    return ClaimRow(
        LARGE_BATCH,
        ours="mean TTFT in ms by rule; " + "; ".join(told),
        band=f"open: a rule matters where the worst mean is {MATTERS}x the best or more; shown either way",
        verdict=Verdict.NO if all(matters) else Verdict.PARTLY if any(matters) else Verdict.REPRODUCED,
        knob="slots with links_bytes_per_second: what moves grows with the batch, the link does not",
        figures=figures,
        seed=parameters.seed,
    )


def _figures(name: str, outcome: Outcome) -> dict[str, float]:
    return {
        f"{name}: mean TTFT, ms": outcome.mean_ttft_ns / 1e6,
        f"{name}: p99 TTFT, ms": outcome.ttft_at(99) / 1e6,
        f"{name}: mean end to end, ms": sum(outcome.end_to_end_ns) / len(outcome.end_to_end_ns) / 1e6,
        f"{name}: share of time that the link is busy": outcome.link_busy_share,
        f"{name}: chunks over the HBM boundary": outcome.flows.boundaries[0].total,
    }


LARGE_BATCH: Final = Claim(
    number="E1b",
    text="The eviction rule does not matter for latency: does that hold for large batches?",
    source=TUMKUR,
    reading=Reading.SECOND_HAND,
    kind=Kind.DIRECTION,
)

EXPERIMENTS: Final = (Experiment(LARGE_BATCH, ManyAtOnce, run=e1b),)
