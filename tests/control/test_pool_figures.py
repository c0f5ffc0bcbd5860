"""What the operator's metrics say of pools, from nothing but a plan."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from kvpool.control.figures import Figures
from kvpool.control.metrics import OperatorMetrics
from kvpool.plan.capacity import capacity_plan
from tests.builders.cluster import a_cluster, nodes
from tests.builders.objects import a_budget, a_pool

PLANNING = {"model": {"kvBytesPerToken": 262144}, "sessions": {"contextTokens": 4096, "returnAfter": "10m"}}
AT = {"namespace": "inference", "pool": "chat", "limited_by": "Capacity"}


def test_the_sessions_of_a_pool_are_a_gauge_that_goes_with_its_planning() -> None:
    registry = CollectorRegistry()
    figures = Figures(OperatorMetrics(registry))
    budget = a_budget().giving("DRAM", "64Gi").build()
    cluster = a_cluster().with_nodes(nodes(4)).with_budget(budget)
    cluster.with_pool(a_pool().asking(DRAM="64Gi").with_spec(planning=PLANNING).build()).settle()
    figures.capacity(cluster.snapshot(), capacity_plan(cluster.snapshot(), cluster.now))
    assert registry.get_sample_value("kvpool_pool_sessions", AT) == 64
    cluster.with_pool(a_pool().asking(DRAM="64Gi").build()).settle()
    figures.capacity(cluster.snapshot(), capacity_plan(cluster.snapshot(), cluster.now))
    assert registry.get_sample_value("kvpool_pool_sessions", AT) is None
