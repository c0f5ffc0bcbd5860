"""The capacity step: supply, demand and reports in, units, keepers and statuses out."""

from kvpool.model.decisions import Plan
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.admission import Admission, admit
from kvpool.plan.keepers import plan_keepers
from kvpool.plan.room import measure
from kvpool.plan.scene import Scene, set_scene
from kvpool.plan.units import plan_units


def capacity_plan(snapshot: Snapshot, now: Instant) -> Plan:
    """Decide units, keepers, KVNodes and the statuses of budgets, pools and KVNodes at one moment."""
    scene = set_scene(snapshot, now)
    admissions = _admissions(scene)
    units = plan_units(scene, admissions)
    keepers = plan_keepers(scene, frozenset(change.node for change in units))
    return Plan(actions=(*units, *keepers))


def _admissions(scene: Scene) -> dict[str, Admission]:
    """Answer the pools that may act, oldest first; each takes its room before the next is asked."""
    room = measure(scene.snapshot, scene.grounds, scene.rulings)
    return {
        str(demand.key): admit(demand, scene, room, acting=True)
        for demand in scene.demands
        if demand.standing.may_act
    }
