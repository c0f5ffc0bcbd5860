"""What a PDGroup's status says: its slots, their weights, the ratio, and what is wrong."""

from collections.abc import Iterable

from kvpool.api.common import Role
from kvpool.api.conditions import ConditionType, Verdict, merge_conditions
from kvpool.api.engineslot import EngineSlot
from kvpool.api.pdgroup import (
    Attach,
    Member,
    OutputStatus,
    OutputType,
    PDGroup,
    PDGroupStatus,
    RoutingStatus,
)
from kvpool.api.supernode import FenceLevel
from kvpool.model.decisions import SlotWeight
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.attachment import weight_to_show
from kvpool.plan.domains import CODE_UNREADABLE, policy_of, supernode_of_group
from kvpool.plan.draft import Draft
from kvpool.plan.engines import engine_pods, roles_of
from kvpool.plan.group_ratio import fraction_of, instances, ratio_status
from kvpool.plan.group_slots import slots_of
from kvpool.plan.permission import group_standing
from kvpool.plan.share_book import calibrated
from kvpool.plan.sizes import listed
from kvpool.plan.validity import more_slots_than_devices, why_not_valid
from kvpool.plan.weights import slot_weight

MOST_MEMBERS = 128


def group_status(snapshot: Snapshot, group: PDGroup, now: Instant) -> PDGroupStatus:
    """Return the group's whole status. Pure; conditions that did not change keep their times."""
    draft = Draft(snapshot, now)
    slots = slots_of(snapshot, group)
    weights = {slot.metadata.name: slot_weight(draft, group, slot) for slot in slots}
    members = tuple(_member(snapshot, group, slot, weights[slot.metadata.name]) for slot in slots)
    generation = group.metadata.generation
    verdicts = _verdicts(draft, group, slots, members)
    return PDGroupStatus(
        observed_generation=generation,
        slots=len(slots),
        serving=sum(1 for member in members if member.effective_weight > 0),
        members=members[:MOST_MEMBERS],
        routing=_routing(snapshot, group, now),
        ratio=ratio_status(snapshot, group, members),
        conditions=merge_conditions(group.status.conditions, verdicts, generation, now.text()),
    )


def _member(snapshot: Snapshot, group: PDGroup, slot: EngineSlot, weight: SlotWeight) -> Member:
    return Member(
        name=slot.metadata.name,
        role=slot.spec.role,
        weight=weight.weight,
        effective_weight=weight_to_show(snapshot, group, slot, weight.weight),
        reason=weight.reason.code,
    )


def _routing(snapshot: Snapshot, group: PDGroup, now: Instant) -> RoutingStatus:
    key = ObjectKey(group.metadata.namespace, group.metadata.name)
    acks = {ack.output: ack for ack in snapshot.acks if ack.group == key}
    outputs = []
    for output in group.spec.routing.outputs:
        expressible = output.type is OutputType.HTTP_ROUTE
        ack = acks.get(output.name)
        if ack is None:
            outputs.append(OutputStatus(name=output.name, expressible=expressible))
            continue
        outputs.append(
            OutputStatus(
                name=output.name,
                revision=ack.revision,
                acknowledged="Observed" if ack.observed else "Assumed",
                at=now.wall_at(ack.at).isoformat(timespec="seconds").replace("+00:00", "Z"),
                expressible=expressible,
            )
        )
    revision = max((ack.revision for ack in acks.values()), default=group.status.routing.revision)
    return RoutingStatus(revision=revision, outputs=tuple(outputs))


def _verdicts(
    draft: Draft, group: PDGroup, slots: tuple[EngineSlot, ...], members: Iterable[Member]
) -> list[Verdict]:
    found = [_ready(draft, group, slots, tuple(members))]
    standing = group_standing(draft.snapshot, group)
    if standing.paused and standing.hold is not None:
        found.append(Verdict(ConditionType.PAUSED, True, "Paused", standing.hold.message))
    if standing.advises and standing.hold is not None:
        text = f"slots, moves and weights are decided and not carried out: {standing.hold.message}"
        found.append(Verdict(ConditionType.ACTION_WITHHELD, True, standing.hold.code, text))
    maybe = (
        _ratio(group, tuple(members)),
        calibrated(draft.snapshot, group),
        _expressible(group),
        _written(draft.snapshot, group),
        _enforceable(draft, group),
    )
    return found + [verdict for verdict in maybe if verdict is not None]


def _ready(
    draft: Draft, group: PDGroup, slots: tuple[EngineSlot, ...], members: tuple[Member, ...]
) -> Verdict:
    kind = ConditionType.READY
    invalid = why_not_valid(draft.snapshot, group)
    if invalid is not None:
        status = None if invalid.code == CODE_UNREADABLE else False
        return Verdict(kind, status, invalid.code, invalid.message)
    short = more_slots_than_devices(draft.snapshot, group)
    if short is not None and (slots or group_standing(draft.snapshot, group).may_act):
        return Verdict(kind, False, short.code, short.message)
    if not slots:
        return _without_slots(draft, group)
    dark = [member.name for member in members if member.effective_weight == 0]
    if dark:
        text = f"{len(members) - len(dark)} of {len(members)} slots serve; not {listed(dark)}"
        return Verdict(kind, False, "SlotsUnserved", text)
    return Verdict(kind, True, "Serving", f"all {len(members)} slots serve")


def _without_slots(draft: Draft, group: PDGroup) -> Verdict:
    counts = [
        f"{len(engine_pods(draft.snapshot, group, spec))} {role.value.lower()} engine pods"
        for role, spec in roles_of(group)
    ]
    hold = group_standing(draft.snapshot, group).hold
    if hold is None:
        return Verdict(ConditionType.READY, False, "NoSlots", f"no slots yet; {', '.join(counts)} seen")
    return Verdict(ConditionType.READY, True, "Observing", f"{', '.join(counts)} seen; {hold.message}")


def _ratio(group: PDGroup, members: tuple[Member, ...]) -> Verdict | None:
    """Serving prefill to decode against the bounds; nothing to say without bounds or without both roles."""
    bounds = group.spec.ratio
    both = {member.role for member in members} == {Role.PREFILL, Role.DECODE}
    if bounds is None or (bounds.min is None and bounds.max is None) or not both:
        return None
    kind = ConditionType.RATIO_CONSTRAINT_VIOLATED
    serving = instances([member for member in members if member.effective_weight > 0])
    prefill, decode = serving.prefill, serving.decode
    low = fraction_of(bounds.min)
    high = fraction_of(bounds.max)
    now = f"{prefill} prefill to {decode} decode instances serve"
    if low is not None and prefill * low.denominator < low.numerator * decode:
        return Verdict(kind, True, "BelowMinimum", f"{now}, ratio.min is {bounds.min}: add prefill instances")
    if high is not None and prefill * high.denominator > high.numerator * decode:
        return Verdict(kind, True, "AboveMaximum", f"{now}, ratio.max is {bounds.max}: add decode instances")
    return Verdict(kind, False, "WithinBounds", now)


def _expressible(group: PDGroup) -> Verdict | None:
    """Outputs that must carry weights and know only in and out."""
    outputs = group.spec.routing.outputs
    if not outputs:
        return None
    refused = [
        f"{output.name} ({output.type.value})"
        for output in outputs
        if output.type is not OutputType.HTTP_ROUTE and output.weights == "Required"
    ]
    kind = ConditionType.WEIGHT_NOT_EXPRESSIBLE
    if refused:
        text = f"{listed(refused)} know only in and out, weights is Required: use HTTPRoute or BestEffort"
        return Verdict(kind, True, "Required", text)
    return Verdict(kind, False, "AsAsked", "every output carries what is asked of it")


def _written(snapshot: Snapshot, group: PDGroup) -> Verdict | None:
    """Outputs that do not carry the newest weights, and why."""
    key = ObjectKey(group.metadata.namespace, group.metadata.name)
    errors = [
        f"{output.name}: {snapshot.output_errors[key, output.name]}"
        for output in group.spec.routing.outputs
        if (key, output.name) in snapshot.output_errors
    ]
    if not errors:
        return None
    return Verdict(ConditionType.OUTPUT_NOT_WRITTEN, True, "WriteFailed", "; ".join(errors))


def _enforceable(draft: Draft, group: PDGroup) -> Verdict | None:
    """Roles whose engines kvpool cannot stop, where the policy wants a proven stop before a bind."""
    require = policy_of(supernode_of_group(draft.snapshot, group)).fence.require
    if require is FenceLevel.CONTENT_ONLY:
        return None
    kind = ConditionType.FENCE_NOT_ENFORCEABLE
    weak = [role.value for role, spec in roles_of(group) if spec.attach is Attach.OBSERVE]
    if weak:
        text = f"engines of {listed(weak)} (attach Observe) cannot be stopped by kvpool, fence.require is "
        return Verdict(kind, True, "AttachObserve", f"{text}{require.value}: use attach Standby")
    return Verdict(kind, False, "Enforceable", f"every role's engines can be fenced to {require.value}")
