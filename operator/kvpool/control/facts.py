"""Everything the API server has told, as typed facts; views of it for Snapshots.

An object that cannot be read is left out, counted and logged once for each version: bad input never takes
a loop down. Objects of our own kinds keep their raw form for guarded writes.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import structlog

from kvpool.api import EngineSlot, KVNode, KVPool, PDGroup, Remap, Supernode, TierBudget
from kvpool.api.labels import PAUSE_CONFIG_MAP, UNINSTALL_CONFIG_MAP
from kvpool.api.schema import Model
from kvpool.cluster.resources import (
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    ENGINE_SLOTS,
    KV_NODES,
    KV_POOLS,
    NODES,
    PD_GROUPS,
    PODS,
    REMAPS,
    SUPERNODES,
    TIER_BUDGETS,
    Obj,
    Resource,
)
from kvpool.cluster.store import FactStore, Key, Registration
from kvpool.control.metrics import OperatorMetrics
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import NodeFact, PodFact
from kvpool.model.snapshot import Uninstall
from kvpool.rules.epochs import is_believable, named_epoch
from kvpool.world.project import Malformed, parse_object, project_node, project_pod, ready_addresses
from kvpool.world.uninstall import read_uninstall

M = TypeVar("M", bound=Model)
T = TypeVar("T")
_log = structlog.get_logger()


class UnknownObjectError(Exception):
    """The object is not known (any more): decide anew."""


class Facts:
    """The fact store with its registrations, read by name."""

    def __init__(self, metrics: OperatorMetrics) -> None:
        self.store = FactStore()
        self._metrics = metrics
        self._ready_since: dict[str, tuple[str, bool | None, float]] = {}
        self._own: dict[Resource, Registration[Any]] = {}
        for resource, model in _OWN_KINDS.items():
            self._own[resource] = self.store.register(resource, self._parser(model), keep_raw=True)
        self._nodes = self.store.register(NODES, self._node)
        self._pods = self.store.register(PODS, self._total("Pod", project_pod))
        self._slices = self.store.register(ENDPOINT_SLICES, self._total("EndpointSlice", ready_addresses))
        self._config_maps = self.store.register(CONFIG_MAPS, lambda raw: dict(raw.get("data") or {}))
        self.store.subscribe(self._forget_readiness)

    def raw(self, resource: Resource, namespace: str | None, name: str) -> Obj:
        """The object of one of our kinds, as it was last seen.

        Raises:
            UnknownObjectError: when it is gone.
        """
        fact = self.store.get(self._own[resource], name, namespace)
        if fact is None or fact.raw is None:
            raise UnknownObjectError(f"{resource} {namespace or ''}/{name} is not known any more")
        return fact.raw

    def paused(self) -> bool:
        """Whether the whole cluster is paused."""
        return any(
            fact.key.name == PAUSE_CONFIG_MAP and fact.value.get("paused") == "true"
            for fact in self.store.facts(self._config_maps)
        )

    def uninstall(self) -> Uninstall | None:
        """Whether kvpool is being uninstalled."""
        for fact in self.store.facts(self._config_maps):
            if fact.key.name == UNINSTALL_CONFIG_MAP:
                return read_uninstall(fact.key.namespace or "", fact.resource_version, fact.value)
        return None

    def budgets(self) -> Mapping[str, TierBudget]:
        """By name."""
        return self._by_name(TIER_BUDGETS)

    def supernodes(self) -> Mapping[str, Supernode]:
        """By name."""
        return self._by_name(SUPERNODES)

    def kvnodes(self) -> Mapping[str, KVNode]:
        """By name."""
        return self._by_name(KV_NODES)

    def pools(self) -> Mapping[ObjectKey, KVPool]:
        """By namespace and name."""
        return self._by_key(KV_POOLS)

    def groups(self) -> Mapping[ObjectKey, PDGroup]:
        """By namespace and name."""
        return self._by_key(PD_GROUPS)

    def slots(self) -> Mapping[ObjectKey, EngineSlot]:
        """By namespace and name."""
        return self._by_key(ENGINE_SLOTS)

    def remaps(self) -> Mapping[ObjectKey, Remap]:
        """By namespace and name."""
        return self._by_key(REMAPS)

    def nodes(self) -> Mapping[str, NodeFact]:
        """By name."""
        values = (fact.value for fact in self.store.facts(self._nodes))
        return {value.name: value for value in values if isinstance(value, NodeFact)}

    def pods(self) -> Mapping[ObjectKey, PodFact]:
        """By namespace and name."""
        values = (fact.value for fact in self.store.facts(self._pods))
        return {value.key: value for value in values if isinstance(value, PodFact)}

    def pod(self, key: ObjectKey) -> PodFact | None:
        """One pod, or None when it is not known."""
        fact = self.store.get(self._pods, key.name, key.namespace)
        return fact.value if fact is not None and isinstance(fact.value, PodFact) else None

    def unreadable(self) -> frozenset[tuple[str, ObjectKey]]:
        """Kind and key of Nodes and of objects of our kinds that are there and cannot be read."""
        return frozenset(
            (kind, ObjectKey(fact.key.namespace or "", fact.key.name))
            for kind, registration in (
                *((model.__name__, self._own[resource]) for resource, model in _OWN_KINDS.items()),
                ("Node", self._nodes),
            )
            for fact in self.store.facts(registration)
            if isinstance(fact.value, Malformed)
        )

    def endpoints(self, namespace: str, service: str) -> tuple[str, ...]:
        """The ready addresses of a Service, sorted."""
        found = {
            address
            for fact in self.store.facts(self._slices)
            if fact.key.namespace == namespace and not isinstance(fact.value, Malformed)
            for owner, address in fact.value
            if owner == service
        }
        return tuple(sorted(found))

    def masters(self) -> Mapping[ObjectKey, frozenset[str]]:
        """By pool, the masters (address:port) that its units on record are mounted at."""
        found: defaultdict[ObjectKey, set[str]] = defaultdict(set)
        for kvnode in self.kvnodes().values():
            for unit in kvnode.spec.units:
                if unit.store is not None:
                    found[ObjectKey.of(unit.pool)].add(unit.store.master)
        return {key: frozenset(masters) for key, masters in found.items()}

    def highest_epoch(self, mine: int) -> int:
        """The highest operator epoch that any of our objects carries and a leader can have reached.

        `mine` is our own.
        """
        carried = (
            named_epoch(thing)
            for things in (self.kvnodes(), self.slots(), self.remaps())
            for thing in things.values()
        )
        return max((epoch for epoch in carried if is_believable(epoch, mine)), default=0)

    def _by_name(self, resource: Resource) -> dict[str, Any]:
        return {
            fact.key.name: fact.value
            for fact in self.store.facts(self._own[resource])
            if not isinstance(fact.value, Malformed)
        }

    def _by_key(self, resource: Resource) -> dict[ObjectKey, Any]:
        return {
            ObjectKey(fact.key.namespace or "", fact.key.name): fact.value
            for fact in self.store.facts(self._own[resource])
            if not isinstance(fact.value, Malformed)
        }

    def _parser(self, model: type[M]) -> Callable[[Obj], M | Malformed]:
        return self._total(model.__name__, lambda raw: parse_object(model, raw))

    def _node(self, raw: Obj) -> NodeFact | Malformed:
        value = project_node(raw, None)
        if isinstance(value, Malformed):
            return self._count("Node", value)
        known = self._ready_since.get(value.name)
        if known is None or known[:2] != (value.uid, value.ready):
            known = (value.uid, value.ready, time.monotonic())
            self._ready_since[value.name] = known
        return project_node(raw, known[2])

    def _forget_readiness(self, key: Key) -> None:
        """Let what is remembered of a Node go with the Node."""
        if key.resource == NODES and self.store.get(self._nodes, key.name) is None:
            self._ready_since.pop(key.name, None)

    def _total(self, kind: str, project: Callable[[Obj], T | Malformed]) -> Callable[[Obj], T | Malformed]:
        def projected(raw: Obj) -> T | Malformed:
            value = project(raw)
            return self._count(kind, value) if isinstance(value, Malformed) else value

        return projected

    def _count(self, kind: str, malformed: Malformed) -> Malformed:
        self._metrics.api.malformed.labels(kind).inc()
        _log.warning("object left out", kind=kind, reason=str(malformed))
        return malformed


_OWN_KINDS: Final[Mapping[Resource, type[Model]]] = {
    TIER_BUDGETS: TierBudget,
    KV_POOLS: KVPool,
    PD_GROUPS: PDGroup,
    SUPERNODES: Supernode,
    KV_NODES: KVNode,
    ENGINE_SLOTS: EngineSlot,
    REMAPS: Remap,
}
