"""Short ways to write budgets, pools, nodes, agents and stores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kvpool.api import KVPool, Supernode, TierBudget
from kvpool.api.quantity import parse_quantity
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import (
    AgentView,
    LeaseView,
    NodeFact,
    PodFact,
    SegmentView,
    SourceView,
    StoreView,
)


class PoolBuilder:
    """A KVPool in the making: `a_pool("chat").asking(DRAM="64Gi").in_mode("Enforce").build()`."""

    def __init__(self, name: str, namespace: str = "inference") -> None:
        self._metadata: dict[str, Any] = {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}"[:60],
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        self._spec: dict[str, Any] = {"mode": "Enforce", "store": {"none": {}}, "tiers": []}

    def in_mode(self, mode: str) -> PoolBuilder:
        self._spec["mode"] = mode
        return self

    def asking(self, **sizes: str) -> PoolBuilder:
        self._spec["tiers"] = [{"name": name, "size": size} for name, size in sizes.items()]
        return self

    def born(self, timestamp: str) -> PoolBuilder:
        self._metadata["creationTimestamp"] = timestamp
        return self

    def with_mooncake(self, address: str = "master.test") -> PoolBuilder:
        self._spec["store"] = {"mooncake": {"master": {"address": address}}}
        return self

    def on_nodes(self, **labels: str) -> PoolBuilder:
        self._spec["nodeSelector"] = {"matchLabels": labels}
        return self

    def with_spec(self, **fields: object) -> PoolBuilder:
        self._spec |= fields
        return self

    def paused(self) -> PoolBuilder:
        self._metadata["annotations"] = {"kvpool.dev/paused": "true"}
        return self

    def build(self) -> KVPool:
        return KVPool.parse({"metadata": self._metadata, "spec": self._spec})


def a_pool(name: str = "chat", namespace: str = "inference") -> PoolBuilder:
    return PoolBuilder(name, namespace)


class BudgetBuilder:
    """A TierBudget in the making: `a_budget("gpu").giving("DRAM", "32Gi", reserve="4Gi").build()`."""

    def __init__(self, name: str) -> None:
        self._metadata: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "generation": 1}
        self._spec: dict[str, Any] = {"mode": "Enforce", "tiers": []}

    def in_mode(self, mode: str) -> BudgetBuilder:
        self._spec["mode"] = mode
        return self

    def giving(self, tier: str, per_node: str, **fields: object) -> BudgetBuilder:
        self._spec["tiers"].append({"name": tier, "perNode": per_node, **fields})
        return self

    def on_nodes(self, **labels: str) -> BudgetBuilder:
        self._spec["nodeSelector"] = {"matchLabels": labels}
        return self

    def build(self) -> TierBudget:
        return TierBudget.parse({"metadata": self._metadata, "spec": self._spec})


def a_budget(name: str = "gpu") -> BudgetBuilder:
    return BudgetBuilder(name)


def a_supernode(name: str, labels: dict[str, str], maintenance: tuple[str, ...] = ()) -> Supernode:
    return Supernode.parse(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kvpool.dev/supernode": name}},
            "spec": {
                "nodeSelector": {"matchLabels": labels},
                "maintenance": [{"node": node} for node in maintenance],
            },
        }
    )


def a_node(
    name: str, labels: dict[str, str] | None = None, *, allocatable: str = "128Gi", ready: bool | None = True
) -> NodeFact:
    return NodeFact(
        name=name,
        uid=f"uid-{name}",
        labels={"kubernetes.io/hostname": name, **(labels or {})},
        ready=ready,
        ready_since=0.0,
        address=f"host-{name}",
        allocatable_memory_bytes=parse_quantity(allocatable),
    )


def dram(numa_node: int, capacity: str, others: str = "0") -> SourceView:
    size = parse_quantity(capacity)
    return SourceView(f"dram/n{numa_node}", "DRAM", "tmpfs", numa_node, size, size - parse_quantity(others))


def cxl(numa_node: int, capacity: str) -> SourceView:
    size = parse_quantity(capacity)
    return SourceView(f"cxl/n{numa_node}", "CXL", "tmpfs", numa_node, size, size)


def disk(mount: str, capacity: str, others: str = "0") -> SourceView:
    size = parse_quantity(capacity)
    return SourceView(f"file/ext4:{mount}", "SSD", "file", -1, size, size - parse_quantity(others))


def an_agent(node: str, *sources: SourceView, at: float) -> AgentView:
    return AgentView(
        node=node,
        boot_id=f"boot-{node}-1",
        incarnation=1,
        agent_version="0.1.0",
        pod_uid=f"uid-agent-{node}",
        connected=True,
        hello_at=at,
        reported_at=at,
        leaving_until=None,
        lease=LeaseView(granted_at=at, duration_seconds=10.0, max_skew_seconds=1.0),
        applied_revision=0,
        highest_operator_epoch=1,
        roster_revision=1,
        sources=sources,
        peer_address=f"host-{node}:7443",
    )


def a_pod(name: str, node: str, memory: str, *, namespace: str = "inference", address: str = "") -> PodFact:
    return PodFact(
        key=ObjectKey(namespace, name),
        uid=f"uid-{name}",
        labels={},
        node=node,
        address=address,
        phase="Running",
        ready=True,
        deleting=False,
        memory_request_bytes=parse_quantity(memory),
    )


def a_store(pool: str, *segments: SegmentView, at: float) -> StoreView:
    return StoreView(
        pool=ObjectKey.of(pool),
        reachable=True,
        asked_at=at,
        rpc_address="master.test:50051",
        admin_address="master.test:9003",
        segments=segments,
        key_count=1,
    )


def a_segment(name: str, capacity: str, used: str = "0") -> SegmentView:
    host = name.partition(":")[0]
    return SegmentView(name, parse_quantity(capacity), parse_quantity(used), host)


def silent_since(agent: AgentView, moment: float) -> AgentView:
    return replace(agent, reported_at=moment, connected=False)
