"""The failover step: every slot's next deciding write, from nothing but one snapshot.

Binding a slot for the first time, moving it off a dead device and emptying a device are one operation with
one code path: Remap opened, devices claimed, old holder fenced, slot bound, serving. Each plan holds at most
one deciding write for each slot; a plan made after it, by this leader or the next, decides the next one.
"""

from kvpool.api.engineslot import EngineSlot
from kvpool.api.pdgroup import PDGroup, RoleSpec
from kvpool.api.remap import Remap, RemapKind, RemapPhase
from kvpool.model.decisions import CancelRemap, Plan, Reason, WriteRemapStatus
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.advance import advance
from kvpool.plan.draft import Draft
from kvpool.plan.engines import role_spec
from kvpool.plan.history import forget_old_moves
from kvpool.plan.instances import (
    create_slots,
    delete_unwanted,
    follow_on_delete,
    forget_deleted,
    group_of,
    is_given_up,
    is_wanted,
)
from kvpool.plan.moves import is_open, slot_of
from kvpool.plan.needs import Need, need_of
from kvpool.plan.opening import open_move
from kvpool.plan.settling import settle
from kvpool.plan.slot_status import write_slot_status
from kvpool.plan.validity import why_not_valid
from kvpool.plan.weights import route
from kvpool.rules.epochs import operator_epochs_in

MOST_FIRST_PLACES = 16
"""Slots that one plan finds a first place for: each search looks at every device."""

_URGENCY = (RemapKind.RESTORATIVE, RemapKind.VOLUNTARY, RemapKind.INITIAL)


def failover_plan(snapshot: Snapshot, now: Instant) -> Plan:
    """Decide moves, slots and weights of all groups. Pure: the same snapshot and time give the same plan."""
    draft = Draft(snapshot, now)
    mine = snapshot.leadership.operator_epoch
    highest = max(operator_epochs_in(snapshot), default=0)
    if highest > mine:
        text = f"operator epoch {highest} was seen, this leader has {mine}: it has to step up before it acts"
        draft.explain("operator", Reason("StepUp", text))
        return draft.plan()
    needs = _needs(draft)
    for _, remap in sorted(snapshot.remaps.items()):
        if is_open(remap):
            _advance(draft, remap, needs)
    _open_moves(draft, needs)
    for _, group in sorted(snapshot.groups.items()):
        create_slots(draft, group)
    _part_with_slots(draft)
    forget_old_moves(draft)
    _block_remaps(draft)
    for _, slot in sorted(snapshot.slots.items()):
        owner = group_of(snapshot, slot)
        if owner is not None and slot.metadata.deletion_timestamp is None:
            follow_on_delete(draft, slot, owner)
            write_slot_status(draft, slot, owner)
    route(draft)
    return draft.plan()


_Needs = dict[ObjectKey, tuple[EngineSlot, PDGroup, RoleSpec, Need]]


def _needs(draft: Draft) -> _Needs:
    """What every wanted slot needs; slots without a group keep still."""
    found: _Needs = {}
    for key, slot in sorted(draft.snapshot.slots.items()):
        group = group_of(draft.snapshot, slot)
        if group is None:
            draft.explain(f"slot {key}", Reason("GroupGone", "its PDGroup was deleted: it stays as it is"))
            continue
        spec = role_spec(group, slot.spec.role)
        if spec is None or not is_wanted(draft.snapshot, slot):
            continue
        need = need_of(draft, slot, spec, group)
        if need is not None:
            found[key] = (slot, group, spec, need)
    return found


def _advance(draft: Draft, remap: Remap, needs: _Needs) -> None:
    slot = draft.snapshot.slots.get(slot_of(remap))
    group = group_of(draft.snapshot, slot) if slot is not None else None
    spec = role_spec(group, slot.spec.role) if slot is not None and group is not None else None
    known = needs.get(slot_of(remap))
    advance(draft, remap, slot, group, spec, known[3] if known is not None else None)


def _open_moves(draft: Draft, needs: _Needs) -> None:
    """Open what is needed, urgent moves first; a slot moves once at a time."""
    groups = draft.snapshot.groups
    invalid = {key: why_not_valid(draft.snapshot, group) for key, group in groups.items()}
    for kind in _URGENCY:
        for key, (slot, group, spec, need) in sorted(needs.items()):
            if need.kind is not kind or draft.moves.open_of(key) is not None:
                continue
            wrong = invalid[ObjectKey(key.namespace, slot.spec.pd_group)]
            if kind is not RemapKind.INITIAL or (wrong is None and len(draft.opened) < MOST_FIRST_PLACES):
                open_move(draft, slot, group, spec, need)
            elif wrong is not None:
                draft.block(key, wrong)
            else:
                draft.put_off(key, Reason("Queued", "other slots of this plan find their places first"))


def _part_with_slots(draft: Draft) -> None:
    """Take leave of slots nobody wants, and give back what is not held any more."""
    given_up = set()
    for key, slot in sorted(draft.snapshot.slots.items()):
        if slot.metadata.deletion_timestamp is not None:
            forget_deleted(draft, slot)
            if is_given_up(draft, slot):
                given_up.add(key)
        elif not is_wanted(draft.snapshot, slot):
            delete_unwanted(draft, slot)
    settle(draft, frozenset(given_up))


def _block_remaps(draft: Draft) -> None:
    """Say on an open Remap what holds it up, and take that back when it goes on."""
    written = {
        action.key for action in draft.plan().actions if isinstance(action, WriteRemapStatus | CancelRemap)
    }
    for key, remap in sorted(draft.snapshot.remaps.items()):
        if not is_open(remap) or key in written or slot_of(remap) in draft.opened:
            continue
        blocked = draft.blocked.get(slot_of(remap))
        phase = RemapPhase.BLOCKED if blocked is not None else RemapPhase.RUNNING
        code = blocked.code if blocked is not None else ""
        if (remap.status.phase, remap.status.blocked_reason) != (phase, code):
            status = remap.status.model_copy(update={"phase": phase, "blocked_reason": code})
            draft.act(WriteRemapStatus(key, status))
