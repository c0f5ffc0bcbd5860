"""What the operator's metrics say of pools, from nothing but a plan."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from kvpool.control.figures import Figures
from kvpool.control.metrics import OperatorMetrics
from kvpool.plan.capacity import capacity_plan
from tests.builders.cluster import a_cluster, nodes
from tests.builders.objects import a_budget, a_pool, a_store

PLANNING = {"model": {"kvBytesPerToken": 262144}, "sessions": {"contextTokens": 4096, "returnAfter": "10m"}}
POOL = {"namespace": "inference", "pool": "chat"}
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


def test_a_unit_that_lost_its_objects_is_told_of_its_pool_until_its_agent_says_it_no_more() -> None:
    registry = CollectorRegistry()
    figures = Figures(OperatorMetrics(registry))
    budget = a_budget().giving("DRAM", "64Gi").build()
    cluster = a_cluster().with_nodes(nodes(2)).with_budget(budget)
    cluster.with_pool(a_pool().asking(DRAM="64Gi").with_mooncake().build())
    cluster.with_store(a_store("inference/chat", at=cluster.now_seconds)).settle()
    told = []
    for findings in ((), (("StoreContentsLost", "1 times so far"),), ()):
        cluster.change_view("node-2", "inference.chat.dram.n0", findings=findings)
        figures.capacity(cluster.snapshot(), capacity_plan(cluster.snapshot(), cluster.now))
        told.append(registry.get_sample_value("kvpool_pool_objects_lost", POOL))
        cluster.step()
    assert told == [0, 1, 0]
    assert registry.get_sample_value("kvpool_store_contents_lost_total", POOL) == 0
