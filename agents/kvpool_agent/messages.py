"""Between the wire and the agent's own types: the only place that knows both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from kvpool.rules.lease import PeerState
from kvpool.wire.convert_bounds import MAX_ITEMS, MAX_NAME
from kvpool.wire.v1alpha1 import agent_pb2 as wire
from kvpool_agent.devices.base import Device, Fault
from kvpool_agent.lease import Member
from kvpool_agent.node_state import EngineView, NodeState
from kvpool_agent.peers import Sighting
from kvpool_agent.seats import PlannedSeat, SeatRecord, SeatState
from kvpool_agent.units import Source, UnitPlan, UnitView
from kvpool_keeper.contract import MooncakeMount, Release

MILLISECONDS = 1000
LONGEST_MESSAGE = 512

_RELEASES = {wire.RELEASE_MODE_DRAIN: Release.DRAIN, wire.RELEASE_MODE_NOW: Release.NOW}
_SEAT_STATES = {
    SeatState.WAITING: wire.SEAT_STATE_WAITING,
    SeatState.ATTACHED: wire.SEAT_STATE_ATTACHED,
    SeatState.STOPPING: wire.SEAT_STATE_STOPPING,
    SeatState.RELEASED: wire.SEAT_STATE_RELEASED,
}
_PEER_LEASES = {
    None: wire.PEER_LEASE_UNSPECIFIED,
    PeerState.HELD: wire.PEER_LEASE_HELD,
    PeerState.LOST: wire.PEER_LEASE_LOST,
}


class MalformedPlanError(ValueError):
    """A plan of the operator makes no sense; the message names the field. The old plan stays in force."""


def plan_units(plan: wire.NodePlan) -> tuple[UnitPlan, ...]:
    """Read the units of a plan. Raises MalformedPlanError."""
    for number, unit in enumerate(plan.units):
        if not unit.name or not unit.generation or not unit.size_bytes or not unit.backend:
            raise MalformedPlanError(
                f"units[{number}] ({unit.name!r}): name, generation, size_bytes and backend must be set"
            )
        if "\x00" in unit.name + unit.path:
            raise MalformedPlanError(f"units[{number}]: name and path must not contain NUL")
    try:
        return tuple(_unit_plan(unit) for unit in plan.units)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise MalformedPlanError(f"a unit's {field} is {first['input']!r}: {first['msg']}") from error


def plan_seats(plan: wire.NodePlan) -> tuple[PlannedSeat, ...]:
    """Read the seats of a plan. Raises MalformedPlanError."""
    for number, seat in enumerate(plan.seats):
        if not seat.slot or not seat.epoch:
            raise MalformedPlanError(f"seats[{number}] ({seat.slot!r}): slot and epoch must be set")
    return tuple(PlannedSeat(s.slot, s.epoch, tuple(s.devices), s.pod_uid) for s in plan.seats)


def plan_retires(plan: wire.NodePlan) -> bool:
    """Whether a plan tells the agent to retire. Raises MalformedPlanError when it names something to hold."""
    if plan.retire and (plan.units or plan.seats):
        raise MalformedPlanError(
            f"retire is set, and so are {len(plan.units)} units and {len(plan.seats)} seats"
        )
    return plan.retire


def roster_members(roster: wire.Roster) -> tuple[Member, ...]:
    """Read the guard group."""
    return tuple(Member(m.node_name, m.peer_address, m.host_address, m.board) for m in roster.members)


def report(state: NodeState, now_boottime_seconds: float, now_wall_seconds: float) -> wire.Report:
    """Write a Report of all the agent sees."""
    return wire.Report(
        applied_revision=state.applied_revision,
        units=[_unit_report(unit) for unit in state.units],
        seats=[_seat_report(seat) for seat in _told(state.seats)],
        devices=[_device_report(device, now_wall_seconds) for device in state.devices],
        sources=[_source_report(source) for source in state.sources[:MAX_ITEMS]],
        age_ms=_age_ms(now_boottime_seconds, state.observed_at_seconds),
        engines=[_engine_report(engine) for engine in state.engines],
        refused_epochs=state.refused_epochs,
        loop_age_seconds=state.loop_ages,
        retired=state.retired,
        holders_age_ms=None
        if state.holders_at_seconds is None
        else _age_ms(now_wall_seconds, state.holders_at_seconds),
    )


def renew(
    seq: int, roster_revision: int, sightings: Mapping[str, Sighting], now_boottime_seconds: float
) -> wire.Renew:
    """Write a Renew with what is known of the peers."""
    return wire.Renew(
        seq=seq,
        roster_revision=roster_revision,
        reachability=[
            wire.PeerReachability(
                node_name=node,
                reached=seen.reached,
                age_ms=_age_ms(now_boottime_seconds, seen.at_seconds),
                lease=_PEER_LEASES[seen.state],
            )
            for node, seen in sorted(sightings.items())
        ],
    )


def evidence(device: Device, fault: Fault, now_wall_seconds: float) -> wire.Evidence:
    """Write one finding about a device."""
    return wire.Evidence(
        device=device.id,
        uuid=device.uuid,
        source=fault.source,
        code=fault.code,
        evidence_class=fault.evidence_class.value,
        count=len(fault.seen_at_seconds),
        first_age_ms=_age_ms(now_wall_seconds, fault.seen_at_seconds[0]),
        last_age_ms=_age_ms(now_wall_seconds, fault.seen_at_seconds[-1]),
        recent_age_ms=[_age_ms(now_wall_seconds, at) for at in fault.seen_at_seconds[-32:]],
    )


def _age_ms(now_seconds: float, then_seconds: float) -> int:
    """Return an age; what lies in the future is new."""
    return max(0, int((now_seconds - then_seconds) * MILLISECONDS))


def printable(name: str) -> str:
    """Return what the operator takes for a name: it refuses a whole Report for one that it does not."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:MAX_NAME]


def _told(seats: tuple[SeatRecord, ...]) -> Iterable[SeatRecord]:
    """As many seats as the operator takes: the newest, and those that are over last."""
    by_weight = sorted(seats, key=lambda seat: (seat.state is SeatState.RELEASED, -seat.epoch))
    return sorted(by_weight[:MAX_ITEMS], key=lambda seat: seat.key)


def _text(message: str) -> str:
    """Cut what names files, which may be any bytes, to what the wire takes."""
    return message[:LONGEST_MESSAGE].encode(errors="replace").decode()


def _unit_plan(unit: wire.Unit) -> UnitPlan:
    target = unit.mooncake
    return UnitPlan(
        name=unit.name,
        generation=unit.generation,
        size_bytes=unit.size_bytes,
        backend=unit.backend,
        pool=unit.pool,
        tier=unit.tier,
        numa_node=unit.numa_node,
        path=unit.path,
        reserve_bytes=unit.reserve_bytes,
        mooncake=MooncakeMount(
            master=target.master,
            admin=target.admin,
            metadata_server=target.metadata_server or "P2PHANDSHAKE",
            protocol=target.protocol or "tcp",
            devices=target.devices,
        )
        if unit.HasField("mooncake")
        else None,
        adopt=unit.adopt,
        release=_RELEASES.get(unit.release, Release.NONE),
        unmount_at_deadline=unit.unmount_at_deadline,
    )


def _unit_report(unit: UnitView) -> wire.UnitReport:
    return wire.UnitReport(
        name=unit.name,
        generation=unit.generation,
        phase=unit.phase,
        size_bytes=unit.size_bytes,
        resident_bytes=unit.resident_bytes,
        used_bytes=unit.used_bytes,
        placement=unit.placement,
        placement_verified=unit.placement_verified,
        segment=printable(unit.segment),
        findings=[
            wire.Finding(reason=finding.reason, message=_text(finding.message)) for finding in unit.findings
        ],
        message=_text(unit.message),
    )


def _seat_report(seat: SeatRecord) -> wire.SeatReport:
    return wire.SeatReport(
        slot=seat.slot,
        epoch=seat.epoch,
        state=_SEAT_STATES[seat.state],
        pod_uid=seat.pod_uid,
        pod_name=seat.pod_name,
        endpoint=seat.endpoint,
        fence_level=seat.fence_level.value,
    )


def _device_report(device: Device, now_wall_seconds: float) -> wire.DeviceReport:
    return wire.DeviceReport(
        id=device.id,
        uuid=device.uuid,
        holder_pod_uid=device.holder_pod_uid,
        evidence=[evidence(device, fault, now_wall_seconds) for fault in device.faults],
        observed=device.observed,
        holder_pods=device.holder_pods,
        holder_unknown=not device.holder_known,
    )


def _source_report(source: Source) -> wire.SourceReport:
    return wire.SourceReport(
        key=printable(source.key),
        tier=source.tier,
        backend=source.backend,
        numa_node=source.numa_node,
        capacity_bytes=source.capacity_bytes,
        free_bytes=source.free_bytes,
    )


def _engine_report(engine: EngineView) -> wire.EngineReport:
    return wire.EngineReport(
        pod_uid=engine.pod_uid,
        pod_name=engine.pod_name,
        endpoint=engine.endpoint,
        devices=engine.devices,
        standby=engine.standby,
        readiness=engine.readiness,
        hbm_kv_bytes=engine.hbm_kv_bytes,
        slot=engine.slot,
        requests_running=engine.requests_running,
    )
