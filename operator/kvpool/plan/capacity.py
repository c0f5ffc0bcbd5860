"""The capacity step: supply, demand and reports in; units, keepers, KVNodes and statuses out."""

from collections.abc import Iterator, Mapping

from kvpool.api.common import Mode
from kvpool.model.decisions import (
    Action,
    Announce,
    CreateKeeper,
    CreateKVNode,
    DeleteKeeper,
    DeleteKVNode,
    Plan,
    Reason,
    SetUnits,
    Withheld,
    WriteStatus,
)
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.admission import Admission, admit
from kvpool.plan.budget_status import budget_status
from kvpool.plan.demand import Demand
from kvpool.plan.freshness import stale_moments
from kvpool.plan.keepers import plan_keepers
from kvpool.plan.kvnodes import kvnode_statuses, plan_kvnodes
from kvpool.plan.losses import announce_losses
from kvpool.plan.modes import is_retiring
from kvpool.plan.pool_conditions import PoolAnswer
from kvpool.plan.pool_status import pool_status
from kvpool.plan.retirement import retire_keepers, retire_kvnodes, retire_units, tell_retired
from kvpool.plan.room import Room, measure
from kvpool.plan.scene import Scene, set_scene
from kvpool.plan.sizes import short_size
from kvpool.plan.status_rate import due_at
from kvpool.plan.transitions import announce
from kvpool.plan.units import plan_units


def capacity_plan(snapshot: Snapshot, now: Instant) -> Plan:
    """Decide units, keepers, KVNodes and the statuses of budgets, pools and KVNodes at one moment.

    Decisions are made on what the snapshot's objects say was decided before: an action that was not carried
    out is decided again by the next call.
    """
    scene = set_scene(snapshot, now)
    room = measure(snapshot, scene.grounds, scene.rulings)
    admissions = _admissions(scene, room)
    answers = tuple(_answer(scene, demand, admissions, room) for demand in scene.demands)
    deciding = _retire(scene) if is_retiring(snapshot) else _decide(scene, admissions)
    statuses = _Statuses(scene)
    statuses.add_pools(answers)
    statuses.add_budgets()
    statuses.add_kvnodes()
    actions: tuple[Action, ...] = (*deciding, *statuses.writes, *tell_retired(snapshot))
    return Plan(
        actions=actions,
        withheld=tuple(_withheld(answers)),
        events=(*announce_losses(scene, actions), *statuses.events),
        requeue_at=_next_look(scene, statuses.looks),
        explanations=(*_explain_pools(answers), *_explain_actions(actions), *statuses.explanations),
    )


def _decide(scene: Scene, admissions: Mapping[str, Admission]) -> tuple[Action, ...]:
    """KVNodes, units and keepers as budgets and pools want them."""
    units = plan_units(scene, admissions)
    keepers = plan_keepers(scene, frozenset(change.node for change in units))
    return (*plan_kvnodes(scene.snapshot), *units, *keepers)


def _retire(scene: Scene) -> tuple[Action, ...]:
    """The same when kvpool is being uninstalled: all of them go."""
    units = retire_units(scene)
    keepers = retire_keepers(scene, frozenset(change.node for change in units))
    return (*retire_kvnodes(scene.snapshot), *units, *keepers)


def _admissions(scene: Scene, room: Room) -> dict[str, Admission]:
    """Answer the pools that may act, oldest first; each takes its room before the next is asked."""
    return {
        str(demand.key): admit(demand, scene, room, acting=True)
        for demand in scene.demands
        if demand.standing.may_act
    }


def _answer(scene: Scene, demand: Demand, admissions: Mapping[str, Admission], room: Room) -> PoolAnswer:
    """Put an admission and what was withheld together; what would be done is tried on a copy of the room."""
    admission = admissions.get(str(demand.key))
    hold = demand.standing.hold
    if admission is not None:
        hold = admission.budget_hold
    if hold is None or not demand.standing.advises:
        return PoolAnswer(demand, admission, None)
    would = admit(demand, scene, room.copy(), acting=False)
    text = _would_text(would)
    if text is None and hold.code == "ModeRecommend":
        return PoolAnswer(demand, admission, None)
    return PoolAnswer(demand, admission, (text or "nothing is to be done", hold))


def _would_text(would: Admission) -> str | None:
    """Say what would be done; None when nothing would."""
    if would.verdict is not True:
        return f"nothing would be admitted: {would.reason.message}"
    parts = []
    for tier, layout in sorted(would.layouts.items()):
        nodes = {site.node for site, size in layout.items() if size}
        parts.append(f"{short_size(sum(layout.values()))} of {tier} on {len(nodes)} nodes")
    return f"would bind {', '.join(parts)}" if parts else None


class _Statuses:
    """Collects the status writes that are due, their events, and when to look again."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.writes: list[WriteStatus] = []
        self.events: list[Announce] = []
        self.looks: list[float] = []
        self.explanations: list[tuple[str, Reason]] = []

    def add_pools(self, answers: tuple[PoolAnswer, ...]) -> None:
        """Every living pool's status."""
        for answer in answers:
            status, looks = pool_status(self._scene, answer)
            pool = answer.demand.pool
            self.looks += looks
            if self._is_due(due_at(pool.status, status, self._scene.now)):
                key = answer.demand.key
                self.writes.append(WriteStatus("KVPool", key, status))
                self.events += announce("KVPool", key, pool.status.conditions, status.conditions)

    def add_budgets(self) -> None:
        """Every budget's status."""
        for name, budget in sorted(self._scene.snapshot.budgets.items()):
            status, looks = budget_status(self._scene, budget)
            self.looks += looks
            if self._is_due(due_at(budget.status, status, self._scene.now)):
                key = ObjectKey("", name)
                self.writes.append(WriteStatus("TierBudget", key, status))
                self.events += announce("TierBudget", key, budget.status.conditions, status.conditions)

    def add_kvnodes(self) -> None:
        """Every KVNode's status."""
        for found in kvnode_statuses(self._scene.snapshot, self._scene.now):
            self.looks.append(found.look_again_at)
            if found.write is not None:
                self.writes.append(found.write)
            if found.unreadable is not None:
                self.explanations.append((f"KVNode {found.node}", found.unreadable))

    def _is_due(self, due: float | None) -> bool:
        if due is None:
            return False
        if due <= self._scene.now.monotonic_seconds:
            return True
        self.looks.append(due)
        return False


def _next_look(scene: Scene, looks: list[float]) -> float | None:
    now = scene.now.monotonic_seconds
    moments = [*looks, *stale_moments(scene.snapshot.agents.values(), scene.now)]
    return min((moment for moment in moments if moment > now), default=None)


def _withheld(answers: tuple[PoolAnswer, ...]) -> Iterator[Withheld]:
    for answer in answers:
        if answer.withheld is not None:
            action, reason = answer.withheld
            yield Withheld("KVPool", answer.demand.key, action, reason)


def _explain_pools(answers: tuple[PoolAnswer, ...]) -> Iterator[tuple[str, Reason]]:
    """Why each pool got what it got, also when nothing changes."""
    for answer in answers:
        what = f"KVPool {answer.demand.key}"
        if answer.admission is not None:
            yield what, answer.admission.reason
        if answer.withheld is not None:
            yield what, answer.withheld[1]
        elif answer.admission is None and answer.demand.standing.asked is Mode.OBSERVE:
            yield what, Reason("ModeObserve", "mode Observe looks only")


def _explain_actions(actions: tuple[Action, ...]) -> Iterator[tuple[str, Reason]]:
    """Why each node's units and keepers change."""
    for action in actions:
        match action:
            case SetUnits() | CreateKVNode() | DeleteKVNode():
                yield f"KVNode {action.node}", action.reason
            case CreateKeeper():
                yield f"KVNode {action.keeper.node}", action.reason
            case DeleteKeeper():
                yield f"Pod {action.pod}", action.reason
            case _:
                continue
