"""The object that an event is about, as the recorder wants it."""

from typing import Any

from kvpool.cluster.resources import (
    ENGINE_SLOTS,
    KV_NODES,
    KV_POOLS,
    PD_GROUPS,
    REMAPS,
    SUPERNODES,
    TIER_BUDGETS,
)
from kvpool.control.facts import Facts, UnknownObjectError
from kvpool.model.ids import ObjectKey

OWN = {
    resource.kind: resource
    for resource in (TIER_BUDGETS, KV_POOLS, PD_GROUPS, SUPERNODES, KV_NODES, ENGINE_SLOTS, REMAPS)
}


def event_target(facts: Facts, kind: str, key: ObjectKey) -> dict[str, Any] | None:
    """apiVersion, kind and metadata of one of our objects; None when it is gone."""
    resource = OWN[kind]
    try:
        raw = facts.raw(resource, key.namespace or None, key.name)
    except UnknownObjectError:
        return None
    return {"apiVersion": resource.api_version, "kind": kind, "metadata": raw["metadata"]}
