"""From admitted layouts to the units of each node: new ones, resized ones, re-made ones, given-back ones.

A unit that is resized or re-made loses its contents, so one node of a pool's tier is changed at a time and
the next one waits until it is bound again. New units come all at once.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from kvpool.api.kvnode import UnitPhase, UnitSpec
from kvpool.api.kvpool import ReclaimPolicy
from kvpool.model.decisions import Reason, SetUnits
from kvpool.model.ids import ObjectKey
from kvpool.plan.admission import Admission
from kvpool.plan.demand import Demand, TierDemand, belongs_to
from kvpool.plan.figures import UnitReading
from kvpool.plan.freshness import is_fresh_store
from kvpool.plan.grounds import Ground, Site
from kvpool.plan.keeper_names import generation_kept
from kvpool.plan.keepers import keepers_of, must_be_made_anew
from kvpool.plan.offers import Layout, unit_name
from kvpool.plan.scene import Scene
from kvpool.plan.sizes import short_size
from kvpool.plan.store_address import store_of

NODE_GONE_SECONDS: Final = 60.0
"""How long a node whose Node object was deleted must be silent before its units are forgotten."""

Changes = dict[tuple[str, str], tuple[UnitSpec | None, Reason]]
"""Node and unit name to the unit that is to be there (None: taken off), and why."""


def plan_units(scene: Scene, admissions: Mapping[str, Admission]) -> tuple[SetUnits, ...]:
    """Decide each node's units; `admissions` holds the pools that may act, by `namespace/name`."""
    changes: Changes = {}
    demands = {str(demand.key): demand for demand in scene.demands}
    for ground in scene.grounds.values():
        if ground.fact is None:
            forget_gone_node(scene, ground, changes)
            continue
        for unit in ground.units:
            demand = demands.get(unit.pool)
            mine = demand if demand is not None and belongs_to(unit, demand.pool) else None
            _keep_up(scene, ground, unit, mine, changes)
    for demand in demands.values():
        _follow_store(scene, demand, changes)
    for key, admission in admissions.items():
        for tier in demands[key].tiers:
            layout = admission.layouts.get(tier.tier)
            if layout is not None:
                _follow_layout(scene, demands[key], tier, layout, changes)
    return tuple(set_units(scene, changes))


def _keep_up(scene: Scene, ground: Ground, unit: UnitSpec, demand: Demand | None, changes: Changes) -> None:
    """Follow what became of one decided unit, and of its pool."""
    at = (ground.name, unit.name)
    if unit.release != "None":
        if is_given_back(ground, unit):
            changes[at] = (None, Reason("Released", f"unit {unit.name} was given back"))
        return
    if demand is None:
        _reclaim(scene, ground, unit, changes)
        return
    if not may_touch(scene, demand, ground.name, unit.tier):
        return
    kept = _renewed(scene, unit, demand)
    why = must_be_made_anew(scene, ground, unit)
    if why is not None:
        changes[at] = (_made_anew(scene, ground.name, unit, demand), why)
    elif kept != unit:
        changes[at] = (kept, Reason("PoolEdited", f"unit {unit.name} follows its pool's policies"))


def may_touch(scene: Scene, demand: Demand, node: str, tier: str) -> bool:
    """Tell whether both the pool and the budget that rules the node's tier may act."""
    ruling = scene.rulings.of(node, tier)
    return demand.standing.may_act and (ruling is None or ruling.standing.may_act)


def _renewed(scene: Scene, unit: UnitSpec, demand: Demand) -> UnitSpec:
    """The unit with what follows its pool without touching the memory; the rest waits for a generation."""
    return unit.model_copy(
        update={
            "store": unit.store or store_of(scene, demand),
            "pool_uid": demand.pool.metadata.uid,
            "reclaim_policy": demand.pool.spec.reclaim_policy,
        }
    )


def _made_anew(
    scene: Scene, node: str, unit: UnitSpec, demand: Demand, size_bytes: int | None = None
) -> UnitSpec:
    """The next generation of a unit, in its own or another size, with all that its pool says now."""
    tier = next((tier for tier in demand.tiers if tier.tier == unit.tier and tier.declared_bytes), None)
    return _renewed(scene, unit, demand).model_copy(
        update={
            "size_bytes": unit.size_bytes if size_bytes is None else size_bytes,
            "generation": _next_generation(scene, scene.grounds[node], unit),
            "store": store_of(scene, demand) or unit.store,
            "on_restart": tier.on_restart if tier is not None else unit.on_restart,
        }
    )


def is_given_back(ground: Ground, unit: UnitSpec) -> bool:
    """Whether a fresh report says that the unit's memory is free: released, lost, or unknown to the agent
    that works under the plan which asks for the release.
    """
    agent = ground.agent
    if agent is None:
        return False
    view = ground.view(unit)
    if view is None:
        asked = (unit.name, unit.generation) in agent.plan_releases
        return asked and 0 < agent.plan_revision <= agent.applied_revision
    return view.phase in (UnitPhase.RELEASED, UnitPhase.LOST)


def _reclaim(scene: Scene, ground: Ground, unit: UnitSpec, changes: Changes) -> None:
    """Give back a deleted pool's unit as its reclaim policy says; the pool's mode is gone with it.

    A pool that is there and cannot be read was not deleted: its units stay as they are.
    """
    if scene.snapshot.may_exist("KVPool", ObjectKey.of(unit.pool)):
        return
    ruling = scene.rulings.of(ground.name, unit.tier)
    if scene.cluster_hold is not None or (ruling is not None and not ruling.standing.may_act):
        return
    view = ground.view(unit)
    if view is not None and view.phase is UnitPhase.LOST:
        reason = Reason("UnitLost", f"unit {unit.name} was lost, and pool {unit.pool} is gone")
        changes[ground.name, unit.name] = (None, reason)
        return
    if unit.reclaim_policy is ReclaimPolicy.RETAIN:
        why = must_be_made_anew(scene, ground, unit)
        if why is not None:
            update = {"generation": _next_generation(scene, ground, unit)}
            changes[ground.name, unit.name] = (unit.model_copy(update=update), why)
        return
    release = "Drain" if unit.reclaim_policy is ReclaimPolicy.DRAIN else "Now"
    changes[ground.name, unit.name] = (
        unit.model_copy(update={"release": release}),
        Reason(
            "PoolDeleted",
            f"pool {unit.pool} is gone, its reclaimPolicy {unit.reclaim_policy.value} gives "
            f"{short_size(unit.size_bytes)} of {unit.tier} back",
        ),
    )


def _follow_layout(scene: Scene, demand: Demand, tier: TierDemand, layout: Layout, changes: Changes) -> None:
    held = {(holding.node, holding.unit.numa_node): holding.unit for holding in tier.held}
    resized: dict[str, list[tuple[UnitSpec, int]]] = {}
    for site, size in sorted(layout.items(), key=lambda entry: (entry[0].node, entry[0].numa_node)):
        unit = held.get((site.node, site.numa_node))
        if unit is None:
            if size:
                made = _new_unit(scene, demand, tier, site, size)
                changes[site.node, made.name] = (made, _made_reason(made))
        elif unit.size_bytes != size and may_touch(scene, demand, site.node, tier.tier):
            resized.setdefault(site.node, []).append((unit, size))
    if resized and not unsettled(scene, demand, tier):
        node = min(resized)
        for unit, size in resized[node]:
            changes[node, unit.name] = _resized(scene, demand, node, unit, size)


def _follow_store(scene: Scene, demand: Demand, changes: Changes) -> None:
    """Make units anew, one node at a time, whose store answers at another address than they joined."""
    store = store_of(scene, demand)
    if store is None or not is_fresh_store(scene.snapshot.stores.get(demand.key), scene.now):
        return
    moved = [
        holding
        for tier in demand.tiers
        for holding in tier.held
        if holding.unit.store not in (None, store) and may_touch(scene, demand, holding.node, tier.tier)
    ]
    if not moved or any(unsettled(scene, demand, tier) for tier in demand.tiers):
        return
    node = min(holding.node for holding in moved)
    for holding in moved:
        if holding.node == node:
            reason = Reason("StoreMoved", f"unit {holding.unit.name} joins the store at {store.master}")
            changes[node, holding.unit.name] = (_made_anew(scene, node, holding.unit, demand), reason)


def unsettled(scene: Scene, demand: Demand, tier: TierDemand) -> tuple[UnitReading, ...]:
    """Return units of the tier, on nodes that report, that are not bound as decided."""
    return tuple(
        reading
        for reading in scene.readings.of_pool(demand.key)
        if reading.unit.tier == tier.tier and not reading.stale and not reading.is_bound
    )


def _new_unit(scene: Scene, demand: Demand, tier: TierDemand, site: Site, size: int) -> UnitSpec:
    unit = UnitSpec(
        name=unit_name(demand, tier.tier, site.numa_node),
        pool=str(demand.key),
        pool_uid=demand.pool.metadata.uid,
        tier=tier.tier,
        size_bytes=size,
        numa_node=site.numa_node,
        backend=site.backend,
        path=site.path,
        on_restart=tier.on_restart,
        reclaim_policy=demand.pool.spec.reclaim_policy,
        reserve_bytes=site.reserve_bytes,
        store=store_of(scene, demand),
    )
    generation = 1 + _newest_known(scene, scene.grounds[site.node], unit)
    return unit.model_copy(update={"generation": generation})


def _made_reason(unit: UnitSpec) -> Reason:
    return Reason("Admitted", f"unit {unit.name} of {short_size(unit.size_bytes)} for pool {unit.pool}")


def _resized(
    scene: Scene, demand: Demand, node: str, unit: UnitSpec, size: int
) -> tuple[UnitSpec | None, Reason]:
    """A unit made anew in another size; size 0 gives it back with grace."""
    before = short_size(unit.size_bytes)
    if size == 0:
        reason = Reason("Shrunk", f"unit {unit.name} of {before} is no longer wanted")
        return _renewed(scene, unit, demand).model_copy(update={"release": "Drain"}), reason
    reason = Reason("Resized", f"unit {unit.name} goes from {before} to {short_size(size)}")
    return _made_anew(scene, node, unit, demand, size), reason


def _next_generation(scene: Scene, ground: Ground, unit: UnitSpec) -> int:
    return 1 + max(unit.generation, _newest_known(scene, ground, unit))


def _newest_known(scene: Scene, ground: Ground, unit: UnitSpec) -> int:
    """The highest generation of the unit that is reported or kept by a pod; 0 for none."""
    reported = [view.generation for view in ground.views(unit.name)]
    return max([0, *reported, *(generation_kept(pod) for pod in keepers_of(scene, ground.name, unit))])


def forget_gone_node(scene: Scene, ground: Ground, changes: Changes) -> None:
    """Take units off a node whose Node object was deleted, once its agent has been silent for long."""
    if scene.snapshot.may_exist("Node", ObjectKey("", ground.name)):
        return
    agent = scene.snapshot.agents.get(ground.name)
    leadership = scene.snapshot.leadership
    heard = max(leadership.since, leadership.api_back_since, agent.reported_at if agent else 0.0)
    held = scene.snapshot.paused if scene.snapshot.uninstall is not None else scene.cluster_hold is not None
    if held or scene.now.monotonic_seconds - heard < NODE_GONE_SECONDS:
        return
    for unit in ground.units:
        reason = Reason("NodeGone", f"Node {ground.name} was deleted and its agent has been silent for long")
        changes[ground.name, unit.name] = (None, reason)


def set_units(scene: Scene, changes: Changes) -> Iterator[SetUnits]:
    """Put the changes of each node into one write."""
    for node in sorted({node for node, _ in changes}):
        ground = scene.grounds[node]
        if ground.kvnode is None:
            continue
        units = {unit.name: unit for unit in ground.units}
        reasons = []
        for (_, name), (unit, reason) in sorted(item for item in changes.items() if item[0][0] == node):
            reasons.append(reason)
            if unit is None:
                units.pop(name, None)
            else:
                units[name] = unit
        decided = tuple(units[name] for name in sorted(units))
        text = "; ".join(reason.message for reason in reasons)
        yield SetUnits(node, ground.kvnode.metadata.resource_version, decided, Reason(reasons[0].code, text))
