"""What one side writes, the other reads as it was meant: the agent's own types, the wire, the operator's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.api.kvnode import UnitPhase
from kvpool.api.supernode import EvidenceClass
from kvpool.model import observations as read
from kvpool.model.ids import ObjectKey
from kvpool.model.nodeplan import (
    LeaseTerms,
    MooncakeTarget,
    NodePlanData,
    PlannedSeat,
    PlannedUnit,
    RosterMember,
)
from kvpool.rules.lease import PeerState
from kvpool.wire.convert_agent import EvidenceData, RenewData, agent_message_from_wire
from kvpool.wire.convert_operator import (
    GrantData,
    NotLeaderData,
    PlanData,
    WelcomeData,
    operator_message_to_wire,
)
from kvpool.wire.convert_report import ReportData
from kvpool.wire.v1alpha1 import agent_pb2 as pb
from kvpool_agent import messages
from kvpool_agent.devices.base import Device, Fault
from kvpool_agent.lease import Member
from kvpool_agent.node_state import EngineView, NodeState
from kvpool_agent.peers import Sighting
from kvpool_agent.seats import PlannedSeat as AgentSeat
from kvpool_agent.seats import SeatRecord, SeatState
from kvpool_agent.units import Finding, Source, UnitPlan, UnitView
from kvpool_keeper.contract import MooncakeMount, Release

T = TypeVar("T")
BOOTTIME, WALL, ARRIVED = 65_536.0, 2_097_152.0, 524_288.0
"""The agent's two clocks and the operator's. Ages are multiples of 1/8 s, which floats hold exactly."""

letters = st.characters(categories=["L", "N", "P"], exclude_characters="/")
words = st.text(letters, max_size=40)
names = st.text(letters, min_size=1, max_size=40)
keys = st.builds(ObjectKey, names, names)
slots = keys.map(str)
counts = st.integers(0, 2**63 - 1)
ages = st.integers(0, 8 * 3600).map(lambda eighths: eighths / 8)
numa = st.integers(-1, 1023)
tiers = st.sampled_from(["DRAM", "CXL", "SSD"])
backends = st.sampled_from(["tmpfs", "file"])


def lists(
    element: st.SearchStrategy[T], key: Callable[[T], object] | None = None
) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(element, max_size=3, unique_by=key).map(tuple)


# What an agent sees, in its own types

faults = st.builds(
    Fault,
    source=names,
    code=names,
    evidence_class=st.sampled_from(EvidenceClass),
    seen_at_seconds=st.lists(ages, min_size=1, max_size=40).map(
        lambda all_ages: tuple(WALL - age for age in sorted(all_ages, reverse=True))
    ),
)
devices = st.builds(
    Device,
    id=names,
    uuid=words,
    holder_pod_uid=words,
    faults=lists(faults, lambda fault: (fault.source, fault.code)),
    observed=st.booleans(),
    holder_pods=lists(slots, str),
    holder_known=st.booleans(),
)
units = st.builds(
    UnitView,
    name=names,
    generation=counts,
    phase=st.sampled_from([phase.value for phase in UnitPhase]),
    size_bytes=counts,
    resident_bytes=counts,
    used_bytes=st.none() | counts,
    placement=st.dictionaries(numa, counts, max_size=3),
    placement_verified=st.booleans(),
    segment=words,
    findings=lists(st.builds(Finding, reason=words, message=words)),
    message=words,
)
seats = st.builds(
    SeatRecord,
    slot=slots,
    epoch=counts,
    devices=lists(names),
    state=st.sampled_from(SeatState),
    pod_uid=words,
    pod_name=words,
    endpoint=words,
    held_by=words,
)
sources = st.builds(
    Source,
    key=names,
    tier=tiers,
    backend=backends,
    numa_node=numa,
    capacity_bytes=counts,
    free_bytes=counts,
)
engines = st.builds(
    EngineView,
    pod_uid=names,
    pod_name=words,
    endpoint=words,
    devices=lists(names),
    standby=st.booleans(),
    readiness=words,
    slot=words,
    requests_running=counts,
    hbm_kv_bytes=counts,
)
node_states = st.builds(
    NodeState,
    applied_revision=counts,
    units=lists(units, lambda unit: unit.name),
    seats=lists(seats, lambda seat: seat.key).map(lambda found: tuple(sorted(found, key=lambda s: s.key))),
    devices=lists(devices, lambda device: device.id),
    sources=lists(sources, lambda source: source.key),
    engines=lists(engines),
    observed_at_seconds=ages.map(lambda age: BOOTTIME - age),
    refused_epochs=counts,
    loop_ages=st.dictionaries(names, st.floats(0, 1e6), max_size=3),
    holders_at_seconds=st.none() | ages.map(lambda age: WALL - age),
    retired=st.booleans(),
)
sightings = st.dictionaries(
    names,
    st.builds(
        Sighting,
        reached=st.booleans(),
        state=st.none() | st.sampled_from(PeerState),
        at_seconds=ages.map(lambda age: BOOTTIME - age),
    ),
    max_size=3,
)


def as_read(state: NodeState) -> ReportData:
    """What the operator is to know of `state`."""
    return ReportData(
        applied_revision=state.applied_revision,
        taken_at=ARRIVED - (BOOTTIME - state.observed_at_seconds),
        units=tuple(unit_as_read(unit) for unit in state.units),
        seats=tuple(seat_as_read(seat) for seat in state.seats),
        devices=tuple(device_as_read(device) for device in state.devices),
        sources=tuple(
            read.SourceView(s.key, s.tier, s.backend, s.numa_node, s.capacity_bytes, s.free_bytes)
            for s in state.sources
        ),
        engines=tuple(
            read.EngineView(
                pod_uid=engine.pod_uid,
                pod_name=engine.pod_name,
                endpoint=engine.endpoint,
                devices=engine.devices,
                standby=engine.standby,
                readiness=engine.readiness,
                slot=engine.slot,
                requests_running=engine.requests_running,
                hbm_kv_bytes=engine.hbm_kv_bytes,
            )
            for engine in state.engines
        ),
        refused_epochs=state.refused_epochs,
        loop_age_seconds=state.loop_ages,
        holders_at=None if state.holders_at_seconds is None else ARRIVED - (WALL - state.holders_at_seconds),
        retired=state.retired,
    )


def unit_as_read(unit: UnitView) -> read.UnitView:
    return read.UnitView(
        name=unit.name,
        generation=unit.generation,
        phase=UnitPhase(unit.phase),
        size_bytes=unit.size_bytes,
        resident_bytes=unit.resident_bytes,
        used_bytes=unit.used_bytes,
        placement=unit.placement,
        placement_verified=unit.placement_verified,
        segment=unit.segment,
        findings=tuple((finding.reason, finding.message) for finding in unit.findings),
        message=unit.message,
    )


def seat_as_read(seat: SeatRecord) -> read.SeatView:
    return read.SeatView(
        slot=ObjectKey(*seat.slot.split("/")),
        epoch=seat.epoch,
        phase=read.SeatPhase(seat.state.value),
        pod_uid=seat.pod_uid,
        pod_name=seat.pod_name,
        endpoint=seat.endpoint,
        fence_level=seat.fence_level.value,
    )


def device_as_read(device: Device) -> read.DeviceView:
    evidence = tuple(fault_as_read(fault) for fault in device.faults)
    pods = tuple(ObjectKey(*name.split("/")) for name in device.holder_pods)
    return read.DeviceView(device.id, device.uuid, device.holder, evidence, device.observed, pods)


def fault_as_read(fault: Fault) -> read.EvidenceView:
    """Every sighting counts, the newest 32 are told."""
    seen = tuple(ARRIVED - (WALL - at) for at in fault.seen_at_seconds)
    return read.EvidenceView(
        fault.source, fault.code, fault.evidence_class, len(seen), seen[0], seen[-1], seen[-32:]
    )


@given(node_states)
def test_a_report_is_read_as_the_agent_meant_it(state: NodeState) -> None:
    sent = pb.ConnectRequest(report=messages.report(state, BOOTTIME, WALL)).SerializeToString()
    assert agent_message_from_wire(pb.ConnectRequest.FromString(sent), ARRIVED) == as_read(state)


@given(counts, counts, sightings)
def test_a_renew_is_read_as_the_agent_meant_it(seq: int, roster: int, seen: dict[str, Sighting]) -> None:
    sent = pb.ConnectRequest(renew=messages.renew(seq, roster, seen, BOOTTIME)).SerializeToString()
    assert agent_message_from_wire(pb.ConnectRequest.FromString(sent), ARRIVED) == RenewData(
        seq,
        roster,
        tuple(
            read.PeerWord(
                node,
                sight.reached,
                ARRIVED - (BOOTTIME - sight.at_seconds),
                {None: None, PeerState.HELD: False, PeerState.LOST: True}[sight.state],
            )
            for node, sight in sorted(seen.items())
        ),
    )


@given(devices, faults)
def test_a_finding_is_read_as_the_agent_meant_it(device: Device, fault: Fault) -> None:
    sent = pb.ConnectRequest(evidence=messages.evidence(device, fault, WALL)).SerializeToString()
    assert agent_message_from_wire(pb.ConnectRequest.FromString(sent), ARRIVED) == EvidenceData(
        device.id, device.uuid, fault_as_read(fault)
    )


def test_a_time_ahead_of_the_writers_clock_has_no_age() -> None:
    assert messages.report(NodeState(observed_at_seconds=BOOTTIME + 5), BOOTTIME, WALL).age_ms == 0


# What the operator wants, in its own types

milliseconds = st.integers(0, 10**7)
rosters = lists(st.builds(RosterMember, names, words, words, words), lambda member: member.node)
targets = st.builds(
    MooncakeTarget, master=names, admin=words, metadata_server=names, protocol=names, devices=words
)
positive = st.integers(1, 2**63 - 1)
planned_units = st.builds(
    PlannedUnit,
    name=names,
    pool=slots,
    tier=tiers,
    size_bytes=positive,
    numa_node=numa,
    backend=backends,
    path=words,
    generation=positive,
    reserve_bytes=counts,
    mooncake=st.none() | targets,
    adopt=st.booleans(),
    release=st.sampled_from(["None", "Drain", "Now"]),
    unmount_at_deadline=st.booleans(),
)
planned_seats = st.builds(PlannedSeat, slot=keys, epoch=positive, devices=lists(names), pod_uid=words)
plans = st.builds(
    NodePlanData,
    node=st.just("node-1"),
    operator_epoch=counts,
    units=lists(planned_units, lambda unit: unit.name),
    seats=lists(planned_seats),
    roster=rosters,
    lease=st.just(LeaseTerms(10.0, 1.0, strict=False)),
    hold=st.booleans(),
    retire=st.booleans(),
)


def unit_as_planned(unit: PlannedUnit) -> UnitPlan:
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
        mooncake=None
        if target is None
        else MooncakeMount(
            target.master, target.admin, target.metadata_server, target.protocol, target.devices
        ),
        adopt=unit.adopt,
        release=Release(unit.release),
        unmount_at_deadline=unit.unmount_at_deadline,
    )


def members(roster: tuple[RosterMember, ...]) -> tuple[Member, ...]:
    return tuple(Member(m.node, m.peer_address, m.host_address, m.board) for m in roster)


@given(plans, counts, counts, counts)
def test_a_plan_is_read_as_the_operator_meant_it(
    plan: NodePlanData, epoch: int, revision: int, roster_revision: int
) -> None:
    sent = operator_message_to_wire(PlanData(epoch, revision, roster_revision, plan)).SerializeToString()
    got = pb.ConnectResponse.FromString(sent).node_plan
    assert messages.plan_units(got) == tuple(unit_as_planned(unit) for unit in plan.units)
    assert messages.plan_seats(got) == tuple(
        AgentSeat(str(seat.slot), seat.epoch, seat.devices, seat.pod_uid) for seat in plan.seats
    )
    assert messages.roster_members(got.roster) == members(plan.roster)
    assert (got.operator_epoch, got.revision, got.roster.revision, got.hold) == (
        epoch,
        revision,
        roster_revision,
        plan.hold,
    )
    assert got.retire is plan.retire


@given(counts, milliseconds, milliseconds, st.booleans(), rosters, positive)
def test_terms_and_roster_arrive_as_the_operator_meant_them(
    epoch: int,
    ttl_ms: int,
    skew_ms: int,
    strict: bool,
    roster: tuple[RosterMember, ...],
    revision: int,
) -> None:
    terms = LeaseTerms(ttl_ms / 1000, skew_ms / 1000, strict)
    sent = operator_message_to_wire(WelcomeData(epoch, terms, roster, revision)).SerializeToString()
    got = pb.ConnectResponse.FromString(sent).welcome
    assert (got.operator_epoch, got.ttl_ms, got.max_skew_ms, got.strict) == (epoch, ttl_ms, skew_ms, strict)
    assert messages.roster_members(got.roster) == members(roster)
    assert got.roster.revision == revision


def test_a_welcome_without_a_roster_tells_none() -> None:
    welcome = operator_message_to_wire(WelcomeData(7, LeaseTerms(10.0, 1.0, strict=False))).welcome
    assert not welcome.HasField("roster")


@given(counts, milliseconds, counts)
def test_a_grant_arrives_as_the_operator_meant_it(seq: int, ttl_ms: int, epoch: int) -> None:
    grant = operator_message_to_wire(GrantData(seq, ttl_ms / 1000, epoch)).grant
    assert (grant.seq, grant.ttl_ms, grant.operator_epoch) == (seq, ttl_ms, epoch)


def test_who_leads_is_told_by_name() -> None:
    assert operator_message_to_wire(NotLeaderData("kvpool-1")).not_leader.leader == "kvpool-1"


@pytest.mark.parametrize(
    "unit",
    [
        pb.Unit(generation=1, size_bytes=1, backend="tmpfs"),
        pb.Unit(name="u", size_bytes=1, backend="tmpfs"),
        pb.Unit(name="u", generation=1, backend="tmpfs"),
        pb.Unit(name="u", generation=1, size_bytes=1),
    ],
)
def test_a_unit_without_what_names_it_is_refused_whole(unit: pb.Unit) -> None:
    with pytest.raises(messages.MalformedPlanError, match=r"units\[0\] .*must be set"):
        messages.plan_units(pb.NodePlan(units=[unit]))
