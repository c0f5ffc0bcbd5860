"""Which engine sits on a slot, under which epoch, and what routers are known to give it."""

from typing import Final

from kvpool.api.common import Role
from kvpool.api.engineslot import Attached, EngineSlot, Seat
from kvpool.api.pdgroup import Attach, Output, PDGroup
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.observations import HOLDER_UNKNOWN, AgentView, OutputAck, SeatPhase
from kvpool.model.snapshot import Snapshot
from kvpool.plan.engines import PodBook, is_engine_pod, is_standby_pod, lives, role_spec, selector_of
from kvpool.plan.moves import key_of
from kvpool.rules.fencing import seat_under

REATTACH_GRACE_SECONDS: Final = 5.0
"""How long after an agent's Hello an engine that was attached is still taken to be: it dials again.

In the same boot, that is: no engine outlives its host."""


def attached(snapshot: Snapshot, slot: EngineSlot, pods: PodBook, now: Instant) -> Attached | None:
    """Return the engine on the slot's first seat, when engines sit on all seats under the slot's epoch."""
    found = [_on_seat(snapshot, slot, seat, pods, now) for seat in slot.spec.seats]
    if not found or any(engine is None for engine in found):
        return None
    return found[0]


def _on_seat(
    snapshot: Snapshot, slot: EngineSlot, seat: Seat, pods: PodBook, now: Instant
) -> Attached | None:
    agent = snapshot.agents.get(seat.node)
    if agent is None:
        return _remembered(slot)
    view = seat_under(key_of(slot), slot.spec.epoch, agent)
    if view is not None and view.phase is SeatPhase.ATTACHED:
        if _is_a_stranger(snapshot, slot, pods, view.pod_uid):
            return None
        return Attached(
            pod_uid=view.pod_uid, pod_name=view.pod_name, endpoint=view.endpoint, epoch=slot.spec.epoch
        )
    if view is None or view.phase is SeatPhase.WAITING:
        third_party = _by_device(snapshot, slot, seat, agent, pods)
        if third_party is not None:
            return third_party
        if now.monotonic_seconds < agent.hello_at + REATTACH_GRACE_SECONDS and not _booted_anew(
            snapshot, agent
        ):
            return _remembered(slot)
    return None


def _booted_anew(snapshot: Snapshot, agent: AgentView) -> bool:
    """Whether no engine of before can dial again: the node runs in another boot than it did when last heard.

    A new leader never heard it before: to it the KVNode tells, until its status names the new boot.
    """
    kvnode = snapshot.kvnodes.get(agent.node)
    written = kvnode.status.boot_id if kvnode is not None else ""
    return agent.booted_anew or bool(written and agent.boot_id and written != agent.boot_id)


def _is_a_stranger(snapshot: Snapshot, slot: EngineSlot, pods: PodBook, pod_uid: str) -> bool:
    """Whether the pod that sits on the seat is surely none of the slot's group: agents know no selectors.

    A pod that was not seen yet is no stranger, nor is any while the group or what it selects is unknown; nor
    one that the slot's status names: a changed selector takes no engine off that serves.
    """
    group = snapshot.groups.get(ObjectKey(slot.metadata.namespace, slot.spec.pd_group))
    spec = role_spec(group, slot.spec.role) if group is not None else None
    pod = pods.by_uid(pod_uid)
    remembered = _remembered(slot)
    if remembered is not None and remembered.pod_uid == pod_uid:
        return False
    if group is None or spec is None or pod is None or selector_of(snapshot, group, spec) is None:
        return False
    return not is_engine_pod(snapshot, group, spec, pod) and not is_standby_pod(group, spec, pod)


def _remembered(slot: EngineSlot) -> Attached | None:
    """What the slot's status says, while nobody else can say anything."""
    known = slot.status.attached
    return known if known is not None and known.epoch == slot.spec.epoch else None


def _by_device(
    snapshot: Snapshot, slot: EngineSlot, seat: Seat, agent: AgentView, pods: PodBook
) -> Attached | None:
    """The pod that holds the seat's devices, for roles whose seats follow pods: it knows no epochs itself."""
    group = snapshot.groups.get(ObjectKey(slot.metadata.namespace, slot.spec.pd_group))
    spec = role_spec(group, slot.spec.role) if group is not None else None
    if group is None or spec is None or spec.attach is not Attach.OBSERVE:
        return None
    holders = {device.holder for device in agent.devices if device.id in seat.devices}
    remembered = _remembered(slot)
    if holders == {HOLDER_UNKNOWN} and remembered is not None:
        holders = {remembered.pod_uid}  # nobody can say who holds them: that takes no seat away
    pod = pods.by_uid(next(iter(holders))) if len(holders) == 1 else None
    if pod is None or not lives(pod) or not pod.ready or not is_engine_pod(snapshot, group, spec, pod):
        return None
    return Attached(
        pod_uid=pod.uid,
        pod_name=str(pod.key),
        endpoint=f"{pod.address}:{spec.port}",
        epoch=slot.spec.epoch,
    )


def outputs_of(group: PDGroup, role: Role) -> tuple[Output, ...]:
    """Return the group's outputs that carry a role's weights."""
    return tuple(output for output in group.spec.routing.outputs if output.role is role)


def acks_of(snapshot: Snapshot, group: PDGroup, role: Role) -> dict[str, OutputAck | None]:
    """Return what each output of a role is known to carry; None for one that acknowledged nothing yet."""
    key = ObjectKey(group.metadata.namespace, group.metadata.name)
    known = {ack.output: ack for ack in snapshot.acks if ack.group == key}
    return {output.name: known.get(output.name) for output in outputs_of(group, role)}


def acknowledged_weight(snapshot: Snapshot, group: PDGroup, slot: EngineSlot, since: float) -> int | None:
    """Return the highest weight that an output is known to give the slot, written at `since` or later.

    None when the role has no outputs: then there is nobody to ask.
    """
    acks = acks_of(snapshot, group, slot.spec.role)
    if not acks:
        return None
    weights = [
        ack.weights.get(slot.metadata.name, 0)
        for ack in acks.values()
        if ack is not None and ack.written_at >= since
    ]
    return max(weights, default=0)


def weight_to_show(snapshot: Snapshot, group: PDGroup, slot: EngineSlot, asked: int) -> int:
    """Return what people are told that routers give the slot.

    What was asked, where there is no output; what was last written under the slot's epoch, while no output
    has been heard by this leader: routers go on with that.
    """
    acks = acks_of(snapshot, group, slot.spec.role)
    if not acks:
        return asked
    heard = [ack.weights.get(slot.metadata.name, 0) for ack in acks.values() if ack is not None]
    if heard:
        return max(heard)
    return slot.status.weight_acknowledged if _remembered(slot) is not None else 0


def is_cordoned(snapshot: Snapshot, group: PDGroup, slot: EngineSlot) -> bool:
    """Whether every output is known to give the slot nothing (also when there is no output)."""
    acks = acks_of(snapshot, group, slot.spec.role).values()
    return all(ack is not None and not ack.weights.get(slot.metadata.name, 0) for ack in acks)
