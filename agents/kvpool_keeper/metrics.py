"""The keeper's few metrics, made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kvpool_keeper.answer import Answer
from kvpool_keeper.contract import KeeperStatus, boottime_ns

NANOSECONDS = 1_000_000_000


class KeeperCollector(Collector):
    """Reads the keeper's status at scrape time."""

    def __init__(self, status: Callable[[], KeeperStatus]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        status = self._status()
        resident = GaugeMetricFamily(
            "kvpool_keeper_resident_bytes", "Bytes of the unit backed by pages or blocks."
        )
        resident.add_metric([], status.resident_bytes)
        yield resident
        if status.used_bytes is not None:
            used = GaugeMetricFamily("kvpool_keeper_used_bytes", "Bytes of the segment that hold objects.")
            used.add_metric([], status.used_bytes)
            yield used
            age = GaugeMetricFamily("kvpool_keeper_used_age_seconds", "Age of the used bytes.")
            age.add_metric([], (boottime_ns() - status.used_at_boottime_ns) / NANOSECONDS)
            yield age
        mounted = GaugeMetricFamily("kvpool_keeper_mounted", "1 while the segment is in the store.")
        mounted.add_metric([], int(status.mounted))
        yield mounted
        lost = CounterMetricFamily(
            "kvpool_keeper_contents_lost", "Times that the objects in the unit were lost."
        )
        lost.add_metric([], status.contents_lost_count)
        yield lost


def metrics_route(status: Callable[[], KeeperStatus]) -> Callable[[], Answer]:
    """Return the route of `/metrics`."""
    registry = CollectorRegistry()
    registry.register(KeeperCollector(status))
    return lambda: Answer(200, generate_latest(registry), "text/plain; version=0.0.4; charset=utf-8")
