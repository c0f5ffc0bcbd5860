"""Observations as our objects' statuses tell them: for whoever has no agent streams, such as a command line.

A status is written rarely and says less than a stream: what it does not say (peers' words, single sightings
of evidence) is unknown in the rebuilt views, and figures are as old as the status. Nothing here may decide a
write; it serves to explain and to foresee.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kvpool.api import EngineSlot, KVNode, KVPool, PDGroup
from kvpool.api.conditions import Condition, ConditionType, find_condition
from kvpool.api.kvnode import DeviceStatus, DeviceVerdict, SourceStatus, UnitStatus
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.observations import (
    AgentView,
    DeviceView,
    EngineView,
    EvidenceView,
    LeaseView,
    OutputAck,
    PodFact,
    SeatPhase,
    SeatView,
    SourceView,
    StoreView,
    UnitView,
)
from kvpool.model.snapshot import Snapshot
from kvpool.plan.domains import lease_terms
from kvpool.plan.engines import is_standby_pod, roles_of
from kvpool.plan.kvnodes import STATUS_SECONDS
from kvpool.plan.sizes import bytes_or_none

_SIGHTINGS_MOST: Final = 1000


def with_observations(snapshot: Snapshot, now: Instant) -> Snapshot:
    """Return the snapshot with agents, stores and acknowledgements as its objects' statuses tell them."""
    return replace(
        snapshot,
        agents=agents_from_status(snapshot, now),
        stores={
            key: view
            for key, pool in snapshot.pools.items()
            if (view := store_from_status(key, pool, now)) is not None
        },
        acks=tuple(
            ack
            for group in snapshot.groups.values()
            for ack in acks_from_status(group, snapshot.slots.values(), now)
        ),
    )


def agents_from_status(snapshot: Snapshot, now: Instant) -> dict[str, AgentView]:
    """Return the view of every agent that has reported to the operator at least once."""
    return {
        name: _agent(snapshot, kvnode, now)
        for name, kvnode in snapshot.kvnodes.items()
        if kvnode.status.last_report is not None
    }


def _agent(snapshot: Snapshot, kvnode: KVNode, now: Instant) -> AgentView:
    """The agent as it was last written; times that cannot be read count as now."""
    node, status = kvnode.metadata.name, kvnode.status
    connected = find_condition(status.conditions, ConditionType.AGENT_CONNECTED)
    is_connected = connected is not None and connected.status == "True"
    reported_at = _moment(status.last_report, now)
    if is_connected:
        # While an agent is connected, its status is written again only after STATUS_SECONDS.
        reported_at = min(now.monotonic_seconds, reported_at + STATUS_SECONDS)
    return AgentView(
        node=node,
        boot_id=status.boot_id,
        incarnation=status.incarnation,
        agent_version=status.agent_version,
        pod_uid="",
        connected=is_connected,
        hello_at=min(reported_at, _moment(connected.last_transition_time if connected else None, now)),
        reported_at=reported_at,
        leaving_until=None,
        lease=_lease(snapshot, node, find_condition(status.conditions, ConditionType.LEASE_HELD), now),
        applied_revision=status.applied_revision,
        highest_operator_epoch=kvnode.spec.operator_epoch,
        roster_revision=0,
        units=tuple(_unit(unit) for unit in status.units),
        seats=tuple(_seats(snapshot, node)),
        devices=tuple(_device(device, now) for device in status.devices),
        sources=tuple(_source(source) for source in status.sources),
        engines=tuple(_standbys(snapshot, kvnode)),
    )


def _moment(text: str | None, now: Instant) -> float:
    try:
        return min(now.monotonic_seconds, now.monotonic_of(text)) if text else now.monotonic_seconds
    except (TypeError, ValueError):
        return now.monotonic_seconds


def _lease(snapshot: Snapshot, node: str, held: Condition | None, now: Instant) -> LeaseView:
    """Held: granted just now. Expired: granted so long ago that it ran out when the condition says so."""
    terms = lease_terms(snapshot, node)
    granted: float | None = None
    if held is not None and held.status == "True":
        granted = now.monotonic_seconds
    elif held is not None and held.reason == "Expired":
        granted = _moment(held.last_transition_time, now) - terms.ttl_seconds - terms.max_skew_seconds
    return LeaseView(granted, terms.ttl_seconds, terms.max_skew_seconds)


def _unit(unit: UnitStatus) -> UnitView:
    return UnitView(
        name=unit.name,
        generation=unit.generation,
        phase=unit.phase,
        size_bytes=unit.size_bytes,
        resident_bytes=unit.resident_bytes,
        used_bytes=unit.used_bytes,
        placement={entry.numa_node: entry.size_bytes for entry in unit.placement},
        placement_verified=unit.placement_verified,
        segment=unit.segment,
        findings=tuple((finding.reason, finding.message) for finding in unit.findings),
        message=unit.message,
    )


def _source(source: SourceStatus) -> SourceView:
    return SourceView(
        key=source.key,
        tier=source.tier,
        backend=source.backend,
        numa_node=source.numa_node,
        capacity_bytes=bytes_or_none(source.capacity) or 0,
        free_bytes=bytes_or_none(source.free) or 0,
    )


def _device(device: DeviceStatus, now: Instant) -> DeviceView:
    """The device; its status does not list sightings one by one, so all count as late as the last."""
    evidence = tuple(
        EvidenceView(
            source=found.source,
            code=found.code,
            declared_class=found.evidence_class,
            count=found.count,
            first_seen=_moment(found.first_seen, now),
            last_seen=(last := _moment(found.last_seen, now)),
            recent=(last,) * min(found.count, _SIGHTINGS_MOST),
        )
        for found in device.evidence
    )
    observed = device.verdict is not DeviceVerdict.UNKNOWN
    return DeviceView(device.id, device.uuid, device.holder, evidence, observed)


def _seats(snapshot: Snapshot, node: str) -> Iterable[SeatView]:
    """The seats of slots on the node: attached where the slot's status says so."""
    for key, slot in sorted(snapshot.slots.items()):
        known = slot.status.attached
        current = known if known is not None and known.epoch == slot.spec.epoch else None
        for seat in slot.spec.seats:
            if seat.node == node:
                yield SeatView(
                    slot=key,
                    epoch=slot.spec.epoch,
                    phase=SeatPhase.ATTACHED if current is not None else SeatPhase.WAITING,
                    pod_uid=current.pod_uid if current is not None else "",
                    pod_name=current.pod_name if current is not None else "",
                    endpoint=current.endpoint if current is not None else "",
                    fence_level="ContentOnly",
                )


def _standbys(snapshot: Snapshot, kvnode: KVNode) -> Iterable[EngineView]:
    """Warm engines on the node: pods that a group names as standbys and that hold devices."""
    held: dict[str, list[str]] = {}
    for device in kvnode.status.devices:
        if device.holder:
            held.setdefault(device.holder, []).append(device.id)
    seated = {slot.status.attached.pod_uid for slot in snapshot.slots.values() if slot.status.attached}
    for _, pod in sorted(snapshot.pods.items()):
        if pod.uid in held and pod.uid not in seated and pod.ready and _is_standby(snapshot, pod):
            yield EngineView(
                pod_uid=pod.uid,
                pod_name=str(pod.key),
                endpoint="",
                devices=tuple(sorted(held[pod.uid])),
                standby=True,
                readiness="EngineReady",
                slot="",
                requests_running=0,
                hbm_kv_bytes=0,
            )


def _is_standby(snapshot: Snapshot, pod: PodFact) -> bool:
    return any(
        is_standby_pod(group, spec, pod) for group in snapshot.groups.values() for _, spec in roles_of(group)
    )


def store_from_status(key: ObjectKey, pool: KVPool, now: Instant) -> StoreView | None:
    """Return what a pool's status says of its store, without segments; None where it says nothing."""
    said = find_condition(pool.status.conditions, ConditionType.STORE_REACHABLE)
    if said is None or said.status == "Unknown":
        return None
    return StoreView(key, said.status == "True", now.monotonic_seconds, message=said.message)


def acks_from_status(group: PDGroup, slots: Iterable[EngineSlot], now: Instant) -> Iterable[OutputAck]:
    """Return what each output of a group is known to carry: the slots' acknowledged weights."""
    meta = group.metadata
    mine = [
        slot
        for slot in slots
        if slot.metadata.namespace == meta.namespace and slot.spec.pd_group == meta.name
    ]
    roles = {output.name: output.role for output in group.spec.routing.outputs}
    for output in group.status.routing.outputs:
        if output.acknowledged != "Pending" and output.name in roles:
            at = _moment(output.at, now)
            weights = {
                slot.metadata.name: slot.status.weight_acknowledged
                for slot in mine
                if slot.spec.role is roles[output.name]
            }
            key = ObjectKey(meta.namespace, meta.name)
            yield OutputAck(
                key, output.name, output.revision, output.acknowledged == "Observed", at, at, weights
            )
