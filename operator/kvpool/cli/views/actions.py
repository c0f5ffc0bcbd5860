"""The actions of a plan as sentences, each with the objects it is about."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvpool.api.kvnode import UnitSpec
from kvpool.cli.views.groups import places_of
from kvpool.model.decisions import (
    Action,
    BindSlot,
    CancelRemap,
    ClaimDevices,
    CreateKeeper,
    CreateKVNode,
    CreateSlot,
    DeleteKeeper,
    DeleteKVNode,
    DeleteRemap,
    DeleteSlot,
    ForgetSlot,
    OpenRemap,
    OwnSlot,
    Plan,
    Reason,
    ReleaseClaims,
    SetUnits,
    Withheld,
)
from kvpool.model.snapshot import Snapshot
from kvpool.plan.sizes import short_size


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that would be done. Status writes are none: they only say what is."""

    about: str
    """`Kind namespace/name` of the object that changes."""
    text: str
    why: str
    touches: tuple[str, ...] = ()
    """Other objects that it is about, named alike."""


def deeds(plan: Plan, snapshot: Snapshot) -> list[Deed]:
    """All actions of a plan that change something, in its order."""
    return [deed for action in plan.actions for deed in _deeds(action, snapshot)]


def _deeds(action: Action, snapshot: Snapshot) -> Iterator[Deed]:
    match action:
        case SetUnits():
            yield from _units(action, snapshot)
        case CreateKVNode() | DeleteKVNode():
            word = "create" if isinstance(action, CreateKVNode) else "delete"
            yield Deed(f"KVNode {action.node}", f"{word} the KVNode", action.reason.message)
        case CreateKeeper():
            unit, pool = action.keeper.unit, f"KVPool {action.keeper.pool}"
            text = f"start keeper pod {action.keeper.name} for {_unit_text(unit)}"
            yield Deed(f"KVNode {action.keeper.node}", text, action.reason.message, (pool,))
        case DeleteKeeper():
            yield Deed(f"Pod {action.pod}", "delete the keeper pod", action.reason.message)
        case _:
            yield from _moves(action)


def _moves(action: Action) -> Iterator[Deed]:
    """Slots, Remaps and claims."""
    match action:
        case CreateSlot():
            group = f"PDGroup {action.key.namespace}/{action.spec.pd_group}"
            yield Deed(f"EngineSlot {action.key}", "create the slot", action.reason.message, (group,))
        case OwnSlot():
            word = "let it go with" if action.group_uid else "let it outlive"
            yield Deed(f"EngineSlot {action.key}", f"{word} its group", action.reason.message)
        case DeleteSlot() | ForgetSlot():
            word = "delete" if isinstance(action, DeleteSlot) else "let go of"
            yield Deed(f"EngineSlot {action.key}", f"{word} the slot", action.reason.message)
        case OpenRemap():
            spec, slot = action.spec, f"EngineSlot {action.key.namespace}/{action.spec.slot}"
            way = f"from {' '.join(places_of(spec.from_)) or 'nowhere'} to {' '.join(places_of(spec.to))}"
            yield Deed(slot, f"open the {spec.kind} move {action.key.name} {way}", action.reason.message)
        case ClaimDevices():
            devices = ", ".join(claim.device for claim in action.claims)
            touched = tuple(sorted({f"EngineSlot {claim.slot}" for claim in action.claims}))
            text = f"claim {devices} for {action.remap.name}"
            yield Deed(
                f"KVNode {action.node}", text, action.reason.message, (*touched, f"Remap {action.remap}")
            )
        case BindSlot():
            text = f"bind it to {' '.join(places_of(action.spec.seats))} under epoch {action.spec.epoch}"
            yield Deed(f"EngineSlot {action.key}", text, action.reason.message, (f"Remap {action.remap}",))
        case ReleaseClaims():
            yield Deed(f"KVNode {action.node}", _release_text(action), action.reason.message)
        case CancelRemap():
            yield Deed(f"Remap {action.key}", "cancel the move", action.reason.message)
        case DeleteRemap():
            yield Deed(f"Remap {action.key}", "delete the record of the move", action.reason.message)
        case _:
            return


def _release_text(action: ReleaseClaims) -> str:
    parts = [f"release {', '.join(action.devices)}"] if action.devices else []
    if action.quarantine:
        parts.append(f"quarantine {', '.join(entry.device for entry in action.quarantine)}")
    if action.lift_quarantine:
        parts.append(f"lift the quarantine of {', '.join(action.lift_quarantine)}")
    return "; ".join(parts)


def _units(action: SetUnits, snapshot: Snapshot) -> Iterator[Deed]:
    """One deed for each unit that changes."""
    kvnode = snapshot.kvnodes.get(action.node)
    before = {unit.name: unit for unit in (kvnode.spec.units if kvnode is not None else ())}
    after = {unit.name: unit for unit in action.units}
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        text = _change_text(old, new)
        unit = new if new is not None else old
        if text is not None and unit is not None:
            yield Deed(f"KVNode {action.node}", text, action.reason.message, (f"KVPool {unit.pool}",))


def _change_text(old: UnitSpec | None, new: UnitSpec | None) -> str | None:
    if new is None or old == new:
        return f"forget unit {old.name}" if new is None and old is not None else None
    if old is None:
        return f"bind {_unit_text(new)}"
    if new.release not in (old.release, "None"):
        return f"give back {_unit_text(new)}"
    if new.size_bytes != old.size_bytes:
        return f"change unit {new.name} from {short_size(old.size_bytes)} to {short_size(new.size_bytes)}"
    return f"change unit {new.name} (generation {old.generation} to {new.generation})"


def _unit_text(unit: UnitSpec) -> str:
    where = f" on NUMA node {unit.numa_node}" if unit.numa_node >= 0 else ""
    return f"{short_size(unit.size_bytes)} of {unit.tier}{where} for {unit.pool}"


def reasons(plan: Plan) -> list[tuple[str, Reason]]:
    """Explanations of a plan, by the names that objects have elsewhere: `EngineSlot a/b`, not `slot a/b`."""
    spoken = {"slot": "EngineSlot", "group": "PDGroup"}
    found = []
    for what, reason in plan.explanations:
        kind, _, name = what.partition(" ")
        found.append((f"{spoken.get(kind, kind)} {name}".strip(), reason))
    return found


def withheld_name(withheld: Withheld) -> str:
    """`Kind namespace/name` of what was withheld from."""
    return f"{withheld.kind} {str(withheld.key).lstrip('/')}"


def weight_changes(plan: Plan, snapshot: Snapshot) -> Iterable[Deed]:
    """Weights that differ from what the slots' statuses ask for."""
    for weights in plan.weights:
        for member in weights.members:
            slot = snapshot.slots.get(member.slot)
            before = slot.status.weight_asked if slot is not None else 0
            if before != member.weight:
                text = f"change the weight from {before} to {member.weight}"
                about = f"EngineSlot {member.slot}"
                yield Deed(about, text, member.reason.message, (f"PDGroup {weights.group}",))
