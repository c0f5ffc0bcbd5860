"""Which ratio of prefill to decode instances answers long conversations soonest."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import Field

from kvpool.plan.routing.counting import LeastOutstanding
from kvpool.plan.routing.views import Objective
from kvpool.plan.timing.constants import FITTED
from kvpool.plan.timing.model import LinkModel
from kvpool.sim.claims.experiment import Above, Experiment, Parameters
from kvpool.sim.claims.row import Claim, ClaimRow, Kind, Reading, Verdict
from kvpool.sim.report.summary import latencies
from kvpool.sim.serving.design import InstanceSpec, SplitDesign
from kvpool.sim.serving.split import SplitFleet
from kvpool.sim.workloads.request import Workload

LOG: Final = "conversation"
PUBLISHED: Final = (3, 2)
NS_PER_MS: Final = 1e6


class Ratios(Parameters):
    """Every division of so many H200s that serve Qwen3-8B, at several speeds of the log's arrivals."""

    instances: int = Field(ge=2, le=16)
    speed_ups: tuple[Above, ...]
    """Arrivals come so many times as fast as they were logged."""
    capacity_tokens: int = Field(ge=1)
    """KV that one instance holds: what 16-bit weights leave of 141 GB."""
    bytes_per_token: int = Field(ge=1)
    link_bytes_per_second: int = Field(ge=1)
    link_setup_ns: int = Field(ge=0)
    requests: int = Field(ge=0)
    """Of the log, from its start; 0: all."""


@dataclass(frozen=True, slots=True)
class Divided:
    """One division at one speed."""

    prefill: int
    decode: int
    mean_ns: int
    p99_ns: int

    @property
    def name(self) -> str:
        """`3:2`."""
        return f"{self.prefill}:{self.decode}"


def divided(parameters: Ratios, log: Workload, speed_up: float) -> list[Divided]:
    """Serve the log with every division; end-to-end times of each."""
    requests = log.requests[: parameters.requests or None]
    hurried = replace(
        log,
        requests=tuple(replace(one, arrival_ns=round(one.arrival_ns / speed_up)) for one in requests),
    )
    link = LinkModel(parameters.link_setup_ns, parameters.link_bytes_per_second)
    spec = InstanceSpec(FITTED["H200", "Qwen3-8B", 1].timing, parameters.capacity_tokens, link)
    promises = {name: Objective(1, 1, 100) for name in sorted({one.slo_class for one in requests})}
    found = []
    for prefill in range(parameters.instances - 1, 0, -1):
        decode = parameters.instances - prefill
        design = SplitDesign((spec,) * prefill, (spec,) * decode, parameters.bytes_per_token, promises)
        run = SplitFleet(design, LeastOutstanding()).run(hurried)
        e2e = latencies([one for one in run.outcomes if not one.refused]).e2e
        found.append(Divided(prefill, decode, e2e.mean_ns, e2e.p99_ns))
    return found


def c18(parameters: Ratios, workloads: Mapping[str, Workload]) -> ClaimRow:
    """Hold the division with the least mean time against the published one."""
    log = workloads[LOG]
    sweeps = {speed_up: divided(parameters, log, speed_up) for speed_up in parameters.speed_ups}
    best = {speed_up: min(found, key=lambda one: one.mean_ns) for speed_up, found in sweeps.items()}
    wins = [(one.prefill, one.decode) == PUBLISHED for one in best.values()]
    verdict = Verdict.PARTLY if any(wins) else Verdict.NO
    return ClaimRow(
        RATIO,
        ours="; ".join(
            f"x{speed_up:g}: {best[speed_up].name} best, mean end to end "
            + ", ".join(f"{one.name} {one.mean_ns / 1e9:.1f} s" for one in found)
            for speed_up, found in sweeps.items()
        ),
        band="3:2 has the least mean end-to-end time at every speed of arrivals",
        verdict=Verdict.REPRODUCED if all(wins) else verdict,
        knob=(
            "lengths and hits: prompts of 12,000 tokens against answers of 343; more cached prefixes or"
            " longer answers move it to decode, and time to first token alone to prefill"
        ),
        figures={
            f"x{speed_up:g}, {one.name}: {what} end to end, ms": value / NS_PER_MS
            for speed_up, found in sweeps.items()
            for one in found
            for what, value in (("mean", one.mean_ns), ("p99", one.p99_ns))
        },
        checksums={log.source: log.checksum},
        seed=parameters.seed,
    )


RATIO: Final = Claim(
    number="C18",
    text="On long contexts three prefill instances to two decode instances are best",
    source="LongCat-2.5 release notes, Meituan (2 Nov 2026)",
    reading=Reading.SECOND_HAND,
    kind=Kind.MEASURED,
)

EXPERIMENTS: Final = (Experiment(RATIO, Ratios, run=c18, traces=(LOG,)),)
