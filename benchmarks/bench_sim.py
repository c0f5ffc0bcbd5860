"""``python -m benchmarks.bench_sim``: the simulator against a compiled one, in one run, on the same log.

The yardstick is DynoSim (`python -m dynamo.replay` of ai-dynamo, Apache-2.0), installed into an environment
of its own below build/. Both simulate the whole conversation log of Mooncake; ours in plain Python on one
core. Each runs several times, taking turns, and the best time of each counts: other work on the machine
slows both.

Two rates are printed, since simulators count events in different ways. A *step* is one decode iteration of
one instance, for all sequences that run there; steps in which nothing begins or ends are passed over together
and count one by one. A *sequence-step* is one sequence in one step, which makes one output token: what a
simulator does that touches every sequence at every step. Decode-step events of other simulators are either.
"""

from __future__ import annotations

import gc
import gzip
import re
import resource
import subprocess
import sys
import time
import venv
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from kvpool.cli.planning.trace_files import open_workload
from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.plan.routing.views import Objective
from kvpool.plan.timing.cards import LINKS
from kvpool.plan.timing.constants import FITTED
from kvpool.sim.serving.design import InstanceSpec, MixedDesign
from kvpool.sim.serving.mixed import MixedFleet
from kvpool.sim.serving.run import FleetRun
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.request import Workload

ROOT = Path(__file__).resolve().parents[1]
TRACES = ROOT / "traces"
CONVERSATION = TRACES / "mooncake_fast25_conversation_trace.jsonl.gz"
AGENTS = TRACES / "weka_claude_code_710.jsonl.gz"
YARDSTICK = ROOT / "build" / "yardsticks" / "dynamo"
YARDSTICK_PACKAGE = "ai-dynamo==1.4.2"
ROUNDS = 3
BYTES_PER_TOKEN = 147_456
# The yardstick's default: 16,384 blocks, here of 512 tokens.
CAPACITY_TOKENS = 16_384 * 512
AGENT_CAPACITY_TOKENS = 4_000_000
OBJECTIVES = {"interactive": Objective(3_000_000_000, 60_000_000, 100)}
WALL_TIME = re.compile(r"Wall Time \(ms\):\s*([0-9,.]+)")


@dataclass(frozen=True)
class Timed:
    """The best of several runs."""

    wall_seconds: float
    cpu_seconds: float
    run: FleetRun


def simulated(workload: Workload, instances: int, capacity_tokens: int, rule: str) -> FleetRun:
    """Serve a workload on so many H200s."""
    spec = InstanceSpec(FITTED["H200", "Qwen3-8B", 1].timing, capacity_tokens, LINKS["InfiniBand-400G"])
    design = MixedDesign((spec,) * instances, BYTES_PER_TOKEN, OBJECTIVES)
    return MixedFleet(design, ROUTERS[rule](Stream(1))).run(workload)


def timed(workload: Workload, instances: int, capacity_tokens: int, rule: str) -> Timed:
    """Time one run. What was made before is not looked at again by the collector of garbage."""
    gc.collect()
    gc.freeze()
    wall, cpu = time.perf_counter(), time.process_time()
    run = simulated(workload, instances, capacity_tokens, rule)
    return Timed(time.perf_counter() - wall, time.process_time() - cpu, run)


def better(one: Timed | None, other: Timed) -> Timed:
    """The one that took less time."""
    return other if one is None or other.wall_seconds < one.wall_seconds else one


def rates(found: Timed) -> tuple[str, str]:
    """Steps and sequence-steps a second, in millions."""
    steps, tokens = (
        count / found.wall_seconds / 1e6 for count in (found.run.decode_steps, found.run.made_tokens)
    )
    return f"{steps:.1f} M", f"{tokens:.1f} M"


def yardstick() -> Path:
    """The interpreter of the yardstick's environment, which is made when it is not there."""
    python = YARDSTICK / "bin" / "python"
    if not python.exists():
        venv.create(YARDSTICK, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", YARDSTICK_PACKAGE], check=True)
    return python


def yardstick_seconds(python: Path, instances: int) -> float:
    """What the yardstick says its simulation took, without its start."""
    unpacked = YARDSTICK / CONVERSATION.stem
    if not unpacked.exists():
        unpacked.write_bytes(gzip.decompress(CONVERSATION.read_bytes()))
    command = [str(python), "-m", "dynamo.replay", str(unpacked), "--num-workers", str(instances)]
    command += ["--replay-mode", "offline", "--router-mode", "round_robin", "--trace-block-size", "512"]
    command += ["--extra-engine-args", '{"block_size":512}', "--report-json", str(YARDSTICK / "report.json")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=YARDSTICK)
    found = WALL_TIME.search(ran.stdout)
    if found is None:
        raise SystemExit(f"the yardstick did not say how long it took:\n{ran.stdout[-2000:]}")
    return float(found[1].replace(",", "")) / 1000


def main() -> None:
    """Print the table."""
    console = Console()
    workload = open_workload(CONVERSATION)
    table = Table("what", "ours s", "CPU s", "yardstick s", "ratio", "steps/s", "sequence-steps/s", box=None)
    python = yardstick()
    for instances in (4, 16):
        best: Timed | None = None
        theirs = float("inf")
        for _ in range(ROUNDS):
            best = better(best, timed(workload, instances, CAPACITY_TOKENS, "RoundRobin"))
            theirs = min(theirs, yardstick_seconds(python, instances))
        assert best is not None
        table.add_row(
            f"conversation, {instances} instances",
            f"{best.wall_seconds:.2f}",
            f"{best.cpu_seconds:.2f}",
            f"{theirs:.2f}",
            f"{theirs / best.wall_seconds:.1f}x",
            *rates(best),
        )
    agents = open_workload(AGENTS)
    found = timed(agents, 8, AGENT_CAPACITY_TOKENS, "Dynamo")
    table.add_row(
        f"710 agent sessions ({len(agents.requests)} requests), 8 instances, routed by prefix",
        f"{found.wall_seconds:.2f}",
        f"{found.cpu_seconds:.2f}",
        "-",
        "-",
        *rates(found),
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(table)
    console.print(
        "step: one decode iteration of one instance; "
        "sequence-step: one sequence in one step, which makes one output token"
    )
    console.print(f"peak memory of all runs of ours: {peak:.0f} MB; Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
