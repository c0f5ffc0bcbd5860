"""Whatever an agent sends is read within bounds, and what is out of bounds is refused by the field's name."""

from __future__ import annotations

import contextlib

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from kvpool.wire.convert_agent import agent_message_from_wire
from kvpool.wire.convert_bounds import MAX_TEXT, MalformedError
from kvpool.wire.convert_report import ReportData
from kvpool.wire.v1alpha1 import agent_pb2 as pb

NOW = 65_536.0


@given(st.binary(max_size=200))
def test_whatever_arrives_is_read_or_refused_and_nothing_else(raw: bytes) -> None:
    try:
        message = pb.ConnectRequest.FromString(raw)
    except DecodeError:
        return  # what gRPC refuses by itself
    with contextlib.suppress(MalformedError):
        assert agent_message_from_wire(message, NOW).name == message.WhichOneof("message")


def test_words_for_people_are_shortened_while_names_are_refused() -> None:
    unit = pb.UnitReport(name="u", phase="Bound", message="m" * 9999)
    read = agent_message_from_wire(pb.ConnectRequest(report=pb.Report(units=[unit])), NOW)
    assert isinstance(read, ReportData)
    assert len(read.units[0].message) == MAX_TEXT
    unit.segment = "s" * 9999
    with pytest.raises(MalformedError, match=r"units\[0\]\.segment: has 9999 characters, at most 253"):
        agent_message_from_wire(pb.ConnectRequest(report=pb.Report(units=[unit])), NOW)


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
        (pb.Report(devices=[pb.DeviceReport(id="d", holder_pods=["pod"])]), "devices[0].holder_pods"),
        (pb.Report(devices=[pb.DeviceReport(id="d", holder_pods=["n/p"] * 2)]), "devices[0].holder_pods"),
        (
            pb.Report(devices=[pb.DeviceReport(id="d", holder_pods=[f"n/p{i}" for i in range(9)])]),
            "devices[0].holder_pods",
        ),
        (
            pb.Report(devices=[pb.DeviceReport(id="d", holder_pods=["n/" + 506 * "p"])]),
            "devices[0].holder_pods",
        ),
        (pb.Report(sources=[pb.SourceReport(key="k", tier="HBM", backend="tmpfs")]), "sources[0].tier"),
        (pb.Report(engines=[pb.EngineReport()]), "engines[0].pod_uid"),
        (pb.Report(engines=[pb.EngineReport(pod_uid="a\nb")]), "engines[0].pod_uid"),
    ],
)
def test_a_report_out_of_bounds_is_refused_by_the_name_of_the_field(report: pb.Report, field: str) -> None:
    with pytest.raises(MalformedError) as refusal:
        agent_message_from_wire(pb.ConnectRequest(report=report), NOW)
    assert refusal.value.field == field
