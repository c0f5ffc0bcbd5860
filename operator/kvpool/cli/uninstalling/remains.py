"""What of an inventory is left, step by step in the order in which it goes. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kvpool.api import labels
from kvpool.cli.uninstalling.inventory import Inventory, label_managers
from kvpool.cluster.resources import Obj
from kvpool.plan.sizes import short_size

_PEOPLES: Final = ("PDGroup", "KVPool", "TierBudget", "Supernode")
_NOT_READY: Final = "its Node is not Ready"


class Step(StrEnum):
    """One step of the way; each begins when nothing of the one before is left."""

    HOLDINGS = "memory and seats"
    """Given back by the operator, with grace."""
    OBJECTS = "objects and outputs"
    """What people declared, and what router outputs wrote."""
    NODES = "what agents keep on hosts"
    AGENTS = "agents"
    OPERATORS = "operators"
    KEPT = "what operators keep"
    DEFINITIONS = "CustomResourceDefinitions"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing of ours that is there."""

    kind: str
    name: str
    why: str = ""
    """What it waits for, where that is known."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}{f' ({self.why})' if self.why else ''}"


@dataclass(frozen=True, slots=True)
class Left:
    """What did not go in time; nothing when all is gone."""

    items: tuple[Item, ...] = ()
    step: Step | None = None
    trouble: str = ""
    """What the API server last said, when it could not be asked."""


def left_of(step: Step, inventory: Inventory) -> tuple[Item, ...]:
    """Return what a step has still to do, by kind in the order in which it goes, and by name."""
    return tuple(_LEFT[step](inventory))


def release_of(inventory: Inventory) -> str:
    """The name of the Helm release, by the labels of its workloads; `kvpool` when they do not say."""
    names = {
        (workload["metadata"].get("labels") or {}).get("app.kubernetes.io/instance", "")
        for workload in inventory.workloads
    }
    return next(iter(sorted(name for name in names if name)), "kvpool")


def _holdings(inventory: Inventory) -> Iterator[Item]:
    ready = _readiness(inventory)
    for slot in _of_kind(inventory, "EngineSlot"):
        nodes = sorted({seat["node"] for seat in slot["spec"].get("seats") or ()})
        dark = [node for node in nodes if not ready.get(node)]
        why = f"{', '.join(dark)} does not say that its engine is out" if dark else ""
        yield Item("EngineSlot", _name(slot), why)
    for remap in _of_kind(inventory, "Remap"):
        yield Item("Remap", _name(remap))
    for kvnode in _of_kind(inventory, "KVNode"):
        node = kvnode["metadata"]["name"]
        why = "" if ready.get(node) else _NOT_READY
        for unit in kvnode["spec"].get("units") or ():
            size = short_size(int(unit["sizeBytes"]))
            yield Item("unit", f"{node}/{unit['name']}", f"{size} of {unit['tier']}{why and ', ' + why}")
        for claim in kvnode["spec"].get("claims") or ():
            yield Item("device claim", f"{node}/{claim['device']}", why)
    for pod in sorted(inventory.keepers, key=_name):
        node = str(pod["spec"].get("nodeName", ""))
        yield Item("keeper Pod", _name(pod), "" if not node or ready.get(node) else f"{node}: {_NOT_READY}")


def _objects(inventory: Inventory) -> Iterator[Item]:
    for kind in _PEOPLES:
        for thing in _of_kind(inventory, kind):
            yield Item(kind, _name(thing), _finalizers(thing))
    for thing in sorted(inventory.outputs, key=lambda one: (one["kind"], _name(one))):
        yield Item(thing["kind"], _name(thing), _finalizers(thing))
    for pod in sorted(inventory.labelled, key=_name):
        yield Item("label of Pod", _name(pod), ", ".join(label_managers(pod)))


def _nodes(inventory: Inventory) -> Iterator[Item]:
    ready = _readiness(inventory)
    retired = inventory.uninstall.retired if inventory.uninstall is not None else ()
    placed = {str(pod["spec"].get("nodeName", "")): pod for pod in inventory.agents}
    for node, pod in sorted(placed.items()):
        if node and node not in retired and pod.get("status", {}).get("phase") != "Pending":
            why = "it has not said that nothing is left" if ready.get(node) else _NOT_READY
            yield Item("agent's files on", node, why)
    for kvnode in _of_kind(inventory, "KVNode"):
        node = kvnode["metadata"]["name"]
        yield Item("KVNode", node, "" if node in placed else "no agent runs there")


def _kept(inventory: Inventory) -> Iterator[Item]:
    for thing in inventory.kept:
        yield Item(thing["kind"], _name(thing))


def _definitions(inventory: Inventory) -> Iterator[Item]:
    for definition in sorted(inventory.definitions, key=_name):
        yield Item("CustomResourceDefinition", definition["metadata"]["name"], _finalizers(definition))


def _pods(kind: str, pods: Iterable[Obj]) -> Iterator[Item]:
    for pod in sorted(pods, key=_name):
        yield Item(kind, _name(pod))


_LEFT: Final[Mapping[Step, Callable[[Inventory], Iterable[Item]]]] = {
    Step.HOLDINGS: _holdings,
    Step.OBJECTS: _objects,
    Step.NODES: _nodes,
    Step.AGENTS: lambda inventory: _pods("agent Pod", inventory.agents),
    Step.OPERATORS: lambda inventory: _pods("operator Pod", inventory.operators),
    Step.KEPT: _kept,
    Step.DEFINITIONS: _definitions,
}


def _of_kind(inventory: Inventory, kind: str) -> list[Obj]:
    return sorted((thing for thing in inventory.own if thing["kind"] == kind), key=_name)


def _name(thing: Mapping[str, Any]) -> str:
    metadata = thing["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _finalizers(thing: Obj) -> str:
    """Finalizers of others: none of ours is on these objects."""
    found = [name for name in thing["metadata"].get("finalizers") or () if name != labels.FENCE_FINALIZER]
    return f"finalizers {', '.join(found)}" if found else ""


def _readiness(inventory: Inventory) -> dict[str, bool]:
    """Node name to whether its kubelet says Ready; a Node that was deleted is in it not."""
    return {
        node["metadata"]["name"]: any(
            one["type"] == "Ready" and one["status"] == "True"
            for one in node.get("status", {}).get("conditions") or ()
        )
        for node in inventory.nodes
    }
