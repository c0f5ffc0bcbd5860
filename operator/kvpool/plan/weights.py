"""One weight for each slot: nothing while nobody surely serves it, then rising in steps to the full one."""

from typing import Final

from kvpool.api.common import Role
from kvpool.api.conditions import ConditionType, find_condition
from kvpool.api.duration import parse_duration
from kvpool.api.engineslot import EngineSlot
from kvpool.api.kvnode import DeviceVerdict
from kvpool.api.pdgroup import PDGroup
from kvpool.api.remap import RemapKind, StageName
from kvpool.model.decisions import Reason, SlotWeight, Weights, Withheld
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.observations import PodFact
from kvpool.model.snapshot import Snapshot
from kvpool.plan.attachment import acks_of, attached, weight_to_show
from kvpool.plan.draft import Draft
from kvpool.plan.engines import roles_of
from kvpool.plan.group_slots import slots_of
from kvpool.plan.instances import group_of, is_wanted
from kvpool.plan.moves import key_of
from kvpool.plan.needs import replaced_uuid
from kvpool.plan.permission import group_standing

FULL_WEIGHT: Final = 100
SLOW_START: Final = "SlowStart"
"""Reason of a weight that still rises."""


def weights(snapshot: Snapshot, group: PDGroup, role: Role, now: Instant) -> Weights:
    """Return the weight of each slot of one role, by slot name."""
    return role_weights(Draft(snapshot, now), group, role)


def route(draft: Draft) -> None:
    """Decide the weights of every group that may act.

    A pause freezes the weights that are in force, but for a group whose move has claimed its new place
    already: that move is finished first.
    """
    for key, group in sorted(draft.snapshot.groups.items()):
        standing = group_standing(draft.snapshot, group)
        finishing = standing.hold is not None and standing.hold.code == "Paused" and _finishes(draft, group)
        if standing.hold is not None and not finishing:
            if standing.advises:
                draft.withhold(Withheld("PDGroup", key, "publish routing weights", standing.hold))
            continue
        for role, _ in roles_of(group):
            draft.route(role_weights(draft, group, role))


def role_weights(draft: Draft, group: PDGroup, role: Role) -> Weights:
    """Return the weights of one role within a plan that is being made."""
    key = ObjectKey(group.metadata.namespace, group.metadata.name)
    slots = [slot for slot in slots_of(draft.snapshot, group) if slot.spec.role is role]
    members = tuple(slot_weight(draft, group, slot) for slot in slots)
    stays = draft.snapshot.uninstall is None
    if (
        stays
        and group.spec.routing.failure_mode == "FailOpen"
        and not any(member.weight for member in members)
    ):
        members = _kept(draft, group, role, members)
    return Weights(key, "Prefill" if role is Role.PREFILL else "Decode", members)


def slot_weight(draft: Draft, group: PDGroup, slot: EngineSlot) -> SlotWeight:
    """Return one slot's weight. What is not confirmed changes nothing; what is, does so at once."""
    engine = attached(draft.snapshot, slot, draft.pods, draft.now)
    endpoint = engine.endpoint if engine is not None else ""
    pod_uid = engine.pod_uid if engine is not None else ""
    why = _why_zero(draft, slot)
    if why is None and engine is None:
        why = Reason("NotAttached", f"no engine is attached under epoch {slot.spec.epoch}")
    if why is not None:
        return SlotWeight(key_of(slot), 0, endpoint, pod_uid, why)
    percent, reason = _ramp(draft, group, slot, pod_uid)
    share, pressed = draft.shares.share(group, slot, lambda other: _share_before(draft, group, other))
    weight = max(1, FULL_WEIGHT * percent * share // 10_000)
    if pressed is not None and reason.code != SLOW_START:
        reason = pressed
    return SlotWeight(key_of(slot), weight, endpoint, pod_uid, reason)


def _why_zero(draft: Draft, slot: EngineSlot) -> Reason | None:
    """Return what surely keeps the slot from serving, other than a missing engine."""
    if not slot.spec.seats:
        return Reason("Unbound", "no devices are bound to the slot")
    if not is_wanted(draft.snapshot, slot) and group_of(draft.snapshot, slot) is not None:
        return Reason("Unwanted", "the slot is being deleted or its group asks for fewer")
    for seat in slot.spec.seats:
        if draft.judgement.is_dead(seat.node):
            return draft.judgement.host(seat.node).reason
        for device in seat.devices:
            finding = draft.judgement.device(seat.node, device)
            if finding.verdict is DeviceVerdict.FAULTY:
                return Reason(finding.reason.code, f"{seat.node}/{device}: {finding.reason.message}")
            if replaced_uuid(draft.snapshot, slot, seat.node, device) is not None:
                return Reason("DeviceReplaced", f"{seat.node}/{device} is another device than was claimed")
    remap = draft.moves.open_of(key_of(slot))
    if remap is not None and remap.spec.from_epoch == slot.spec.epoch:
        return Reason("Moving", f"{remap.metadata.name}: {remap.spec.cause}")
    if draft.moves.is_withdrawn(slot):
        return Reason("Withdrawn", f"the engine of epoch {slot.spec.epoch} was told to stop")
    return None


def _ramp(draft: Draft, group: PDGroup, slot: EngineSlot, pod_uid: str) -> tuple[int, Reason]:
    """Return the percent of the full weight that the slot's engine has worked its way up to."""
    slow = group.spec.routing.slow_start
    since = _rising_since(draft, slot, pod_uid)
    if since is None:
        return 100, Reason("Serving", "full weight")
    step_seconds = parse_duration(slow.step_time)
    elapsed = draft.now.monotonic_seconds - since
    step = int(elapsed / step_seconds) if step_seconds > 0 else len(slow.steps)
    if step >= len(slow.steps) - 1:
        return slow.steps[-1], Reason("Serving", "full weight")
    step = max(0, step)
    draft.look_again(since + (step + 1) * step_seconds)
    text = f"step {step + 1} of {len(slow.steps)}, {slow.step_time} each"
    return slow.steps[step], Reason(SLOW_START, text)


def _share_before(draft: Draft, group: PDGroup, slot: EngineSlot) -> int:
    """Return the share that routers give a slot: its weight, but for one that rises, which says no share."""
    engine = attached(draft.snapshot, slot, draft.pods, draft.now)
    if engine is None or _ramp(draft, group, slot, engine.pod_uid)[1].code == SLOW_START:
        return 0
    return weight_to_show(draft.snapshot, group, slot, slot.status.weight_asked)


def _rising_since(draft: Draft, slot: EngineSlot, pod_uid: str) -> float | None:
    """When the ramp began: as the slot first served, or served again with an engine that started since.

    Of several containers that started later may have been a side-car: it makes an engine of the same epoch
    cold only together with a break in service. None as in `_serving_since`.
    """
    first, pod = _serving_since(draft, slot), draft.pods.by_uid(pod_uid)
    started = _started(draft, pod)
    if first is None or pod is None or started is None or started <= first:
        return first
    serving = find_condition(slot.status.conditions, ConditionType.SERVING)
    if serving is None or serving.status != "True" or serving.last_transition_time is None:
        return draft.now.monotonic_seconds
    again = draft.now.monotonic_of(serving.last_transition_time)
    # One that came back at once was never seen to be away.
    return max(first, again, started) if pod.has_one_container else max(first, again)


def _started(draft: Draft, pod: PodFact | None) -> float | None:
    try:
        return draft.now.monotonic_of(pod.started_at) if pod is not None else None
    except (TypeError, ValueError):
        return None  # nobody knows when it started


def _serving_since(draft: Draft, slot: EngineSlot) -> float | None:
    """When the slot first served under its epoch; None when that is long past or not on record.

    Until a first weight was acknowledged, the ramp has not begun: its first step is due now.
    """
    remap = draft.moves.bound_by(slot)
    if remap is None:
        return None
    for stage in remap.status.stages:
        if stage.name is StageName.SERVING:
            return draft.now.monotonic_of(stage.ended_at)
    if remap.status.phase.is_final:
        return None
    marked = draft.marked_at(key_of(remap), StageName.SERVING)
    return marked if marked is not None else draft.now.monotonic_seconds


def _kept(
    draft: Draft, group: PDGroup, role: Role, members: tuple[SlotWeight, ...]
) -> tuple[SlotWeight, ...]:
    """FailOpen: when no slot may serve, routers keep what they have."""
    last: dict[str, int] = {}
    for ack in acks_of(draft.snapshot, group, role).values():
        if ack is not None:
            last.update({name: max(weight, last.get(name, 0)) for name, weight in ack.weights.items()})
    if not any(last.values()):
        last = {member.name: member.weight for member in group.status.members if member.role is role}
    return tuple(
        SlotWeight(
            member.slot,
            last.get(member.slot.name, 0),
            member.endpoint or _last_endpoint(draft, member.slot),
            member.pod_uid,
            Reason("FailOpen", f"no slot may serve, the last weights are kept; {member.reason.message}"),
        )
        for member in members
    )


def _last_endpoint(draft: Draft, slot: ObjectKey) -> str:
    known = draft.snapshot.slots[slot].status.attached
    return known.endpoint if known is not None else ""


def _finishes(draft: Draft, group: PDGroup) -> bool:
    """Whether a move of the group is past its claim and not over."""
    for slot in slots_of(draft.snapshot, group):
        remap = draft.moves.open_of(key_of(slot))
        if remap is not None and remap.spec.kind is not RemapKind.INITIAL and draft.moves.was_claimed(remap):
            return True
    return False
