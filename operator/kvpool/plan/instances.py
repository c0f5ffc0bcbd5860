"""How many slots a group has: makes the missing ones, and takes leave of those nobody wants any more."""

from typing import Final

from kvpool.api import labels
from kvpool.api.engineslot import EngineSlot, EngineSlotSpec
from kvpool.api.pdgroup import PDGroup
from kvpool.model.decisions import CreateSlot, DeleteSlot, ForgetSlot, OwnSlot, Reason, Withheld
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Snapshot
from kvpool.plan.attachment import is_cordoned
from kvpool.plan.draft import Draft
from kvpool.plan.engines import engine_pods, role_spec, roles_of
from kvpool.plan.modes import is_retiring
from kvpool.plan.moves import key_of
from kvpool.plan.permission import group_standing
from kvpool.plan.settling import has_claims
from kvpool.plan.validity import more_slots_than_devices, why_not_valid
from kvpool.rules.fencing import fence_of_seat

MOST_NEW: Final = 64
"""Slots that one step makes: moves never wait for a large group to come about."""


def slot_key(group: PDGroup, role: str, instance: int) -> ObjectKey:
    """Return `<group>-<role>-<instance>`."""
    return ObjectKey(group.metadata.namespace, f"{group.metadata.name}-{role.lower()}-{instance}")


def group_of(snapshot: Snapshot, slot: EngineSlot) -> PDGroup | None:
    """Return the slot's group; None when it was deleted."""
    return snapshot.groups.get(ObjectKey(slot.metadata.namespace, slot.spec.pd_group))


def is_wanted(snapshot: Snapshot, slot: EngineSlot) -> bool:
    """Whether the slot's group still asks for it. A slot without a group is kept: its weights are frozen.

    No slot is wanted any more while kvpool is being uninstalled.
    """
    if slot.metadata.deletion_timestamp is not None or is_retiring(snapshot):
        return False
    group = group_of(snapshot, slot)
    if group is None:
        return True
    spec = role_spec(group, slot.spec.role)
    if spec is None:
        return False
    return spec.instances is None or slot.spec.instance < spec.instances


def create_slots(draft: Draft, group: PDGroup) -> None:
    """Make the slots that the group asks for and does not have."""
    missing = _missing(draft.snapshot, group)
    if not missing:
        return
    key = ObjectKey(group.metadata.namespace, group.metadata.name)
    hold = (
        group_standing(draft.snapshot, group).hold
        or why_not_valid(draft.snapshot, group)
        or more_slots_than_devices(draft.snapshot, group)
    )
    if hold is not None:
        names = ", ".join(slot.name for slot, _ in missing[:4])
        draft.withhold(Withheld("PDGroup", key, f"create {len(missing)} slots ({names})", hold))
        draft.explain(f"group {key}", hold)
        return
    owner = _owner_uid(group)
    for slot, spec in missing[:MOST_NEW]:
        draft.act(CreateSlot(slot, spec, owner, Reason("Wanted", f"PDGroup {key} asks for it")))


def _owner_uid(group: PDGroup) -> str:
    """The UID that the group's slots are owned by; empty when they outlive it."""
    return group.metadata.uid if group.spec.routing.on_delete == "Remove" else ""


def follow_on_delete(draft: Draft, slot: EngineSlot, group: PDGroup) -> None:
    """Let a slot that rests follow an edited `onDelete`: it is owned by its group, or it is not."""
    key = key_of(slot)
    owners = [owner.uid for owner in slot.metadata.owner_references if owner.kind == "PDGroup"]
    wanted = _owner_uid(group)
    rests = draft.moves.open_of(key) is None and key not in draft.opened
    if owners == ([wanted] if wanted else []) or not rests:
        return
    if group_standing(draft.snapshot, group).hold is not None:
        return
    reason = Reason("OnDelete", f"routing.onDelete of PDGroup {slot.spec.pd_group} says so")
    draft.act(OwnSlot(key, slot.metadata.resource_version, slot.spec.pd_group, wanted, reason))


def _missing(snapshot: Snapshot, group: PDGroup) -> list[tuple[ObjectKey, EngineSlotSpec]]:
    if snapshot.uninstall is not None:
        return []
    found = []
    for role, spec in roles_of(group):
        count = spec.instances
        if count is None:
            count = len(engine_pods(snapshot, group, spec))
        for instance in range(count):
            key = slot_key(group, role.value, instance)
            if key not in snapshot.slots and not snapshot.may_exist("EngineSlot", key):
                wanted = EngineSlotSpec(pd_group=group.metadata.name, role=role, instance=instance)
                operator_epoch = snapshot.leadership.operator_epoch
                found.append((key, wanted.model_copy(update={"operator_epoch": operator_epoch})))
    return found


def delete_unwanted(draft: Draft, slot: EngineSlot) -> None:
    """Ask for the deletion of a slot that is not wanted, once routers are known to send it nothing."""
    group = group_of(draft.snapshot, slot)
    key = key_of(slot)
    if slot.metadata.deletion_timestamp is not None:
        return
    hold = group_standing(draft.snapshot, group).hold if group is not None else None
    if is_retiring(draft.snapshot) and (group is None or hold is not None):
        # Nobody writes these outputs: there is no acknowledgement to wait for.
        draft.act(DeleteSlot(key, slot.metadata.uid, Reason("Uninstalling", "kvpool is being uninstalled")))
    elif group is None:
        return
    elif hold is not None:
        draft.withhold(Withheld("EngineSlot", key, "delete the slot", hold))
        draft.explain(f"slot {key}", hold)
    elif is_cordoned(draft.snapshot, group, slot):
        draft.act(DeleteSlot(key, slot.metadata.uid, Reason("Unwanted", "its group asks for fewer slots")))
    else:
        draft.explain(f"slot {key}", Reason("CordonPending", "waits for its outputs to acknowledge weight 0"))


def is_given_up(draft: Draft, slot: EngineSlot) -> bool:
    """Whether a deleting slot's engines are proven to be out, so that its devices may be given back."""
    if slot.metadata.deletion_timestamp is None:
        return False
    if any(draft.snapshot.may_exist("KVNode", ObjectKey("", seat.node)) for seat in slot.spec.seats):
        return False  # what the node holds cannot be read
    return all(
        seat.node not in draft.snapshot.kvnodes
        or fence_of_seat(
            key_of(slot),
            slot.spec.epoch,
            draft.snapshot.agents.get(seat.node),
            devices=seat.devices,
            booted_as=draft.snapshot.kvnodes[seat.node].status.boot_id,
            host_is_dead=draft.judgement.is_dead(seat.node),
        )
        is not None
        for seat in slot.spec.seats
    )


def forget_deleted(draft: Draft, slot: EngineSlot) -> None:
    """Let a deleting slot go once its engines are out and its claims are gone."""
    key = key_of(slot)
    if labels.FENCE_FINALIZER not in slot.metadata.finalizers:
        return
    if not is_given_up(draft, slot):
        waits = ", ".join(seat.node for seat in slot.spec.seats)
        draft.explain(f"slot {key}", Reason("FencePending", f"deletion waits for {waits} to stop its engine"))
    elif not has_claims(draft, slot):
        reason = Reason("Forget", "its engine is out and nothing is claimed for it")
        draft.act(ForgetSlot(key, slot.metadata.uid, slot.metadata.resource_version, reason))
