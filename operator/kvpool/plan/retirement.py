"""What an uninstall gives back: all units with grace, all keepers, then the nodes, as far as agents confirm.

It is asked for the whole cluster by one word of a person, so modes hold nothing of it; a pause does.
"""

from collections.abc import Iterable, Iterator

from kvpool.api.kvnode import KVNode, UnitPhase
from kvpool.model.decisions import DeleteKeeper, DeleteKVNode, Reason, SetUnits, TellRetired
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Snapshot
from kvpool.plan.keeper_names import is_keeper, keeper_node
from kvpool.plan.keepers import unwanted_keepers
from kvpool.plan.modes import is_retiring
from kvpool.plan.scene import Scene
from kvpool.plan.units import Changes, forget_gone_node, is_given_back, set_units


def retire_units(scene: Scene) -> tuple[SetUnits, ...]:
    """Ask for every unit back with grace, whatever its pool says, and take off what is free."""
    changes: Changes = {}
    for ground in scene.grounds.values():
        if ground.fact is None:
            forget_gone_node(scene, ground, changes)
            continue
        for unit in ground.units:
            at, view = (ground.name, unit.name), ground.view(unit)
            if view is not None and view.phase is UnitPhase.LOST:
                changes[at] = (None, Reason("UnitLost", f"unit {unit.name} was lost: nothing of it is left"))
            elif unit.release == "None":
                asked = unit.model_copy(update={"release": "Drain"})
                changes[at] = (asked, Reason("Uninstalling", f"unit {unit.name} is to be given back"))
            elif is_given_back(ground, unit):
                changes[at] = (None, Reason("Released", f"unit {unit.name} was given back"))
    return tuple(set_units(scene, changes))


def retire_keepers(scene: Scene, changing: frozenset[str]) -> tuple[DeleteKeeper, ...]:
    """Delete the keepers that keep no decided unit; also of nodes that have no KVNode any more."""
    found: list[DeleteKeeper] = []
    for node, pods in sorted(scene.keepers.items()):
        ground = scene.grounds.get(node)
        units = ground.units if ground is not None else ()
        if node not in changing and not scene.snapshot.may_exist("KVNode", ObjectKey("", node)):
            found += unwanted_keepers(node, units, pods)
    return tuple(found)


def retire_kvnodes(snapshot: Snapshot) -> tuple[DeleteKVNode, ...]:
    """Delete the KVNodes of nodes that hold nothing and keep nothing; a silent node may keep something."""
    return tuple(
        DeleteKVNode(name, kvnode.metadata.uid, kvnode.metadata.resource_version, reason)
        for name, kvnode in sorted(snapshot.kvnodes.items())
        if kvnode.metadata.deletion_timestamp is None
        and not holds_anything(kvnode)
        and (reason := _why_over(snapshot, kvnode)) is not None
    )


def _why_over(snapshot: Snapshot, kvnode: KVNode) -> Reason | None:
    """Say why nothing of ours is left on the node; None while something may be."""
    name = kvnode.metadata.name
    agent = snapshot.agents.get(name)
    if agent is not None and agent.retired:
        return Reason("Retired", f"the agent of {name} keeps nothing on its host any more")
    if name not in snapshot.nodes and not snapshot.may_exist("Node", ObjectKey("", name)):
        return Reason("NodeGone", f"Node {name} was deleted")
    if agent is None and kvnode.status.last_report is None:
        return Reason("NoAgent", f"no agent of {name} was ever heard of")
    return None


def tell_retired(snapshot: Snapshot) -> Iterator[TellRetired]:
    """Put on record which agents keep nothing any more, when that has changed."""
    uninstall = snapshot.uninstall
    if uninstall is None:
        return
    retired = tuple(sorted(name for name, agent in snapshot.agents.items() if agent.retired))
    if retired != uninstall.retired:
        yield TellRetired(uninstall.namespace, uninstall.resource_version, retired)


def holds_anything(kvnode: KVNode) -> bool:
    """Whether units are decided for the node or devices of it claimed."""
    return bool(kvnode.spec.units or kvnode.spec.claims)


def retiring_nodes(snapshot: Snapshot, seated: Iterable[str]) -> frozenset[str]:
    """Return the nodes whose agent is to remove what it keeps; `seated` are those with seats in their plan.

    Agents of nodes that no budget and no Supernode ever matched keep something on their hosts too. A keeper's
    Pod that is not gone holds an agent back: kubelet makes the units' folder anew for it when it restarts.
    """
    if not is_retiring(snapshot):
        return frozenset()
    kvnodes = snapshot.kvnodes
    held = {name for name, kvnode in kvnodes.items() if holds_anything(kvnode)}
    kept = {keeper_node(pod) for pod in snapshot.pods.values() if is_keeper(pod)}
    unread = {name for name in snapshot.agents if snapshot.may_exist("KVNode", ObjectKey("", name))}
    return frozenset({*kvnodes, *snapshot.agents} - held - kept - unread - set(seated))
