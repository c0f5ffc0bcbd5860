"""ARK's claim: senders that pick source ports with both ends in view finish their transfers sooner."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from kvpool.plan.ports.collisions import chosen_most, flows_seen
from kvpool.plan.ports.spines import WORTH_CHOOSING_NS, View
from kvpool.sim.claims.experiment import Experiment, Parameters
from kvpool.sim.claims.row import Claim, ClaimRow, Kind, Reading, Verdict
from kvpool.sim.fabric.run import Chooser, Completed, run
from kvpool.sim.fabric.topology import LeafSpine
from kvpool.sim.fabric.transfers import Load, Transfer, transfers
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.request import Workload

LEAST_GAIN: Final = 15.0
MOST_GAIN: Final = 40.0
LOCAL_SHARE: Final = 1 / 3
UNLIMITED: Final = 1_000
"""Times the uplinks' rate: spines that never bind."""


class Cell(BaseModel):
    """One fabric under one load."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spines: int = Field(ge=1)
    hosts_per_leaf: int = Field(ge=1)
    uplink_bytes_per_second: int = Field(ge=1)
    """Of one link between a leaf and a spine."""
    load_percent: int = Field(ge=1)
    """Of what the cards of the prefill half can send."""
    gated: bool = False
    """Held against the gate; the others are shown."""


class SourcePorts(Parameters):
    """Hand-offs from the prefill to the decode half of a leaf-spine fabric."""

    leaves: int = Field(ge=2)
    nic_bytes_per_second: int = Field(ge=1)
    """Of each host."""
    mean_bytes: int = Field(ge=1)
    """Of a hand-off; sizes are exponential."""
    flows: int = Field(ge=10)
    """Hand-offs in each cell; the last of an overloaded fabric wait longer the more there are."""
    overloaded_flows: int = Field(ge=10)
    """As `flows`, where more comes than the uplinks carry."""
    prefill_ns_per_mebibyte: int = Field(ge=1)
    """Prefill time behind a MiB of KV, for the time to first token: an 8 B model on eight H200 a host."""
    skipped_below_ns: int = Field(ge=0)
    """Hand-offs that would take less, alone, get no port of their own."""
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Percent against random ports; below zero is faster."""

    mean: float
    p95: float
    first_token: float


@dataclass(frozen=True, slots=True)
class CellResult:
    """What each way to choose changes in one cell."""

    cell: Cell
    name: str
    own: Change
    source_leaf: Change
    both_ends: Change
    both_ends_above_50_ms: Change
    """The same, for hand-offs of 50 ms and more only."""
    no_spine_limit: Change
    first_token: Change
    """Both ends, with a prefill queue before each host."""


def measured(parameters: SourcePorts) -> Iterator[CellResult]:
    """Run every cell, each with the same hand-offs for every way to choose."""
    for cell in parameters.cells:
        fabric = LeafSpine(
            parameters.leaves,
            cell.spines,
            cell.hosts_per_leaf,
            parameters.nic_bytes_per_second,
            cell.uplink_bytes_per_second,
        )
        overloaded = fabric.oversubscription * cell.load_percent > 100
        load = Load(
            cell.load_percent,
            parameters.mean_bytes,
            parameters.overloaded_flows if overloaded else parameters.flows,
            prefill_ns_per_mebibyte=0,
        )
        stream = Stream(parameters.seed).split("ports", cell.spines, cell.hosts_per_leaf, cell.load_percent)
        yield _cell_result(cell, fabric, load, parameters, stream)


def _cell_result(
    cell: Cell, fabric: LeafSpine, load: Load, parameters: SourcePorts, stream: Stream
) -> CellResult:
    def tried(sent: Sequence[Transfer], view: View, *, shortest_ns: int, over: LeafSpine = fabric) -> _Times:
        return _times(run(over, sent, Chooser(view, shortest_ns), stream.split("choices", view)))

    plain = transfers(fabric, load, stream)
    base = tried(plain, View.NONE, shortest_ns=0)
    skipped = parameters.skipped_below_ns
    endless = replace(fabric, uplink_bytes_per_second=UNLIMITED * fabric.uplink_bytes_per_second)
    queued = transfers(
        fabric, replace(load, prefill_ns_per_mebibyte=parameters.prefill_ns_per_mebibyte), stream
    )
    queued_base = tried(queued, View.NONE, shortest_ns=0)
    return CellResult(
        cell,
        f"{cell.spines} spines {fabric.oversubscription:.0f}:1 load {cell.load_percent / 100:.2f}"
        + (" fat" if cell.uplink_bytes_per_second > fabric.nic_bytes_per_second else ""),
        tried(plain, View.OWN, shortest_ns=skipped).against(base),
        tried(plain, View.SOURCE_LEAF, shortest_ns=skipped).against(base),
        tried(plain, View.BOTH_ENDS, shortest_ns=skipped).against(base),
        tried(plain, View.BOTH_ENDS, shortest_ns=WORTH_CHOOSING_NS).against(base),
        tried(plain, View.NONE, shortest_ns=0, over=endless).against(base),
        tried(queued, View.BOTH_ENDS, shortest_ns=skipped).against(queued_base),
    )


@dataclass(frozen=True, slots=True)
class _Times:
    mean_ns: float
    p95_ns: int
    first_token_ns: float

    def against(self, base: "_Times") -> Change:
        return Change(
            100 * (self.mean_ns / base.mean_ns - 1),
            100 * (self.p95_ns / base.p95_ns - 1),
            100 * (self.first_token_ns / base.first_token_ns - 1),
        )


def _times(done: Sequence[Completed]) -> _Times:
    ordered = sorted(one.completion_ns for one in done)
    return _Times(
        sum(ordered) / len(ordered),
        ordered[min(len(ordered) - 1, 95 * len(ordered) // 100)],
        sum(one.first_token_ns for one in done) / len(done),
    )


def c17(parameters: SourcePorts, _: Mapping[str, Workload]) -> ClaimRow:
    """Hold the gated cells against the gate; the figures have every cell."""
    results = list(measured(parameters))
    gated = [result for result in results if result.cell.gated]
    held = [_holds(result) for result in gated]
    verdict = Verdict.REPRODUCED if all(held) else Verdict.PARTLY if any(held) else Verdict.NO
    return ClaimRow(
        ARK,
        ours="; ".join(
            f"{result.name}: mean FCT {result.both_ends.mean:+.1f} %, P95 {result.both_ends.p95:+.1f} %, "
            f"mean TTFT {result.first_token.first_token:+.1f} %, own rotation {result.own.mean:+.1f} %"
            for result in gated
        ),
        band=(
            f"mean FCT -{LEAST_GAIN:.0f} to -{MOST_GAIN:.0f} %; own rotation less than a third of it; TTFT "
            f"gains less than FCT"
        ),
        verdict=verdict,
        knob=(
            "how much the fabric binds: uplinks fatter than a card leave 5 %, 2:1 oversubscribed up to 40 %; "
            "TTFT by prefill_ns_per_mebibyte; hand-offs left out by skipped_below_ns"
        ),
        figures={name: round(value, 2) for result in results for name, value in _figures(result)},
        seed=parameters.seed,
    )


def _holds(result: CellResult) -> bool:
    gain = -result.both_ends.mean
    return (
        LEAST_GAIN <= gain <= MOST_GAIN
        and -result.own.mean < LOCAL_SHARE * gain
        and result.both_ends.mean < 0
        and result.first_token.mean < result.first_token.first_token < 0
    )


def _figures(result: CellResult) -> Iterator[tuple[str, float]]:
    hosts, spines = result.cell.hosts_per_leaf, result.cell.spines
    seen = f"{result.name}: flows that a flow meets by chance, itself too, when all hosts send"
    yield seen, flows_seen(hosts, spines)
    yield f"{result.name}: flows on the fullest uplink then, if chosen", chosen_most(hosts, spines)
    for name, change in (
        ("own rotation", result.own),
        ("source leaf", result.source_leaf),
        ("both ends", result.both_ends),
        ("both ends from 50 ms", result.both_ends_above_50_ms),
        ("no spine limit", result.no_spine_limit),
    ):
        yield f"{result.name}, {name}: mean FCT percent", change.mean
        yield f"{result.name}, {name}: P95 FCT percent", change.p95
    yield f"{result.name}, both ends, prefill queue: mean FCT percent", result.first_token.mean
    yield f"{result.name}, both ends, prefill queue: mean TTFT percent", result.first_token.first_token


ARK: Final = Claim(
    number="C17",
    text="Ports chosen for both ends: mean FCT -27.3 %, P95 -34.0 %, mean TTFT -12.9 % at moderate load",
    source="Lin et al., ARK, arXiv 2610.41160 (Oct 2026)",
    reading=Reading.SECOND_HAND,
    kind=Kind.MEASURED,
)

EXPERIMENTS: Final = (Experiment(ARK, SourcePorts, run=c17),)
