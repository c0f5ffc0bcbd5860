"""What is written on the wire is read as it was meant, and what is out of bounds is refused by name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from kvpool.api.kvnode import UnitPhase
from kvpool.api.supernode import EvidenceClass
from kvpool.model.ids import ObjectKey
from kvpool.model.nodeplan import (
    LeaseTerms,
    MooncakeTarget,
    NodePlanData,
    PlannedSeat,
    PlannedUnit,
    RosterMember,
)
from kvpool.model.observations import (
    DeviceView,
    EngineView,
    EvidenceView,
    PeerWord,
    SeatPhase,
    SeatView,
    SourceView,
    UnitView,
)
from kvpool.wire.convert_agent import (
    MAX_OPERATOR_EPOCH,
    AgentMessage,
    EvidenceData,
    HelloData,
    LeavingData,
    RenewData,
    agent_message_from_wire,
    agent_message_to_wire,
)
from kvpool.wire.convert_bounds import MAX_TEXT, MalformedError
from kvpool.wire.convert_operator import (
    GrantData,
    NotLeaderData,
    OperatorMessage,
    PlanData,
    WelcomeData,
    operator_message_from_wire,
    operator_message_to_wire,
)
from kvpool.wire.convert_report import ReportData
from kvpool.wire.v1alpha1 import agent_pb2 as pb

T = TypeVar("T")
NOW = 65_536.0
"""Ages below are multiples of 1/8 s, which binary fractions hold exactly."""

letters = st.characters(categories=["L", "N", "P"], exclude_characters="/")
words = st.text(letters, max_size=40)
names = st.text(letters, min_size=1, max_size=40)
keys = st.builds(ObjectKey, names, names)
counts = st.integers(0, 2**63 - 1)
past = st.integers(0, 8 * 3600).map(lambda eighths: NOW - eighths / 8)
numa = st.integers(-1, 1023)
tiers = st.sampled_from(["DRAM", "CXL", "SSD"])
backends = st.sampled_from(["tmpfs", "file"])


def lists(
    element: st.SearchStrategy[T], key: Callable[[T], object] | None = None
) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(element, max_size=3, unique_by=key).map(tuple)


evidence = st.builds(
    EvidenceView,
    source=names,
    code=names,
    declared_class=st.sampled_from(EvidenceClass),
    count=counts,
    first_seen=past,
    last_seen=past,
    recent=st.lists(past, max_size=32).map(lambda ats: tuple(sorted(ats))),
)
devices = st.builds(
    DeviceView,
    id=names,
    uuid=words,
    holder=words,
    evidence=lists(evidence, lambda one: (one.source, one.code)),
    observed=st.booleans(),
)
units = st.builds(
    UnitView,
    name=names,
    generation=counts,
    phase=st.sampled_from(UnitPhase),
    size_bytes=counts,
    resident_bytes=counts,
    used_bytes=st.none() | counts,
    placement=st.dictionaries(numa, counts, max_size=3),
    placement_verified=st.booleans(),
    segment=words,
    findings=lists(st.tuples(words, words)),
    message=words,
)
seats = st.builds(
    SeatView,
    slot=keys,
    epoch=counts,
    phase=st.sampled_from(SeatPhase),
    pod_uid=words,
    pod_name=words,
    endpoint=words,
    fence_level=st.sampled_from(["", "ContentOnly", "Process"]),
)
sources = st.builds(
    SourceView,
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
reports = st.builds(
    ReportData,
    applied_revision=counts,
    taken_at=past,
    units=lists(units, lambda one: one.name),
    seats=lists(seats),
    devices=lists(devices, lambda one: one.id),
    sources=lists(sources, lambda one: one.key),
    engines=lists(engines),
    refused_epochs=counts,
    loop_age_seconds=st.dictionaries(names, st.floats(0, 1e6), max_size=3),
)
hellos = st.builds(
    HelloData,
    node_name=names,
    boot_id=names,
    incarnation=counts,
    agent_version=words,
    highest_operator_epoch=st.integers(0, MAX_OPERATOR_EPOCH),
    report=reports,
    peer_address=words,
    pod_uid=words,
)
peer_words = st.builds(
    PeerWord, peer=names, reached=st.booleans(), at=past, lease_lost=st.none() | st.booleans()
)
renews = st.builds(
    RenewData, seq=counts, roster_revision=counts, words=lists(peer_words, lambda word: word.peer)
)
found = st.builds(EvidenceData, device=names, uuid=words, evidence=evidence)
leavings = st.builds(LeavingData, for_seconds=st.integers(0, 10**6).map(lambda ms: ms / 1000))

milliseconds = st.integers(0, 10**7).map(lambda ms: ms / 1000)
terms = st.builds(LeaseTerms, milliseconds, milliseconds, st.booleans())
rosters = lists(st.builds(RosterMember, names, words, words, words), lambda member: member.node)
targets = st.builds(
    MooncakeTarget, master=names, admin=words, metadata_server=words, protocol=words, devices=words
)
planned_units = st.builds(
    PlannedUnit,
    name=names,
    pool=keys.map(str),
    tier=tiers,
    size_bytes=counts,
    numa_node=numa,
    backend=backends,
    path=words,
    generation=counts,
    reserve_bytes=counts,
    mooncake=st.none() | targets,
    adopt=st.booleans(),
    release=st.sampled_from(["None", "Drain", "Now"]),
    unmount_at_deadline=st.booleans(),
)
planned_seats = st.builds(PlannedSeat, slot=keys, epoch=counts, devices=lists(names), pod_uid=words)
TERMS = LeaseTerms(10.0, 1.0, strict=False)


@st.composite
def numbered_plans(draw: st.DrawFn) -> PlanData:
    epoch = draw(counts)
    plan = NodePlanData(
        node="node-1",
        operator_epoch=epoch,
        units=draw(lists(planned_units, lambda unit: unit.name)),
        seats=draw(lists(planned_seats)),
        roster=draw(rosters),
        lease=TERMS,
        hold=draw(st.booleans()),
    )
    return PlanData(epoch, draw(counts), draw(counts), plan)


@given(hellos | renews | reports | found | leavings)
def test_what_an_agent_says_is_read_as_it_was_meant(message: AgentMessage) -> None:
    sent = agent_message_to_wire(message, NOW).SerializeToString()
    assert agent_message_from_wire(pb.ConnectRequest.FromString(sent), NOW) == message


@given(
    st.builds(WelcomeData, counts, terms, rosters, st.integers(1, 2**63 - 1))
    | st.builds(WelcomeData, counts, terms)
    | st.builds(GrantData, counts, milliseconds, counts)
    | st.builds(NotLeaderData, words)
    | numbered_plans()
)
def test_what_the_operator_says_is_read_as_it_was_meant(message: OperatorMessage) -> None:
    sent = operator_message_to_wire(message).SerializeToString()
    assert operator_message_from_wire(pb.ConnectResponse.FromString(sent), "node-1", TERMS) == message


@given(st.binary(max_size=200))
def test_whatever_arrives_is_read_or_refused_and_nothing_else(raw: bytes) -> None:
    try:
        message = pb.ConnectRequest.FromString(raw)
    except DecodeError:
        return  # what gRPC refuses by itself
    with contextlib.suppress(MalformedError):
        assert agent_message_from_wire(message, NOW).name == message.WhichOneof("message")


@given(reports, st.floats(0, 1e5))
def test_between_clocks_only_ages_count(report: ReportData, elsewhere: float) -> None:
    sent = agent_message_to_wire(report, NOW)
    read = agent_message_from_wire(sent, elsewhere)
    assert isinstance(read, ReportData)
    assert elsewhere - read.taken_at == pytest.approx(NOW - report.taken_at)


def test_a_time_ahead_of_the_writers_clock_has_no_age() -> None:
    sent = agent_message_to_wire(ReportData(0, NOW + 5), NOW)
    assert sent.report.age_ms == 0


def test_words_for_people_are_shortened_while_names_are_refused() -> None:
    unit = pb.UnitReport(name="u", phase="Bound", message="m" * 9999)
    read = agent_message_from_wire(pb.ConnectRequest(report=pb.Report(units=[unit])), NOW)
    assert isinstance(read, ReportData)
    assert len(read.units[0].message) == MAX_TEXT
    unit.segment = "s" * 9999
    with pytest.raises(MalformedError, match=r"units\[0\]\.segment: has 9999 characters, at most 253"):
        agent_message_from_wire(pb.ConnectRequest(report=pb.Report(units=[unit])), NOW)


def test_a_plan_before_the_welcome_is_refused() -> None:
    with pytest.raises(MalformedError, match="before the first Welcome"):
        operator_message_from_wire(pb.ConnectResponse(node_plan=pb.NodePlan()), "node-1", None)


@pytest.mark.parametrize(
    ("report", "field"),
    [
        (pb.Report(units=[pb.UnitReport(phase="Bound")]), "units[0].name"),
        (pb.Report(units=[pb.UnitReport(name="u", phase="")]), "units[0].phase"),
        (
            pb.Report(units=[pb.UnitReport(name="u", phase="Bound", placement={5000: 1})]),
            "units[0].placement",
        ),
        (pb.Report(seats=[pb.SeatReport(slot="a/b")]), "seats[0].state"),
        (pb.Report(seats=[pb.SeatReport(slot="a/b/c", state=pb.SEAT_STATE_WAITING)]), "seats[0].slot"),
        (
            pb.Report(seats=[pb.SeatReport(slot="a/b", state=pb.SEAT_STATE_WAITING, fence_level="Lead")]),
            "seats[0].fence_level",
        ),
        (pb.Report(devices=[pb.DeviceReport(id="d"), pb.DeviceReport(id="d")]), "devices"),
        (pb.Report(sources=[pb.SourceReport(key="k", tier="HBM", backend="tmpfs")]), "sources[0].tier"),
        (pb.Report(engines=[pb.EngineReport()]), "engines[0].pod_uid"),
        (pb.Report(engines=[pb.EngineReport(pod_uid="a\nb")]), "engines[0].pod_uid"),
    ],
)
def test_a_report_out_of_bounds_is_refused_by_the_name_of_the_field(report: pb.Report, field: str) -> None:
    with pytest.raises(MalformedError) as refusal:
        agent_message_from_wire(pb.ConnectRequest(report=report), NOW)
    assert refusal.value.field == field
