"""What is measured: ratios of times of one run, so that they mean the same on any machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from prometheus_client import CollectorRegistry

from benchmarks import world
from devcluster import recipe
from devcluster.controlplane import ControlPlane
from kvpool.api.common import Mode
from kvpool.cluster.apply import Applier
from kvpool.cluster.resources import CONFIG_MAPS, PODS
from kvpool.cluster.rest import Access, Rest
from kvpool.cluster.store import EventType, FactStore
from kvpool.control.facts import Facts
from kvpool.control.metrics import OperatorMetrics
from kvpool.model.observations import AgentView, OutputAck
from kvpool.model.snapshot import Leadership, Snapshot
from kvpool.plan.capacity import capacity_plan
from kvpool.plan.failover import failover_plan
from kvpool.plan.node_plan import node_plans
from kvpool.world.project import project_pod

SIZES = (10, 100, 1000)
EVENTS = 5_000
APPLIES = 50
LEAST_SECONDS = 0.2
LEAST_RUNS = 3
"""How long, and how often, a thing is repeated at least before its time is believed."""


@dataclass(frozen=True)
class Row:
    """One line: what, how long once, and how that compares."""

    what: str
    seconds: float
    compared: str


@dataclass(frozen=True)
class Said:
    """What agents and outputs said; the operator holds it ready."""

    agents: Mapping[str, AgentView]
    acks: tuple[OutputAck, ...]


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of one run of `work`, the shortest of several: what else runs here does not count."""
    best, spent, runs = float("inf"), 0.0, 0
    while spent < LEAST_SECONDS or runs < LEAST_RUNS:
        begun = time.process_time()
        work()
        once = time.process_time() - begun
        best, spent, runs = min(best, once), spent + once, runs + 1
    return best


def loaded(nodes: int) -> Facts:
    """A fact store that has seen a whole cluster."""
    facts = Facts(OperatorMetrics(CollectorRegistry()))
    for resource, obj in world.objects(nodes):
        facts.store.observe(resource, EventType.ADDED, obj)
    return facts


def gather(facts: Facts, said: Said) -> Snapshot:
    """What the operator gathers before every planning step."""
    return Snapshot(
        leadership=Leadership(world.EPOCH, since=100.0, api_back_since=100.0, next_sequence=2),
        mode_cap=Mode.ENFORCE,
        paused=facts.paused(),
        budgets=facts.budgets(),
        pools=facts.pools(),
        groups=facts.groups(),
        supernodes=facts.supernodes(),
        kvnodes=facts.kvnodes(),
        slots=facts.slots(),
        remaps=facts.remaps(),
        nodes=facts.nodes(),
        pods=facts.pods(),
        agents=said.agents,
        acks=said.acks,
    )


def planning() -> Iterator[Row]:
    """How gathering and each planning step grow with the cluster."""
    calm: dict[int, Snapshot] = {}
    gathering: dict[int, float] = {}
    for size in SIZES:
        facts = loaded(size)
        said = Said(world.agents(size), world.acks(size))
        snapshot = gather(facts, said)
        gathering[size] = timed(partial(gather, facts, said))
        for step in (capacity_plan, failover_plan):
            snapshot = world.with_statuses(snapshot, step(snapshot, world.NOW))
        calm[size] = snapshot
    yield from _compared("gather", gathering)
    broken = {size: world.with_a_fatal_device(snapshot) for size, snapshot in calm.items()}
    for name, snapshots, step in (
        ("capacity_plan, calm", calm, capacity_plan),
        ("failover_plan, calm", calm, failover_plan),
        ("failover_plan, a fatal device", broken, failover_plan),
    ):
        times = {size: timed(partial(step, snapshot, world.NOW)) for size, snapshot in snapshots.items()}
        yield from _compared(name, times)
    yield from _node_plans(calm)


def _compared(name: str, times: dict[int, float]) -> Iterator[Row]:
    """Seconds by size; 1.00 means that the time grows as the cluster does."""
    each = times[SIZES[0]] / SIZES[0]
    for size, seconds in times.items():
        yield Row(f"{name}, {size} nodes", seconds, f"{seconds / size / each:.2f} x for each node")


def _node_plans(snapshots: dict[int, Snapshot]) -> Iterator[Row]:
    """What all nodes' plans cost in clusters of each size; 1.00 means: in proportion to the nodes."""
    times = {size: timed(partial(node_plans, snapshot)) for size, snapshot in snapshots.items()}
    yield from _compared("node_plans", times)


def events() -> Iterator[Row]:
    """What the fact store costs beside reading the JSON that it is fed with."""
    pods = [obj for resource, obj in world.objects(EVENTS // 6) if resource is PODS]
    lines = [orjson.dumps({"type": "MODIFIED", "object": pod}) for pod in pods]
    alone = timed(lambda: [orjson.loads(line) for line in lines])
    kept = timed(lambda: _feed(lines))
    yield Row(f"reading {len(lines)} Pod events", alone, f"{len(lines) / alone:,.0f} a second")
    yield Row(
        "and keeping them as facts", kept, f"{kept / alone:.2f} x as long; {len(lines) / kept:,.0f} a second"
    )


def _feed(lines: list[bytes]) -> None:
    store = FactStore()
    store.register(PODS, project_pod)
    for line in lines:
        event = orjson.loads(line)
        store.observe(PODS, EventType(event["type"]), event["object"])


async def applies() -> list[Row]:
    """What an apply that changes nothing costs, against one that is sent; needs a compiled control plane."""
    with TemporaryDirectory() as folder:
        try:
            plane = ControlPlane(Path(folder)).start()
        except recipe.NotBuiltError as missing:
            return [Row("server-side apply", 0.0, f"not measured: {missing}")]
        try:
            return await _applies(plane)
        finally:
            plane.stop()


async def _applies(plane: ControlPlane) -> list[Row]:
    rest = await Rest.connect(Access(kubeconfig=plane.kubeconfig))
    applier = Applier(rest, "kvpool-benchmark")
    current: Mapping[str, Any] | None = None
    times = {True: 0.0, False: 0.0}
    counts = {True: 0, False: 0}
    for number in range(2 * APPLIES):
        metadata = {"name": "benchmark", "namespace": "default"}
        manifest = {"metadata": metadata, "data": {str(key): str(number // 2) for key in range(20)}}
        begun = time.perf_counter()
        applied = await applier.apply(CONFIG_MAPS, manifest, current=current)
        times[applied.sent] += time.perf_counter() - begun
        counts[applied.sent] += 1
        current = applied.obj
    await rest.close()
    sent, skipped = times[True] / counts[True], times[False] / counts[False]
    return [
        Row(f"apply that changes something ({counts[True]})", sent, ""),
        Row(
            f"apply that changes nothing ({counts[False]})",
            skipped,
            f"not sent: {sent / skipped:,.0f} x as fast",
        ),
    ]
