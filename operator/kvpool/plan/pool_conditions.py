"""What is true of a pool: admitted, bound, withheld, and what is wrong with its units and its store."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.api.common import Mode
from kvpool.api.conditions import ConditionType, Verdict
from kvpool.api.tierbudget import TierFigures
from kvpool.model.decisions import Reason
from kvpool.plan.admission import Admission
from kvpool.plan.demand import Demand
from kvpool.plan.figures import UnitReading, total_used
from kvpool.plan.freshness import observer_suspect
from kvpool.plan.keeper_names import keeper_bytes
from kvpool.plan.pool_figures import broken_order
from kvpool.plan.scene import Scene
from kvpool.plan.sizes import listed, short_size
from kvpool.plan.store_findings import contents_lost, store_reachable
from kvpool.plan.unit_findings import not_applied, numa_skew, placement_drift


@dataclass(frozen=True, slots=True)
class PoolAnswer:
    """What was decided about a pool, and what was not done."""

    demand: Demand
    admission: Admission | None
    """None when the pool may not act."""
    withheld: tuple[str, Reason] | None
    """What would be done, and what holds it back."""


@dataclass(frozen=True, slots=True)
class PoolVerdicts:
    """A pool's conditions, and when they change by time alone (monotonic seconds)."""

    verdicts: tuple[Verdict, ...]
    looks: tuple[float, ...]


def pool_verdicts(scene: Scene, answer: PoolAnswer, tiers: Sequence[TierFigures]) -> PoolVerdicts:
    """Judge everything about one pool."""
    demand, now = answer.demand, scene.now
    old = demand.pool.status.conditions
    readings = scene.readings.of_pool(demand.key)
    store = scene.snapshot.stores.get(demand.key)
    lag, lag_look = not_applied(readings, old, now)
    lost, lost_look = contents_lost(store, readings, now)
    reachable = store_reachable(demand.pool, store, scene.readings.foreign_in(demand.key), now)
    suspect = observer_suspect(scene.snapshot.agents, now)
    admitted = _unplaced(scene, demand, readings) or _admitted(answer)
    bound = _bound(demand, readings)
    found = [
        _withheld(answer),
        admitted,
        bound,
        reachable,
        lost,
        lag,
        numa_skew(readings),
        placement_drift(readings),
        Verdict(ConditionType.OBSERVER_SUSPECT, True, suspect.code, suspect.message) if suspect else None,
        _paused(answer),
    ]
    verdicts = [verdict for verdict in found if verdict is not None]
    verdicts.append(_ready(answer, readings, tiers, [admitted, reachable, bound]))
    again = answer.admission.decided_again_at if answer.admission is not None else None
    looks = tuple(look for look in (lag_look, lost_look, again) if look is not None)
    return PoolVerdicts(tuple(verdicts), looks)


def _admitted(answer: PoolAnswer) -> Verdict | None:
    demand, admission = answer.demand, answer.admission
    if not demand.tiers:
        return None
    if admission is not None:
        return Verdict(
            ConditionType.ADMITTED, admission.verdict, admission.reason.code, admission.reason.message
        )
    if demand.refused is not None:
        return Verdict(ConditionType.ADMITTED, False, demand.refused.code, demand.refused.message)
    hold = demand.standing.hold or Reason("NotAsked", "")
    held = sum(tier.held_bytes for tier in demand.tiers)
    asked = ", ".join(f"{short_size(tier.declared_bytes)} of {tier.tier}" for tier in demand.tiers)
    return Verdict(
        ConditionType.ADMITTED, None, hold.code, f"{asked} asked, {short_size(held)} admitted: {hold.message}"
    )


def _unplaced(scene: Scene, demand: Demand, readings: Sequence[UnitReading]) -> Verdict | None:
    """Units that were given room which somebody else took before their keepers got there."""
    waiting = [reading for reading in readings if reading.unplaced]
    if not waiting:
        return None
    admitted = sum(reading.admitted_bytes for reading in readings)
    asked = sum(tier.declared_bytes for tier in demand.tiers)
    first = waiting[0]
    keeper = keeper_bytes(first.unit.backend, first.unit.size_bytes)
    fact = scene.grounds[first.node].fact
    has = short_size(fact.allocatable_memory_bytes) if fact is not None else "an unknown size"
    text = (
        f"{short_size(admitted)} of {short_size(asked)} has a place; keepers without one: {len(waiting)}, "
        f"the first on {first.node}, of {has} allocatable memory: it asks for {short_size(keeper)}, "
        f"and the scheduler says: {first.unplaced}"
    )
    return Verdict(ConditionType.ADMITTED, False, "KeeperUnschedulable", text)


def _bound(demand: Demand, readings: Sequence[UnitReading]) -> Verdict | None:
    if not demand.tiers:
        return None
    stale = {reading.node for reading in readings if reading.stale}
    parts = []
    complete = True
    for tier in demand.tiers:
        bound = sum(reading.bound_bytes for reading in readings if reading.unit.tier == tier.tier)
        complete &= bound >= tier.wanted_bytes
        words = f"{short_size(bound)} of {short_size(tier.declared_bytes)}"
        parts.append(words if len(demand.tiers) == 1 else f"{tier.tier} {words}")
    text = ", ".join(parts)
    if stale:
        text += f"; unknown on {listed(stale)}"
        return Verdict(ConditionType.BOUND, None, "ReportsTooOld", text)
    if complete and all(reading.is_bound for reading in readings):
        return Verdict(ConditionType.BOUND, True, "AllBound", text)
    return Verdict(ConditionType.BOUND, False, "Binding" if readings else "NothingBound", text)


def _withheld(answer: PoolAnswer) -> Verdict:
    kind = ConditionType.ACTION_WITHHELD
    if answer.withheld is not None:
        action, reason = answer.withheld
        return Verdict(kind, True, reason.code, f"{reason.message}; {action}" if action else reason.message)
    if answer.demand.standing.mode is Mode.OBSERVE:
        return Verdict(kind, False, "ModeObserve", "the pool asks for no action: mode Observe looks only")
    return Verdict(kind, False, "NothingWithheld", "everything decided is done")


def _paused(answer: PoolAnswer) -> Verdict | None:
    standing = answer.demand.standing
    if not standing.paused:
        return None
    hold = standing.hold or Reason("Paused", "")
    return Verdict(ConditionType.PAUSED, True, hold.code, hold.message)


def _ready(
    answer: PoolAnswer,
    readings: Sequence[UnitReading],
    tiers: Sequence[TierFigures],
    deciding: Sequence[Verdict | None],
) -> Verdict:
    """Ready when everything asked for is there; its message is the use, for the column `Used`."""
    used, silent = total_used(readings)
    bound = sum(reading.bound_bytes for reading in readings)
    text = f"{short_size(used)} of {short_size(bound)}"
    if silent and answer.demand.pool.spec.store.mooncake is not None:
        text += f"; {silent} units do not say"
    broken = broken_order(tiers)
    if broken is not None:
        return Verdict(ConditionType.READY, False, "FiguresDisagree", f"{text}; {broken}")
    acts = answer.admission is not None
    for verdict in deciding:
        looked_at = acts or (verdict is not None and verdict.type is ConditionType.STORE_REACHABLE)
        if verdict is not None and verdict.status is not True and looked_at:
            return Verdict(ConditionType.READY, verdict.status, verdict.reason, f"{text}; {verdict.message}")
    if acts:
        return Verdict(ConditionType.READY, True, "Ready", text)
    return Verdict(ConditionType.READY, True, answer.demand.standing.mode.value, text)
