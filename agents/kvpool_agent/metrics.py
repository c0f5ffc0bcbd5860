"""The agent's own metrics, made from its state when they are asked for, and its health."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kvpool_agent.heartbeats import Heartbeats
from kvpool_agent.node_state import NodeState
from kvpool_keeper.answer import Answer


@dataclass(frozen=True)
class Reading:
    """What is scraped."""

    state: NodeState
    counters: Mapping[str, int]
    """Name (without prefix) to count; names in COUNTERS."""
    connected: bool
    lease_seconds: float
    serving_on: bool
    operator_epoch: int


COUNTERS = {
    "refused_epochs": "Messages refused because of a lower operator epoch.",
    "refused_plans": "Plans refused because they make no sense.",
    "unreadable_records": "Journal records that could not be read and were set aside.",
    "local_api_refused": "Messages on the local API that were refused.",
    "local_api_turned_away": "Connections to the local API beyond the bound.",
    "dials_failed": "Rounds of dialling in which no operator said Welcome.",
}


class AgentCollector(Collector):
    """Turns a Reading into metrics."""

    def __init__(self, read: Callable[[], Reading]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        reading = self._read()
        yield from _unit_metrics(reading.state)
        yield from _node_metrics(reading)
        for name, text in COUNTERS.items():
            counter = CounterMetricFamily(f"kvpool_agent_{name}", text)
            counter.add_metric([], reading.counters.get(name, 0))
            yield counter


def _unit_metrics(state: NodeState) -> Iterator[Metric]:
    size = GaugeMetricFamily("kvpool_agent_unit_size_bytes", "Planned size of the unit.", labels=["unit"])
    resident = GaugeMetricFamily(
        "kvpool_agent_unit_resident_bytes", "Bytes of the unit backed by pages or blocks.", labels=["unit"]
    )
    used = GaugeMetricFamily(
        "kvpool_agent_unit_used_bytes",
        "Bytes of the unit that hold objects, as the store says.",
        labels=["unit"],
    )
    phase = GaugeMetricFamily(
        "kvpool_agent_unit_phase", "1 for the phase the unit is in.", labels=["unit", "phase"]
    )
    findings = GaugeMetricFamily(
        "kvpool_agent_unit_finding", "1 for everything that verify found.", labels=["unit", "reason"]
    )
    for unit in state.units:
        size.add_metric([unit.name], unit.size_bytes)
        resident.add_metric([unit.name], unit.resident_bytes)
        if unit.used_bytes is not None:
            used.add_metric([unit.name], unit.used_bytes)
        phase.add_metric([unit.name, unit.phase], 1)
        for reason in sorted({finding.reason for finding in unit.findings}):
            findings.add_metric([unit.name, reason], 1)
    yield from (size, resident, used, phase, findings)


def _node_metrics(reading: Reading) -> Iterator[Metric]:
    free = GaugeMetricFamily(
        "kvpool_agent_source_free_bytes", "Bytes that could be bound from a medium.", labels=["source"]
    )
    for source in reading.state.sources:
        free.add_metric([source.key], source.free_bytes)
    yield free
    observed = GaugeMetricFamily(
        "kvpool_agent_device_observed", "1 while the device's provider can be asked.", labels=["device"]
    )
    for device in reading.state.devices:
        observed.add_metric([device.id], int(device.observed))
    yield observed
    loops = GaugeMetricFamily(
        "kvpool_agent_loop_age_seconds", "Seconds since the loop last succeeded.", labels=["loop"]
    )
    for loop, age in reading.state.loop_ages.items():
        loops.add_metric([loop], age)
    yield loops
    for name, text, value in (
        ("connected", "1 while there is a stream to the leading operator.", float(reading.connected)),
        ("lease_remaining_seconds", "Time left of the node's lease.", reading.lease_seconds),
        ("serving_on", "1 while the node serves without lease, as its peers do.", float(reading.serving_on)),
        ("operator_epoch", "Highest operator epoch ever accepted.", float(reading.operator_epoch)),
        ("engines", "Engines connected to the local API.", float(len(reading.state.engines))),
    ):
        gauge = GaugeMetricFamily(f"kvpool_agent_{name}", text)
        gauge.add_metric([], value)
        yield gauge


def metrics_route(read: Callable[[], Reading]) -> Callable[[], Answer]:
    """Return the route of `/metrics`."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(AgentCollector(read))
    return lambda: Answer(200, generate_latest(registry), "text/plain; version=0.0.4; charset=utf-8")


def health_route(hearts: Heartbeats) -> Callable[[], Answer]:
    """Return the route of `/healthz`: 503 with the names of the loops that hang."""

    def answer() -> Answer:
        stale = hearts.stale()
        if not stale:
            return Answer(200, b"ok\n")
        text = ", ".join(f"{loop} silent for {age:.0f} s" for loop, age in stale.items())
        return Answer(503, f"{text}\n".encode())

    return answer


def ready_route(greeted: Callable[[], bool]) -> Callable[[], Answer]:
    """Return the route of `/readyz`: 503 until a leading operator has greeted this process, 200 ever after.

    An operator that is away later takes no agent out of service: it is not its agents that fail.
    """

    def answer() -> Answer:
        return Answer(200, b"ok\n") if greeted() else Answer(503, b"no leading operator said Welcome yet\n")

    return answer
