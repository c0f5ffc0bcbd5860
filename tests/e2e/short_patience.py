"""A second store whose master has Mooncake's own `client_ttl`, and a pool with blocks in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from demo.neighbours import pods
from demo.neighbours.mooncake import MooncakeAdmin
from tests.e2e.site import RealSite
from tests.e2e.stored import Stored
from tests.harness.objects import NAMESPACE

MASTER = "impatient-master"
POOL = "impatient"


@dataclass
class ShortPatience:
    """`pool` has one unit on each node, in the master that forgets soon; `stored` are blocks in them."""

    pool: str
    stored: Stored

    @classmethod
    @contextmanager
    def beside(cls, site: RealSite, node: str) -> Iterator[ShortPatience]:
        """Start the master on a node where no other one is; everything is gone in the end."""
        manifests = pods.store_master(NAMESPACE, node, name=MASTER, client_ttl_seconds=None)
        for manifest in manifests:
            site.admin.apply(manifest, field_manager="people")
        try:
            site.kubectl("rollout", "status", f"deployment/{MASTER}", f"--namespace={NAMESPACE}")
            master = {"serviceRef": {"name": MASTER}}
            site.pool(POOL, store={"mooncake": {"master": master}}, DRAM="48Mi")
            site.wait_bound(POOL)
            address = site.address(node)
            admin = MooncakeAdmin(f"http://{address}:{pods.ADMIN_PORT}")
            with Stored.put(f"{address}:{pods.RPC_PORT}", admin) as stored:
                yield cls(POOL, stored)
        finally:
            site.delete_pool(POOL)
            for manifest in manifests:
                site.admin.delete(manifest["apiVersion"], manifest["kind"], MASTER, NAMESPACE)
