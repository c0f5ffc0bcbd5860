"""The kinds that people write, watched by kopf: every handler records a fact and returns.

No decision is made here, nothing is awaited, nothing is written on the objects: no finalizer, no annotation.
"""

from typing import Final

import kopf

from kvpool.cluster.resources import KV_POOLS, PD_GROUPS, SUPERNODES, TIER_BUDGETS, Obj, Resource
from kvpool.cluster.rest import Rest
from kvpool.cluster.store import EventType, FactStore

PEOPLES: Final[tuple[Resource, ...]] = (TIER_BUDGETS, KV_POOLS, PD_GROUPS, SUPERNODES)


def people_registry(rest: Rest, store: FactStore) -> kopf.OperatorRegistry:
    """One login and one event handler for each of people's kinds."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def connect(**_: object) -> kopf.ConnectionInfo:
        # Asked again whenever the server refuses the credentials: projected tokens rotate.
        endpoint = await rest.endpoint()
        return kopf.ConnectionInfo(
            server=endpoint.server,
            ca_path=endpoint.ca_path,
            certificate_path=endpoint.certificate_path,
            private_key_path=endpoint.key_path,
            token=endpoint.token,
        )

    for resource in PEOPLES:
        _record(registry, store, resource)
    return registry


def _record(registry: kopf.OperatorRegistry, store: FactStore, resource: Resource) -> None:
    @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)
    async def record(event: kopf.RawEvent, **_: object) -> None:
        obj: Obj = dict(event["object"])
        kind = EventType.DELETED if event["type"] == "DELETED" else EventType.MODIFIED
        store.observe(resource, kind, obj)


def people_settings() -> kopf.OperatorSettings:
    """Kopf without peering, events and persistence, and with a deadline on every request."""
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.watching.server_timeout = 240
    settings.watching.client_timeout = 270
    settings.watching.connect_timeout = 10
    settings.watching.chunk_size = 500
    settings.networking.connect_timeout = 5
    settings.networking.request_timeout = 30
    settings.queueing.idle_timeout = 1
    settings.persistence.finalizer = "kvpool.dev/unused"
    settings.process.ultimate_exiting_timeout = None  # kopf would kill this process; `main` ends it in order
    return settings
