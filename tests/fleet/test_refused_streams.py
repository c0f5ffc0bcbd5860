"""Streams that are refused: strangers, predecessors and malformed messages harm nobody else."""

from __future__ import annotations

from datetime import UTC, datetime

import grpc
import pytest

from kvpool.fleet.ca import Authority
from kvpool.fleet.fleet import Fleet
from kvpool.wire.keepalive import MAX_MESSAGE_BYTES
from kvpool.wire.v1alpha1 import agent_pb2 as pb
from tests.fleet.agents import ScriptedAgent, channel, hello, renew, report
from tests.fleet.conftest import Connect
from tests.fleet.doubles import Counts, MemoryAccess
from tests.fleet.test_streams import view_where, welcomed


async def test_a_certificate_of_another_authority_does_not_get_through_the_handshake(
    connect: Connect,
) -> None:
    agent = await connect(authority=Authority.create(datetime.now(UTC)))
    with pytest.raises(grpc.aio.AioRpcError) as broken:
        await agent.say(hello())
    assert broken.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_client_without_a_certificate_does_not_get_through_the_handshake(
    fleet: Fleet, access: MemoryAccess
) -> None:
    trusted = access.authority().certificate_pem
    agent = ScriptedAgent(channel(fleet.agent_port, grpc.ssl_channel_credentials(trusted)))
    with pytest.raises(grpc.aio.AioRpcError) as broken:
        await agent.say(hello())
    assert broken.value.code() is grpc.StatusCode.UNAVAILABLE
    await agent.close()


async def test_the_operators_own_certificate_opens_no_stream(fleet: Fleet, access: MemoryAccess) -> None:
    authority = access.authority()
    server = authority.issue_server(("x.test",), datetime.now(UTC))
    trusted = authority.certificate_pem
    credentials = grpc.ssl_channel_credentials(trusted, server.key_pem, server.certificate_pem)
    agent = ScriptedAgent(channel(fleet.agent_port, credentials))
    code, _ = await agent.refusal()
    await agent.close()
    assert code is grpc.StatusCode.UNAVAILABLE  # not made for clients, so the handshake fails
    assert fleet.views() == {}


async def test_a_certificate_for_another_node_is_refused_and_counted(
    fleet: Fleet, connect: Connect, counts: Counts
) -> None:
    agent = await connect("node-1")
    await agent.say(hello("node-2"))
    code, text = await agent.refusal()
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert "'node-2'" in text
    assert "'node-1'" in text
    assert counts.by_name["refused", "WrongNode"] == 1
    assert fleet.views() == {}


async def test_of_two_streams_of_one_agent_the_newest_counts(fleet: Fleet, connect: Connect) -> None:
    old = await welcomed(connect)
    new = await welcomed(connect)
    code, _ = await old.refusal()
    assert code is grpc.StatusCode.ABORTED
    await new.say(renew(1))
    await new.expect("grant")
    assert fleet.views()["node-1"].connected


async def test_a_restarted_agent_replaces_its_predecessor(fleet: Fleet, connect: Connect) -> None:
    old = await welcomed(connect)
    new = await connect()
    await new.say(hello(incarnation=2))
    await new.expect("welcome")
    assert (await old.refusal())[0] is grpc.StatusCode.ABORTED
    assert fleet.views()["node-1"].incarnation == 2


async def test_what_is_left_of_an_earlier_agent_cannot_push_out_its_successor(
    connect: Connect, counts: Counts
) -> None:
    new = await connect()
    await new.say(hello(incarnation=2))
    await new.expect("welcome")
    old = await connect()
    await old.say(hello(incarnation=1))
    code, text = await old.refusal()
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert "incarnation 1" in text
    assert counts.by_name["refused", "OldIncarnation"] == 1
    await new.say(renew(1))
    await new.expect("grant")


async def test_after_a_reboot_a_lower_incarnation_is_believed(fleet: Fleet, connect: Connect) -> None:
    before = await connect()
    await before.say(hello(incarnation=9))
    await before.expect("welcome")
    after = await connect()
    await after.say(hello(boot_id="boot-b", incarnation=1))
    await after.expect("welcome")
    assert fleet.views()["node-1"].boot_id == "boot-b"


BROKEN = {
    "no node name": hello(""),
    "no boot id": hello(boot_id=""),
    "a node name that is too long": hello("n" * 300),
    "an epoch that no slot epoch could follow": hello(highest_operator_epoch=2**60),
    "an epoch that no leader can have reached": hello(highest_operator_epoch=2**42),
    "an unknown unit phase": hello(report=pb.Report(units=[pb.UnitReport(name="u", phase="Melting")])),
    "a unit named twice": hello(report=pb.Report(units=[pb.UnitReport(name="u", phase="Bound")] * 2)),
    "a size that Kubernetes cannot store": hello(
        report=pb.Report(units=[pb.UnitReport(name="u", phase="Bound", size_bytes=2**63)])
    ),
    "too many devices": hello(report=pb.Report(devices=[pb.DeviceReport(id=str(i)) for i in range(65)])),
    "a slot without a namespace": hello(
        report=pb.Report(seats=[pb.SeatReport(slot="s", state=pb.SEAT_STATE_WAITING)])
    ),
    "a loop age that is no number": hello(report=pb.Report(loop_age_seconds={"verify": float("nan")})),
    "an empty message": pb.ConnectRequest(),
    "a renewal instead of a hello": renew(1),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
async def test_a_malformed_first_message_is_refused_counted_and_harms_nobody_else(
    broken: pb.ConnectRequest, fleet: Fleet, connect: Connect, counts: Counts
) -> None:
    neighbour = await welcomed(connect, "node-2")
    agent = await connect()
    await agent.say(broken)
    code, text = await agent.refusal()
    assert (code, counts.by_name["refused", "Malformed"]) == (grpc.StatusCode.INVALID_ARGUMENT, 1), text
    await neighbour.say(renew(1))
    await neighbour.expect("grant")
    assert "node-1" not in fleet.views()


async def test_a_second_hello_is_malformed_and_the_node_stays_known(fleet: Fleet, connect: Connect) -> None:
    agent = await welcomed(connect)
    await agent.say(hello())
    code, text = await agent.refusal()
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "first message" in text
    await view_where(fleet, "node-1", "the end of the stream", connected=False)


async def test_a_message_beyond_the_size_limit_ends_that_stream_alone(connect: Connect) -> None:
    neighbour = await welcomed(connect, "node-2")
    agent = await welcomed(connect)
    huge = report(units=[pb.UnitReport(name="u", phase="Bound", message="x" * (MAX_MESSAGE_BYTES - 100))])
    await agent.say(huge, renew(1))  # words for people are shortened, not refused
    await agent.expect("grant")
    huge.report.units[0].message += "x" * 200
    await agent.say(huge)
    assert (await agent.refusal())[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
    await neighbour.say(renew(1))
    await neighbour.expect("grant")
