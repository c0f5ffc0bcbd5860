"""Random small worlds for properties of capacity plans."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from kvpool.api.quantity import format_quantity
from tests.builders.cluster import Cluster, a_cluster
from tests.builders.objects import a_budget, a_pod, a_pool, dram

MIB = 1 << 20
NODE_NAMES = ("node-1", "node-2", "node-3", "node-4")
POOL_NAMES = ("alpha", "beta", "gamma")


def mib(count: int) -> str:
    return format_quantity(count * MIB)


@dataclass(frozen=True)
class NodePlan:
    """One node of a random world; mebibytes."""

    media: tuple[int, ...]
    others: int
    allocatable: int
    engine: int
    rack: str


@dataclass(frozen=True)
class WorldPlan:
    """A random world; mebibytes."""

    nodes: tuple[NodePlan, ...]
    budgets: tuple[tuple[int, int, str | None], ...]
    """perNode, reserve, rack (None: every node)."""
    pools: tuple[int, ...]

    def build(self, *, reverse: bool = False) -> Cluster:
        """The world; `reverse` puts everything in in the opposite order."""
        cluster = a_cluster()
        turn = -1 if reverse else 1
        for name, node in list(zip(NODE_NAMES, self.nodes, strict=False))[::turn]:
            others = min(node.others, node.media[0])
            media = [
                dram(numa, mib(size), mib(others) if numa == 0 else "0")
                for numa, size in enumerate(node.media)
            ]
            cluster.with_nodes([name], *media[::turn], allocatable=mib(node.allocatable), rack=node.rack)
            cluster.with_pod(a_pod(f"engine-{name}", name, mib(node.engine)))
        for number, (per_node, reserve, rack) in list(enumerate(self.budgets))[::turn]:
            budget = a_budget(f"budget-{number}").giving("DRAM", mib(per_node), reserve=mib(reserve))
            cluster.with_budget((budget.on_nodes(rack=rack) if rack else budget).build())
        for name, size in list(zip(POOL_NAMES, self.pools, strict=False))[::turn]:
            cluster.with_pool(a_pool(name).asking(DRAM=mib(size)).build())
        return cluster


node_plans = st.builds(
    NodePlan,
    media=st.lists(st.integers(50, 2000), min_size=1, max_size=2).map(tuple),
    others=st.sampled_from([0, 0, 40, 700, 3000]),
    allocatable=st.integers(300, 6000),
    engine=st.sampled_from([0, 100, 1000]),
    rack=st.sampled_from(["a", "b"]),
)
budget_plans = st.tuples(
    st.integers(50, 2000), st.sampled_from([0, 0, 64, 500]), st.sampled_from([None, None, "a", "b"])
)
world_plans = st.builds(
    WorldPlan,
    nodes=st.lists(node_plans, min_size=1, max_size=4).map(tuple),
    budgets=st.lists(budget_plans, min_size=1, max_size=2).map(tuple),
    pools=st.lists(st.integers(1, 1200), min_size=1, max_size=3).map(tuple),
)
