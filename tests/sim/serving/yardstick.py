"""The conversation log on fleets of instances as DynoSim times them by default, and on H200s."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from kvpool.cli.planning.trace_files import open_workload
from kvpool.plan.routing.counting import LeastOutstanding
from kvpool.plan.routing.views import Objective
from kvpool.plan.timing.constants import FITTED
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.report.summary import latencies
from kvpool.sim.serving.design import InstanceSpec, SplitDesign
from kvpool.sim.serving.split import SplitFleet
from kvpool.sim.workloads.request import Workload

TRACE = Path(__file__).resolve().parents[3] / "traces" / "mooncake_fast25_conversation_trace.jsonl.gz"
DYNOSIM_TOKENS = 16_384 * 512
DYNOSIM = InstanceSpec(
    TimingModel(16.50142e6, 15_183.44, 0.4209989, 5.74e6, 0.0, 54.01e6 / DYNOSIM_TOKENS),
    DYNOSIM_TOKENS,
    LinkModel(0, 25_000_000_000),
)
LINEAR = replace(DYNOSIM, timing=replace(DYNOSIM.timing, prefill_square_ns=0.0))
H200 = InstanceSpec(FITTED["H200", "Qwen3-8B", 1].timing, 719_000, LinkModel(1_000_000, 25_000_000_000))


@cache
def conversations() -> Workload:
    return open_workload(TRACE)


def splits(
    spec: InstanceSpec, bytes_per_token: int, speed_up: float, requests: int | None = None
) -> Mapping[str, float]:
    """Mean end to end in milliseconds by `prefill:decode`, of five instances."""
    log = conversations()
    hurried = replace(
        log,
        requests=tuple(
            replace(one, arrival_ns=round(one.arrival_ns / speed_up)) for one in log.requests[:requests]
        ),
    )
    promises = {one.slo_class: Objective(1, 1, 100) for one in hurried.requests}
    found = {}
    for prefill in range(4, 0, -1):
        design = SplitDesign((spec,) * prefill, (spec,) * (5 - prefill), bytes_per_token, promises)
        run = SplitFleet(design, LeastOutstanding()).run(hurried)
        found[f"{prefill}:{5 - prefill}"] = latencies(run.outcomes).e2e.mean_ns / 1e6
    return found
