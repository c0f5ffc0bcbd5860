"""Takes an open move one deciding write further: claim, fence proof, bind, and serving.

Everything is derived from objects and from what agents say, so whoever leads goes on where another stopped,
under the epoch that the Remap recorded.
"""

from collections.abc import Sequence
from typing import Final

from kvpool.api.engineslot import EngineSlot, FencedBy, Seat
from kvpool.api.kvnode import Claim, DeviceVerdict
from kvpool.api.pdgroup import PDGroup, RoleSpec
from kvpool.api.remap import Remap, RemapFence, RemapKind, RemapPhase, StageName
from kvpool.api.supernode import FenceLevel
from kvpool.model.decisions import Announce, BindSlot, CancelRemap, ClaimDevices, Reason, WriteRemapStatus
from kvpool.model.ids import ObjectKey
from kvpool.plan.attachment import acknowledged_weight, attached, is_cordoned
from kvpool.plan.domains import domain_unknown, policy_of, supernode_of
from kvpool.plan.draft import Draft
from kvpool.plan.liveness import HostState
from kvpool.plan.moves import holds_claim, is_claimed, key_of, slot_of
from kvpool.plan.needs import Need
from kvpool.plan.permission import domain_hold, move_hold
from kvpool.plan.stages import final_status, recorded_fence
from kvpool.rules.fencing import NEVER_HELD, Fence, fence_of_seat, weakest

CORDON_SECONDS: Final = 30.0
CLAIM_SECONDS: Final = 30.0
FENCE_SECONDS: Final = 60.0
ENGINE_SECONDS: Final = 60.0
"""How long each stage may last before the move counts as blocked and yields its budget."""


def advance(
    draft: Draft,
    remap: Remap,
    slot: EngineSlot | None,
    group: PDGroup | None,
    spec: RoleSpec | None,
    need: Need | None,
) -> None:
    """Decide the next write of an open move. `need` is what the slot needs now, None for nothing."""
    if slot is None:
        _end(draft, remap, RemapPhase.CANCELLED, Reason("SlotGone", "its slot does not exist any more"))
    elif slot.spec.epoch == remap.spec.epoch:
        _after_bind(draft, remap, slot, group, need)
    elif slot.spec.epoch != remap.spec.from_epoch:
        text = f"the slot is at epoch {slot.spec.epoch}, the move would have left {remap.spec.from_epoch}"
        _end(draft, remap, RemapPhase.FAILED, Reason("Superseded", text))
    elif group is None or spec is None or slot.metadata.deletion_timestamp is not None:
        _end(draft, remap, RemapPhase.CANCELLED, Reason("SlotUnwanted", "its slot is not wanted any more"))
    elif remap.spec.cancel:
        _end(draft, remap, RemapPhase.CANCELLED, Reason("Cancelled", "stopped by spec.cancel"))
    else:
        _before_bind(draft, remap, slot, group, need)


# -- before the slot is bound


def _before_bind(draft: Draft, remap: Remap, slot: EngineSlot, group: PDGroup, need: Need | None) -> None:
    lost = _why_lost(draft, remap)
    if lost is not None:
        _end(draft, remap, RemapPhase.FAILED, lost)
        return
    if is_cordoned(draft.snapshot, group, slot) and remap.spec.kind is not RemapKind.INITIAL:
        draft.mark(key_of(remap), StageName.CORDON)
    if is_claimed(draft.snapshot, remap):
        draft.mark(key_of(remap), StageName.CLAIM)
        _fence_and_bind(draft, remap, slot)
    elif need is None and _is_cleared(draft, remap):
        _end(draft, remap, RemapPhase.CANCELLED, Reason("Cleared", "what called for the move is gone"))
    else:
        _claim(draft, remap, slot, group, need if need is not None else _recorded(draft, remap))


def _is_cleared(draft: Draft, remap: Remap) -> bool:
    """Whether the old place is known to be sound again; what is unknown clears nothing."""
    return all(
        draft.judgement.host(seat.node).state is HostState.ALIVE
        and all(
            draft.judgement.device(seat.node, device).verdict is DeviceVerdict.HEALTHY
            for device in seat.devices
        )
        for seat in remap.spec.from_
    )


def _recorded(draft: Draft, remap: Remap) -> Need:
    """What called for the move when it was opened, while nothing is known anew."""
    first = draft.now.monotonic_of(remap.spec.first_evidence_at)
    return Need(remap.spec.kind, "Recorded", remap.spec.cause, remap.spec.from_, first)


def _why_lost(draft: Draft, remap: Remap) -> Reason | None:
    """Return why the new place cannot be had any more; None while it may be waited for."""
    for seat in remap.spec.to:
        if seat.node not in draft.snapshot.kvnodes:
            return Reason("SpareLost", f"node {seat.node} is not one of the cluster any more")
        if draft.judgement.is_dead(seat.node):
            return Reason("SpareLost", f"{seat.node}: {draft.judgement.host(seat.node).reason.message}")
        for device in seat.devices:
            lost = _why_device_lost(draft, remap, seat, device)
            if lost is not None:
                return lost
    return None


def _why_device_lost(draft: Draft, remap: Remap, seat: Seat, device: str) -> Reason | None:
    kvnode = draft.snapshot.kvnodes[seat.node]
    finding = draft.judgement.device(seat.node, device)
    if finding.verdict is DeviceVerdict.FAULTY:
        return Reason("SpareLost", f"{seat.node}/{device}: {finding.reason.message}")
    if any(entry.device == device for entry in kvnode.spec.quarantine):
        return Reason("SpareLost", f"{seat.node}/{device} is in quarantine")
    own = str(slot_of(remap))
    for claim in kvnode.spec.claims:
        if claim.device == device and claim.slot != own:
            return Reason("ClaimConflict", f"{seat.node}/{device} was claimed by slot {claim.slot}")
    return None


def _claim(draft: Draft, remap: Remap, slot: EngineSlot, group: PDGroup, need: Need) -> None:
    """Claim the devices of one node; a soft move first waits until routers send the slot nothing."""
    supernode = supernode_of(draft.snapshot, need.seats[0].node) if need.seats else None
    held = move_hold(draft.snapshot, group, supernode, need.kind)
    held = held or domain_hold(draft.snapshot, (*need.seats, *remap.spec.to))
    if held is not None:
        draft.block(key_of(slot), held)
        return
    if not need.is_urgent and need.seats and not is_cordoned(draft.snapshot, group, slot):
        _wait(draft, remap, slot, CORDON_SECONDS, "CordonPending", "its outputs to acknowledge weight 0")
        return
    for seat in remap.spec.to:
        if holds_claim(draft.snapshot, remap, seat):
            continue
        if draft.judgement.host(seat.node).state is not HostState.ALIVE:
            _spare_is_silent(draft, remap, slot, seat)
            return
        claims = tuple(_claim_of(draft, remap, seat, device) for device in seat.devices)
        reason = Reason("Claim", f"{seat.node}/{'+'.join(seat.devices)} for slot {key_of(slot)}")
        draft.explain(f"slot {key_of(slot)}", reason)
        version = draft.snapshot.kvnodes[seat.node].metadata.resource_version
        draft.act_on_node(seat.node, ClaimDevices(seat.node, version, claims, key_of(remap), reason))
        return


def _spare_is_silent(draft: Draft, remap: Remap, slot: EngineSlot, seat: Seat) -> None:
    finding = draft.judgement.host(seat.node)
    led_seconds = draft.now.monotonic_seconds - draft.snapshot.leadership.since
    # A new leader has heard nobody yet: a move that is old by then has not waited for this spare.
    if min(_age_seconds(draft, remap), led_seconds) > CLAIM_SECONDS:
        _end(draft, remap, RemapPhase.FAILED, Reason("SpareSilent", f"{seat.node}: {finding.reason.message}"))
    else:
        _wait(draft, remap, slot, CLAIM_SECONDS, "SpareSilent", f"{seat.node}: {finding.reason.message}")


def _claim_of(draft: Draft, remap: Remap, seat: Seat, device: str) -> Claim:
    agent = draft.snapshot.agents.get(seat.node)
    seen = agent.devices if agent is not None else ()
    uuid = next((view.uuid for view in seen if view.id == device), "")
    return Claim(
        device=device,
        uuid=uuid,
        slot=str(slot_of(remap)),
        remap=remap.metadata.name,
        epoch=remap.spec.epoch,
    )


def _fence_and_bind(draft: Draft, remap: Remap, slot: EngineSlot) -> None:
    """Bind the slot once everyone who held it is proven to be out, surely enough for the policy."""
    # The epoch that ends was held on every seat: also an engine whose seat stays has to be out of it.
    fences = [_fence(draft, slot, seat) for seat in slot.spec.seats]
    if any(fence is None for fence in fences):
        waits_for = [seat.node for seat, fence in zip(slot.spec.seats, fences, strict=True) if fence is None]
        what = f"{', '.join(waits_for)} to stop epoch {remap.spec.from_epoch}, or to be proven out"
        _wait(draft, remap, slot, FENCE_SECONDS, "FencePending", what)
        return
    proven = weakest([fence for fence in fences if fence is not None] or [NEVER_HELD])
    nodes = [seat.node for seat in slot.spec.seats]
    required = _required(draft, nodes)
    if proven.level.rank < required.rank:
        text = (
            f"{proven.proof.value} reached {proven.level.value}, failover.fence.require is {required.value}"
        )
        reason = Reason("FenceNotEnforceable", f"{text}: stop the engine on {', '.join(nodes)} by hand")
        draft.block(key_of(slot), reason)
        return
    draft.mark(key_of(remap), StageName.FENCE)
    draft.act(_bind(draft, remap, slot, proven))


def _required(draft: Draft, nodes: Sequence[str]) -> FenceLevel:
    """The level that the policy of the old place asks for; the highest while that policy is unknown."""
    if any(domain_unknown(draft.snapshot, node) is not None for node in nodes):
        return FenceLevel.PROCESS
    return policy_of(supernode_of(draft.snapshot, nodes[0]) if nodes else None).fence.require


def _fence(draft: Draft, slot: EngineSlot, seat: Seat) -> Fence | None:
    return fence_of_seat(
        key_of(slot),
        slot.spec.epoch,
        draft.snapshot.agents.get(seat.node),
        devices=seat.devices,
        booted_as=draft.moves.boot_left(slot, seat.node),
        host_is_dead=draft.judgement.is_dead(seat.node),
    )


def _bind(draft: Draft, remap: Remap, slot: EngineSlot, fence: Fence) -> BindSlot:
    """The write that decides who holds the slot: vacated and bound at once."""
    left = {seat.index for seat in remap.spec.from_}
    kept = [seat for seat in slot.spec.seats if seat.index not in left]
    spec = slot.spec.model_copy(
        update={
            "operator_epoch": draft.snapshot.leadership.operator_epoch,
            "seats": tuple(sorted([*kept, *remap.spec.to], key=lambda seat: seat.index)),
            "epoch": remap.spec.epoch,
            "fenced_by": FencedBy(
                epoch=slot.spec.epoch, level=fence.level, proof=fence.proof, at=draft.now.text()
            ),
        }
    )
    reason = Reason("Bind", f"epoch {slot.spec.epoch} is over ({fence.proof.value}, {fence.level.value})")
    draft.explain(f"slot {key_of(slot)}", reason)
    return BindSlot(key_of(slot), slot.metadata.resource_version, spec, key_of(remap), reason)


# -- after the slot is bound


def _after_bind(
    draft: Draft, remap: Remap, slot: EngineSlot, group: PDGroup | None, need: Need | None
) -> None:
    key = key_of(remap)
    _mark_bound(draft, key, slot)
    if need is not None and need.is_urgent:
        _end(draft, remap, RemapPhase.FAILED, Reason("LostBeforeServing", need.cause))
        return
    engine = attached(draft.snapshot, slot, draft.pods, draft.now)
    if remap.spec.kind is not RemapKind.INITIAL and group is not None:
        _mark_late_cordon(draft, remap, slot, group)
    if engine is None:
        _wait(draft, remap, slot, ENGINE_SECONDS, "EngineNotReady", "an engine to attach to the new seat")
        return
    draft.mark(key, StageName.ENGINE_READY)
    weight = None
    if group is not None:
        weight = acknowledged_weight(draft.snapshot, group, slot, _bound_by_us_at(draft, slot) or 0.0)
    if group is not None and weight == 0:
        _wait(draft, remap, slot, ENGINE_SECONDS, "WeightPending", "an output to acknowledge a first weight")
        return
    draft.mark(key, StageName.SERVING)
    _end(draft, remap, RemapPhase.SUCCEEDED, Reason("Serving", f"{engine.pod_name} serves under its epoch"))
    draft.served.add(key_of(slot))


def _bound_by_us_at(draft: Draft, slot: EngineSlot) -> float | None:
    """When this leader decided the bind; None when an earlier one did: all acknowledgements are newer."""
    fenced = slot.spec.fenced_by
    if fenced is None or slot.spec.operator_epoch != draft.snapshot.leadership.operator_epoch:
        return None
    return draft.now.monotonic_of(fenced.at)


def _mark_bound(draft: Draft, remap: ObjectKey, slot: EngineSlot) -> None:
    """Fence and bind are on record in the slot: a later leader need not guess when they were over."""
    if _bound_by_us_at(draft, slot) is None and slot.spec.fenced_by is not None:
        at = draft.now.monotonic_of(slot.spec.fenced_by.at)
        draft.mark(remap, StageName.FENCE, at)
        draft.mark(remap, StageName.BIND, at)
    draft.mark(remap, StageName.BIND)


def _mark_late_cordon(draft: Draft, remap: Remap, slot: EngineSlot, group: PDGroup) -> None:
    """An urgent move does not wait for its outputs: they may let go of the old place after the bind.

    A weight written after the bind is one of the new place, so an output that carries it has let go too.
    """
    since = _bound_by_us_at(draft, slot) or 0.0
    if is_cordoned(draft.snapshot, group, slot) or acknowledged_weight(draft.snapshot, group, slot, since):
        draft.mark(key_of(remap), StageName.CORDON)


# -- endings and waits


def _end(draft: Draft, remap: Remap, phase: RemapPhase, reason: Reason) -> None:
    """Write the last status. A place that was claimed in vain is released by the next plan."""
    key = key_of(remap)
    stages = {name: at for name in StageName if (at := draft.marked_at(key, name)) is not None}
    if phase is not RemapPhase.SUCCEEDED and draft.moves.was_claimed(remap):
        stages.setdefault(StageName.CLAIM, draft.now.monotonic_seconds)
    blocked = "" if phase is RemapPhase.SUCCEEDED else reason.code
    status = final_status(remap, phase, stages, _fence_on_record(draft, remap), draft.now, blocked)
    draft.act(
        CancelRemap(key, status, reason) if phase is RemapPhase.CANCELLED else WriteRemapStatus(key, status)
    )
    draft.explain(f"slot {slot_of(remap)}", reason)
    good = phase is RemapPhase.SUCCEEDED
    draft.announce(
        Announce("EngineSlot", slot_of(remap), "Normal" if good else "Warning", _told(remap, phase, reason))
    )


def _told(remap: Remap, phase: RemapPhase, reason: Reason) -> Reason:
    places = ", ".join(f"{seat.node}/{'+'.join(seat.devices)}" for seat in remap.spec.to)
    verb = {"Succeeded": "took its place on", "Failed": "could not move to", "Cancelled": "stays off"}
    code = {"Succeeded": "Remapped", "Failed": "RemapFailed", "Cancelled": "RemapCancelled"}
    text = f"{remap.spec.kind.value}: slot {remap.spec.slot} {verb[phase.value]} {places} under epoch "
    return Reason(code[phase.value], f"{text}{remap.spec.epoch}: {remap.spec.cause}; {reason.message}")


def _fence_on_record(draft: Draft, remap: Remap) -> RemapFence | None:
    slot = draft.snapshot.slots.get(slot_of(remap))
    if slot is None or slot.spec.epoch != remap.spec.epoch or slot.spec.fenced_by is None:
        return remap.status.fence
    return recorded_fence(Fence(slot.spec.fenced_by.proof, slot.spec.fenced_by.level))


def _wait(draft: Draft, remap: Remap, slot: EngineSlot, most_seconds: float, code: str, what: str) -> None:
    """Say what the move waits for; `most_seconds` after it was opened or bound it counts as blocked."""
    reason = Reason(code, f"move {remap.metadata.name} waits for {what}")
    bound_at = draft.marked_at(key_of(remap), StageName.BIND)
    age = _age_seconds(draft, remap) if bound_at is None else draft.now.monotonic_seconds - bound_at
    if age > most_seconds:
        draft.block(key_of(slot), reason)
    else:
        draft.explain(f"slot {key_of(slot)}", reason)
        draft.look_again(draft.now.monotonic_seconds + most_seconds - age + 0.001)


def _age_seconds(draft: Draft, remap: Remap) -> float:
    """How long the move has been open, as well as can be told."""
    made = remap.metadata.creation_timestamp
    return draft.now.monotonic_seconds - draft.now.monotonic_of(made) if made else 0.0
