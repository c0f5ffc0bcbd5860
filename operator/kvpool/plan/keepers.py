"""Which keeper pods are to be made, which are to go, and when a unit needs a new generation.

One keeper holds one generation of one unit. A new one is made only when no other keeper of the unit is left
on the node: the memory of both would not fit.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Final

from kvpool.api.kvnode import UnitPhase, UnitSpec
from kvpool.api.kvpool import ReclaimPolicy
from kvpool.api.tierbudget import Backend
from kvpool.model.decisions import CreateKeeper, DeleteKeeper, KeeperSpec, Reason
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import PodFact
from kvpool.plan.demand import Demand, belongs_to
from kvpool.plan.grounds import MAINTENANCE, Ground
from kvpool.plan.keeper_names import (
    ENDED,
    generation_kept,
    keeper_bytes,
    keeper_name,
    keeps,
)
from kvpool.plan.scene import Scene

RETRY_SECONDS: Final = 30.0
"""The least time between two keepers of one unit, so that a node that evicts them is not flooded."""


def keepers_of(scene: Scene, node: str, unit: UnitSpec) -> tuple[PodFact, ...]:
    """Return the keeper pods of any generation of a unit on a node, in name order."""
    return tuple(pod for pod in scene.keepers.get(node, ()) if keeps(pod, unit, node))


def must_be_made_anew(scene: Scene, ground: Ground, unit: UnitSpec) -> Reason | None:
    """Say why a unit needs a new generation; silence is never a reason."""
    view = ground.view(unit)
    if view is None or view.generation != unit.generation:
        return None
    if view.phase is UnitPhase.LOST:
        return Reason("UnitLost", f"unit {unit.name} was lost ({view.message or 'its node booted anew'})")
    pods = keepers_of(scene, ground.name, unit)
    if unit.backend is Backend.TMPFS and not pods and view.resident_bytes:
        # Its pages are charged to nobody now, and the store has forgotten what was in them.
        return Reason("KeeperGone", f"the keeper of unit {unit.name} is gone, and what it held is lost")
    dead = [pod for pod in pods if generation_kept(pod) == unit.generation and pod.phase in ENDED]
    if dead and view.phase is not UnitPhase.BOUND and _age_seconds(dead[0], scene) >= RETRY_SECONDS:
        return Reason("KeeperDied", f"keeper {dead[0].key} of unit {unit.name} ended ({dead[0].phase})")
    return None


def _age_seconds(pod: PodFact, scene: Scene) -> float:
    """Since a pod was made; endless when that is unknown."""
    if not pod.created_at:
        return math.inf
    return scene.now.monotonic_seconds - scene.now.monotonic_of(pod.created_at)


def plan_keepers(scene: Scene, changing: frozenset[str]) -> tuple[CreateKeeper | DeleteKeeper, ...]:
    """Decide keepers of every node whose units are not being changed in this very step."""
    if scene.cluster_hold is not None:
        return ()
    demands = {str(demand.key): demand for demand in scene.demands}
    actions: list[CreateKeeper | DeleteKeeper] = []
    for ground in scene.grounds.values():
        if ground.kvnode is None or ground.name in changing:
            continue
        pods = scene.keepers.get(ground.name, ())
        actions += unwanted_keepers(ground.name, ground.units, pods)
        for unit in ground.units:
            demand = demands.get(unit.pool)
            mine = [pod for pod in pods if keeps(pod, unit, ground.name)]
            if _is_wanted(scene, ground, unit, demand, mine):
                actions.append(_create(ground.name, unit))
    return tuple(actions)


def unwanted_keepers(
    node: str, units: tuple[UnitSpec, ...], pods: Iterable[PodFact]
) -> Iterator[DeleteKeeper]:
    """Keepers whose unit left the node's units, or went on to a newer generation."""
    for pod in pods:
        unit = next((unit for unit in units if keeps(pod, unit, node)), None)
        if pod.deleting:
            continue
        if unit is None:
            text = f"{pod.key} keeps no unit of {node}"
            yield DeleteKeeper(pod.key, pod.uid, Reason("UnitGone", text))
        elif generation_kept(pod) < unit.generation:
            text = f"{pod.key} keeps an older generation than {unit.generation} of unit {unit.name}"
            yield DeleteKeeper(pod.key, pod.uid, Reason("Superseded", text))


def _is_wanted(
    scene: Scene, ground: Ground, unit: UnitSpec, demand: Demand | None, pods: Iterable[PodFact]
) -> bool:
    """Whether a unit without any keeper is to get one, as one that outlives its pool is."""
    ruling = scene.rulings.of(ground.name, unit.tier)
    if ruling is not None and not ruling.standing.may_act:
        return False
    if unit.release != "None" or any(pods):
        return False
    if demand is None or not belongs_to(unit, demand.pool):
        if unit.reclaim_policy is not ReclaimPolicy.RETAIN:
            return False
    elif not demand.standing.may_act:
        return False
    if ground.agent is None or ground.fact is None or not ground.fact.ready:
        return False
    if ground.blocked is not None and ground.blocked.code == MAINTENANCE:
        return False  # people drained it: what a new keeper would hold is about to go with the node
    view = ground.view(unit)
    held_already = view is not None and view.generation == unit.generation and view.phase is UnitPhase.BOUND
    return not held_already


def _create(node: str, unit: UnitSpec) -> CreateKeeper:
    return CreateKeeper(
        KeeperSpec(
            name=keeper_name(unit, node),
            node=node,
            pool=ObjectKey.of(unit.pool),
            pool_uid=unit.pool_uid,
            unit=unit,
            memory_bytes=keeper_bytes(unit.backend, unit.size_bytes),
        ),
        Reason("UnitDecided", f"unit {unit.name} generation {unit.generation} on {node} has no keeper"),
    )
