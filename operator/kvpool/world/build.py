"""A Snapshot from raw API objects: what a file or a list from a cluster says, without agents or stores."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from kvpool.api import KINDS, EngineSlot, KVNode, KVPool, PDGroup, Remap, Supernode, TierBudget
from kvpool.api.common import Mode
from kvpool.api.schema import Model
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.observations import NodeFact, PodFact
from kvpool.model.snapshot import Leadership, Snapshot
from kvpool.world.project import Malformed, Raw, parse_object, project_node, project_pod

_MODELS: Final = {model.__name__: model for model in KINDS}


@dataclass(slots=True)
class Objects:
    """API objects sorted by kind; what could not be read stands apart."""

    own: list[Model] = field(default_factory=list)
    nodes: dict[str, NodeFact] = field(default_factory=dict)
    pods: dict[ObjectKey, PodFact] = field(default_factory=dict)
    malformed: list[Malformed] = field(default_factory=list)

    def named(self, model: type[Any]) -> dict[str, Any]:
        """Objects of a cluster-scoped kind, by name."""
        return {item.metadata.name: item for item in self._of(model)}

    def keyed(self, model: type[Any]) -> dict[ObjectKey, Any]:
        """Objects of a namespaced kind."""
        return {ObjectKey(item.metadata.namespace, item.metadata.name): item for item in self._of(model)}

    def _of(self, model: type[Any]) -> list[Any]:
        return [item for item in self.own if isinstance(item, model)]


def read_objects(raws: Iterable[Raw], now: Instant) -> Objects:
    """Read Nodes, Pods and our own kinds; other kinds are no business of a Snapshot and are passed over."""
    objects = Objects()
    for raw in raws:
        fact = _read(raw, now)
        match fact:
            case Malformed():
                objects.malformed.append(fact)
            case NodeFact():
                objects.nodes[fact.name] = fact
            case PodFact():
                objects.pods[fact.key] = fact
            case Model():
                objects.own.append(fact)
            case None:
                continue
    return objects


def _read(raw: Raw, now: Instant) -> Model | NodeFact | PodFact | Malformed | None:
    kind = str(raw.get("kind", ""))
    if kind == "Node":
        return project_node(raw, now.monotonic_seconds)
    if kind == "Pod":
        return project_pod(raw)
    return parse_object(_MODELS[kind], raw) if kind in _MODELS else None


def build_snapshot(objects: Objects, leadership: Leadership, *, mode_cap: Mode, paused: bool) -> Snapshot:
    """Put read objects into a Snapshot; agents, stores and routers are unknown in it."""
    return Snapshot(
        leadership=leadership,
        mode_cap=mode_cap,
        paused=paused,
        budgets=objects.named(TierBudget),
        pools=objects.keyed(KVPool),
        groups=objects.keyed(PDGroup),
        supernodes=objects.named(Supernode),
        kvnodes=objects.named(KVNode),
        slots=objects.keyed(EngineSlot),
        remaps=objects.keyed(Remap),
        nodes=objects.nodes,
        pods=objects.pods,
        unreadable=frozenset((found.kind, found.key) for found in objects.malformed),
    )
