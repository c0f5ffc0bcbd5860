"""Gives back what is not held any more, and keeps failed devices out of use: one write for each node."""

from dataclasses import dataclass, field

from kvpool.api.duration import parse_duration
from kvpool.api.engineslot import EngineSlot
from kvpool.api.kvnode import Claim, DeviceVerdict, KVNode, Quarantined
from kvpool.model.decisions import Reason, ReleaseClaims
from kvpool.model.ids import DeviceRef, ObjectKey
from kvpool.plan.domains import domain_unknown, policy_of, supernode_of
from kvpool.plan.draft import Draft
from kvpool.plan.moves import devices_of

ORPHAN_SECONDS = 30.0
"""How long a leader watches before it takes the claim of a slot that it never saw for a leftover."""


@dataclass(slots=True)
class _Batch:
    """What one node's write does."""

    devices: list[str] = field(default_factory=list)
    quarantine: list[Quarantined] = field(default_factory=list)
    lift: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


def settle(draft: Draft, given_up: frozenset[ObjectKey]) -> None:
    """Decide the releases of every node. `given_up` are deleting slots whose seats are fenced."""
    for node in sorted(draft.snapshot.kvnodes):
        batch = _batch(draft, draft.snapshot.kvnodes[node], given_up)
        if not batch.told:
            continue
        draft.act_on_node(
            node,
            ReleaseClaims(
                node,
                draft.snapshot.kvnodes[node].metadata.resource_version,
                tuple(batch.devices),
                tuple(batch.quarantine),
                tuple(batch.lift),
                Reason("Release", "; ".join(batch.told)[:1024]),
            ),
        )


def _batch(draft: Draft, kvnode: KVNode, given_up: frozenset[ObjectKey]) -> _Batch:
    batch = _Batch()
    node = kvnode.metadata.name
    for claim in kvnode.spec.claims:
        why = _why_over(draft, node, claim, given_up)
        if why is None:
            continue
        batch.devices.append(claim.device)
        batch.told.append(f"{claim.device}: {why}")
        entry = _quarantine(draft, node, claim)
        if entry is not None:
            batch.quarantine.append(entry)
    for quarantined in kvnode.spec.quarantine:
        _review(draft, node, quarantined, batch)
    return batch


def _why_over(draft: Draft, node: str, claim: Claim, given_up: frozenset[ObjectKey]) -> str | None:
    """Say why a claim holds nothing any more; None while it may, as for a slot that cannot be read.

    A claim for an epoch that its slot has not reached is never released here: a bind that was decided on it
    may still be on its way.
    """
    key = ObjectKey.of(claim.slot)
    slot = draft.snapshot.slots.get(key)
    if slot is None:
        if draft.snapshot.may_exist("EngineSlot", key):
            return None
        watched = draft.now.monotonic_seconds - draft.snapshot.leadership.since
        if watched < ORPHAN_SECONDS:
            draft.look_again(draft.snapshot.leadership.since + ORPHAN_SECONDS)
            return None
        return f"slot {key} does not exist"
    if key in given_up:
        return f"slot {key} is being deleted and its engine is out"
    if slot.spec.epoch > claim.epoch and DeviceRef(node, claim.device) not in devices_of(slot.spec.seats):
        return f"slot {key} moved on to epoch {slot.spec.epoch}"
    return None


def _quarantine(draft: Draft, node: str, claim: Claim) -> Quarantined | None:
    """A device that was left because it failed must be clean for a while before it is a spare again."""
    reason = _blemish(draft, node, claim.device)
    if reason is None:
        return None
    move = draft.moves.last_off(ObjectKey.of(claim.slot), DeviceRef(node, claim.device))
    return Quarantined(
        device=claim.device,
        # What is there now is what failed; a claim may have been made before its UUID was known.
        uuid=_uuid_seen(draft, node, claim.device) or claim.uuid,
        reason=reason[:256],
        incident=move.spec.incident if move is not None else "",
        since=draft.now.text(),
    )


def _blemish(draft: Draft, node: str, device: str) -> str | None:
    finding = draft.judgement.device(node, device)
    if finding.verdict in (DeviceVerdict.FAULTY, DeviceVerdict.DEGRADED):
        return finding.reason.message
    if draft.judgement.is_dead(node):
        return draft.judgement.host(node).reason.message
    return None


def _review(draft: Draft, node: str, entry: Quarantined, batch: _Batch) -> None:
    """Lift a quarantine once its device was clean for `healthyDelay`; push it on while it is not.

    Only `since` is on record, so it is renewed every half delay while the device is not known to be healthy:
    then one and a half delays after it, the device was clean for at least one.
    """
    delay = parse_duration(policy_of(supernode_of(draft.snapshot, node)).evidence.healthy_delay)
    since = draft.now.monotonic_of(entry.since)
    healthy = (
        draft.judgement.device(node, entry.device).verdict is DeviceVerdict.HEALTHY
        and domain_unknown(draft.snapshot, node) is None
    )
    if _is_other_device(draft, node, entry):
        batch.lift.append(entry.device)
        batch.told.append(f"{entry.device}: another device is there now")
    elif healthy and draft.now.monotonic_seconds >= since + 1.5 * delay:
        batch.lift.append(entry.device)
        batch.told.append(f"{entry.device}: clean for {delay:.0f} s")
    elif healthy:
        draft.look_again(since + 1.5 * delay)
    elif draft.now.monotonic_seconds >= since + 0.5 * delay:
        batch.quarantine.append(entry.model_copy(update={"since": draft.now.text()}))
        batch.told.append(f"{entry.device}: still not known to be healthy")
    else:
        draft.look_again(since + 0.5 * delay)


def _is_other_device(draft: Draft, node: str, entry: Quarantined) -> bool:
    uuid = _uuid_seen(draft, node, entry.device)
    return bool(entry.uuid and uuid and uuid != entry.uuid)


def _uuid_seen(draft: Draft, node: str, device: str) -> str:
    """What the node's agent said last; empty when it said none."""
    agent = draft.snapshot.agents.get(node)
    seen = agent.devices if agent is not None else ()
    return next((view.uuid for view in seen if view.id == device), "")


def has_claims(draft: Draft, slot: EngineSlot) -> bool:
    """Whether any device is still claimed for the slot."""
    name = f"{slot.metadata.namespace}/{slot.metadata.name}"
    return any(
        claim.slot == name for kvnode in draft.snapshot.kvnodes.values() for claim in kvnode.spec.claims
    )
