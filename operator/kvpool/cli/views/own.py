"""Our own objects of one moment, by kind, in the order in which they are shown."""

from dataclasses import dataclass
from typing import TypeVar

from kvpool.api import EngineSlot, KVNode, KVPool, PDGroup, Remap, Supernode, TierBudget
from kvpool.world.build import Objects

PeoplesObject = TierBudget | KVPool | PDGroup | Supernode
OwnObject = PeoplesObject | KVNode | EngineSlot | Remap

M = TypeVar("M", bound=OwnObject)


@dataclass(frozen=True, slots=True)
class OwnObjects:
    """Objects by kind, each list by namespace and name."""

    budgets: tuple[TierBudget, ...]
    pools: tuple[KVPool, ...]
    groups: tuple[PDGroup, ...]
    supernodes: tuple[Supernode, ...]
    kvnodes: tuple[KVNode, ...]
    slots: tuple[EngineSlot, ...]
    remaps: tuple[Remap, ...]

    @property
    def peoples(self) -> tuple[PeoplesObject, ...]:
        """Those that people write."""
        return (*self.budgets, *self.pools, *self.groups, *self.supernodes)

    @property
    def all(self) -> tuple[OwnObject, ...]:
        """Every object, those that people write first."""
        return (*self.peoples, *self.kvnodes, *self.slots, *self.remaps)


def own_objects(objects: Objects, namespace: str | None) -> OwnObjects:
    """Sort what was read; namespaced kinds of one namespace only, or of all."""

    def of(model: type[M]) -> tuple[M, ...]:
        found = [item for item in objects.own if isinstance(item, model)]
        chosen = [item for item in found if namespace is None or item.metadata.namespace in ("", namespace)]
        return tuple(sorted(chosen, key=lambda item: (item.metadata.namespace, item.metadata.name)))

    return OwnObjects(
        of(TierBudget), of(KVPool), of(PDGroup), of(Supernode), of(KVNode), of(EngineSlot), of(Remap)
    )


def object_name(item: OwnObject) -> str:
    """`Kind namespace/name`, or `Kind name`."""
    return f"{item.kind} {path_of(item)}"


def path_of(item: OwnObject) -> str:
    """`namespace/name`, or the name alone."""
    meta = item.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
