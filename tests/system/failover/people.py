"""What people ask of a failover world: maintenance, pauses, more or fewer instances."""

from __future__ import annotations

from tests.system.failover.manifests import API_VERSION, GROUP, NAMESPACE, SUPERNODE
from tests.system.failover.world import FailoverWorld


def maintain(world: FailoverWorld, *nodes: str) -> None:
    """Put these nodes under maintenance, and no others."""
    entries = [{"node": node, "reason": "fan"} for node in nodes]
    world.api.patch(API_VERSION, "Supernode", SUPERNODE, {"spec": {"maintenance": entries}})


def pause(world: FailoverWorld, *, on: bool) -> None:
    """Hold everything, or let it go on."""
    namespace = world.installed.namespace
    metadata = {"name": "kvpool-pause", "namespace": namespace}
    if on:
        data = {"paused": "true"}
        world.api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    elif world.api.find("v1", "ConfigMap", "kvpool-pause", namespace) is not None:
        world.api.delete("v1", "ConfigMap", "kvpool-pause", namespace)


def ask_for_instances(world: FailoverWorld, count: int) -> None:
    """Say how many slots the group has."""
    change = {"spec": {"decode": {"instances": count}}}
    world.api.patch(API_VERSION, "PDGroup", GROUP, change, NAMESPACE)
