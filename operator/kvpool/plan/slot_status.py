"""A slot's status: who sits on it, its weight, whether it serves. Written at Serving, then at changes."""

from typing import Final

from kvpool.api.conditions import ConditionType, Verdict, merge_conditions
from kvpool.api.engineslot import EngineSlot, EngineSlotStatus
from kvpool.api.pdgroup import PDGroup
from kvpool.api.remap import RemapKind, RemapPhase
from kvpool.model.decisions import Announce, Reason, SlotWeight, WriteSlotStatus
from kvpool.plan.attachment import attached, weight_to_show
from kvpool.plan.draft import Draft
from kvpool.plan.moves import key_of
from kvpool.plan.weights import SLOW_START, slot_weight

MOVING_SECONDS: Final = 30.0
"""How long a move may leave the status as it was: it writes once, when the slot serves again."""


def write_slot_status(draft: Draft, slot: EngineSlot, group: PDGroup) -> None:
    """Decide a status write when what people see changed; a move under way is not written in pieces."""
    key = key_of(slot)
    blocked = draft.blocked.get(key)
    if blocked is None and key not in draft.served and _is_moving(draft, slot):
        return
    given = slot_weight(draft, group, slot)
    status = _status(draft, slot, group, given, blocked)
    if _says_the_same(slot.status, status, rises=given.reason.code == SLOW_START):
        return
    draft.act(WriteSlotStatus(key, status))
    if blocked is not None and not _was_blocked(slot, blocked):
        draft.announce(Announce("EngineSlot", key, "Warning", blocked))


def _is_moving(draft: Draft, slot: EngineSlot) -> bool:
    if key_of(slot) in draft.opened:
        return True
    remap = draft.moves.open_of(key_of(slot))
    if remap is None:
        return False
    made = remap.metadata.creation_timestamp
    opened = draft.now.monotonic_of(made) if made else draft.now.monotonic_seconds
    draft.look_again(opened + MOVING_SECONDS)
    return draft.now.monotonic_seconds < opened + MOVING_SECONDS


def _status(
    draft: Draft, slot: EngineSlot, group: PDGroup, given: SlotWeight, blocked: Reason | None
) -> EngineSlotStatus:
    engine = attached(draft.snapshot, slot, draft.pods, draft.now)
    asked = given.weight
    weight = weight_to_show(draft.snapshot, group, slot, asked)
    verdicts = [_bound(slot), _serving(slot, asked, weight), _remapped(draft, slot)]
    if blocked is not None:
        verdicts.append(Verdict(ConditionType.BLOCKED, True, blocked.code, blocked.message))
    generation = slot.metadata.generation
    return EngineSlotStatus(
        attached=engine,
        weight_asked=asked,
        weight_acknowledged=weight,
        conditions=merge_conditions(slot.status.conditions, verdicts, generation, draft.now.text()),
    )


def _bound(slot: EngineSlot) -> Verdict:
    if not slot.spec.seats:
        return Verdict(ConditionType.BOUND, False, "Unbound", "no devices are bound to the slot")
    places = ", ".join(f"{seat.node}/{'+'.join(seat.devices)}" for seat in slot.spec.seats)
    return Verdict(ConditionType.BOUND, True, "Bound", f"{places} under epoch {slot.spec.epoch}")


def _serving(slot: EngineSlot, asked: int, weight: int) -> Verdict:
    if weight > 0 and asked > 0:
        return Verdict(ConditionType.SERVING, True, "Serving", "routers send it requests")
    if asked > 0:
        return Verdict(ConditionType.SERVING, False, "WeightPending", "no output acknowledged a weight yet")
    return Verdict(ConditionType.SERVING, False, "WeightZero", "its weight is 0")


def _remapped(draft: Draft, slot: EngineSlot) -> Verdict:
    remap = draft.moves.bound_by(slot)
    if remap is None or remap.spec.kind is RemapKind.INITIAL:
        return Verdict(ConditionType.REMAPPED, False, "FirstPlace", "it has not moved under this epoch")
    over = remap.status.phase is RemapPhase.SUCCEEDED or key_of(slot) in draft.served
    text = f"{remap.metadata.name}: {remap.spec.cause}"
    return Verdict(ConditionType.REMAPPED, over or None, remap.spec.kind.value, text)


def _says_the_same(old: EngineSlotStatus, new: EngineSlotStatus, *, rises: bool) -> bool:
    """Whether nothing changed that is worth a write: steps of a ramp are not, its end is, and a new share."""
    if old.attached != new.attached or _words(old) != _words(new):
        return False
    if (old.weight_asked, old.weight_acknowledged) == (new.weight_asked, new.weight_acknowledged):
        return True
    return rises or new.weight_asked != new.weight_acknowledged


def _words(status: EngineSlotStatus) -> list[tuple[str, str, str]]:
    """Conditions by status and reason; texts whose figures change with time are no news."""
    return [(condition.type, condition.status, condition.reason) for condition in status.conditions]


def _was_blocked(slot: EngineSlot, blocked: Reason) -> bool:
    kind = ConditionType.BLOCKED
    return any(seen.type == kind and seen.reason == blocked.code for seen in slot.status.conditions)
