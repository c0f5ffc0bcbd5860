"""A pool from its manifest to memory on nodes, through everything that is real here."""

from __future__ import annotations

from collections.abc import Callable

from tests.harness.installation import Installation
from tests.harness.waiting import wait_until


def test_a_pool_is_bound_on_every_node_that_its_budget_matches(kvpool: Callable[..., Installation]) -> None:
    installed = kvpool(hosts=2)
    admin = installed.plane.admin
    tier = {"name": "DRAM", "perNode": "128Mi", "reserve": "64Mi"}
    selector = {"matchLabels": {"pool": "gpu"}}
    budget = {"mode": "Enforce", "nodeSelector": selector, "tiers": [tier]}
    admin.create(
        {
            "apiVersion": "kvpool.dev/v1alpha1",
            "kind": "TierBudget",
            "metadata": {"name": "gpu"},
            "spec": budget,
        }
    )
    installed.plane.create_namespace("inference")
    pool = {"mode": "Enforce", "tiers": [{"name": "DRAM", "size": "128Mi"}], "store": {"none": {}}}
    metadata = {"name": "chat", "namespace": "inference"}
    admin.create({"apiVersion": "kvpool.dev/v1alpha1", "kind": "KVPool", "metadata": metadata, "spec": pool})

    def bound() -> bool:
        status = admin.get("kvpool.dev/v1alpha1", "KVPool", "chat", "inference").get("status", {})
        tiers = status.get("tiers", [])
        return bool(tiers) and tiers[0]["bound"] == "128Mi" and status["nodes"]["bound"] == 2

    wait_until(bound, 60, "64 MiB bound on each of two nodes")
