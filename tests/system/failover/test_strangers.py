"""What is malformed, foreign or of an old epoch is refused and counted, and changes nothing for others."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

import grpc
import pytest

from kvpool.wire.v1alpha1 import agent_pb2 as pb
from kvpool.wire.v1alpha1 import local_pb2, local_pb2_grpc
from tests.harness.waiting import wait_until
from tests.system.failover.manifests import STATE_FOLDER
from tests.system.failover.moves import fail_under_load
from tests.system.failover.strangers import Stranger, hello
from tests.system.failover.world import FailoverWorld, sample

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-strangers")]


@pytest.fixture
def unaffected(world: FailoverWorld) -> Iterator[FailoverWorld]:
    """The world; afterwards all agents are connected and every slot is where and what it was."""
    before, seats = world.epochs(), world.seats()
    with world.requests() as traffic:
        yield world
        wait_until(lambda: connected(world) == 4, 10, "all agents to be connected")
    assert world.epochs() == before
    assert world.seats() == seats
    assert all(sent.succeeded for sent in traffic.sent)


def connected(world: FailoverWorld) -> int:
    return int(sample(world.metrics(), "kvpool_agents_connected"))


def refused(world: FailoverWorld, reason: str) -> float:
    return sample(world.metrics(), f'kvpool_agent_refused_total{{reason="{reason}"}}')


def counted(world: FailoverWorld, reason: str, act: Callable[[], object]) -> None:
    """Do it, and wait until the refusal is counted."""
    before = refused(world, reason)
    act()
    wait_until(lambda: refused(world, reason) == before + 1, 10, f"{reason} to be counted")


def test_a_token_for_another_audience_gets_no_certificate(unaffected: FailoverWorld) -> None:
    stranger = Stranger(unaffected)
    token = stranger.token("node-1", audience="vault")

    def enrol() -> None:
        with pytest.raises(grpc.RpcError) as caught:
            stranger.enrol(token, "node-1")
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED

    counted(unaffected, "TokenRefused", enrol)


def test_no_certificate_is_given_for_another_node(unaffected: FailoverWorld) -> None:
    stranger = Stranger(unaffected)
    token = stranger.token("node-1")

    def enrol() -> None:
        with pytest.raises(grpc.RpcError) as caught:
            stranger.enrol(token, "node-2")
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED

    counted(unaffected, "WrongNode", enrol)


def test_a_certificate_of_one_node_opens_no_stream_of_another(unaffected: FailoverWorld) -> None:
    stranger = Stranger(unaffected)
    certificate = stranger.enrol(stranger.token("node-1"), "node-1")

    def dial() -> None:
        code, text = stranger.refusal(certificate, hello("node-2"))
        assert code is grpc.StatusCode.PERMISSION_DENIED
        assert "node-1" in text

    counted(unaffected, "WrongNode", dial)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(pb.ConnectRequest(), id="nothing in it"),
        pytest.param(pb.ConnectRequest(renew=pb.Renew(seq=1)), id="no Hello first"),
        pytest.param(hello("node-1", peer_address="\x00" * 5000), id="an endless address"),
    ],
)
def test_a_malformed_message_ends_its_own_stream_alone(
    unaffected: FailoverWorld, message: pb.ConnectRequest
) -> None:
    stranger = Stranger(unaffected)
    certificate = stranger.enrol(stranger.token("node-1"), "node-1")

    def dial() -> None:
        code, text = stranger.refusal(certificate, message)
        assert code is grpc.StatusCode.INVALID_ARGUMENT, text

    counted(unaffected, "Malformed", dial)


def test_an_engine_of_an_old_epoch_is_told_to_stop_and_gets_no_weight(world: FailoverWorld) -> None:
    move = fail_under_load(world)
    node, slot = move.left, f"inference/{move.slot}"
    attached = world.slot(move.slot)["status"]["attached"]
    register = local_pb2.Register(
        pod_uid="left-behind",
        pod_name="inference/left-behind",
        endpoint=f"{world.installed.hosts[node].address}:9",
        devices=["dev0"],
        slot=slot,
        epoch=move.epoch_before,
    )
    socket = world.installed.hosts[node].files.outer(f"{STATE_FOLDER}/agent.sock")
    with world.requests() as traffic:
        stop = told(f"unix:{socket}", register)
    assert (stop.slot, stop.epoch) == (slot, move.epoch_before)
    assert world.slot(move.slot)["status"]["attached"] == attached
    assert all(sent.succeeded for sent in traffic.sent)


def told(target: str, register: local_pb2.Register) -> local_pb2.Stop:
    """Register as an engine and return the Stop that comes."""
    ended = threading.Event()
    outgoing: queue.Queue[local_pb2.AttachRequest] = queue.Queue()
    outgoing.put(local_pb2.AttachRequest(register=register))

    def say() -> Iterator[local_pb2.AttachRequest]:
        yield outgoing.get()
        ended.wait(20)

    with grpc.insecure_channel(target) as channel:
        call = local_pb2_grpc.LocalServiceStub(channel).Attach(say(), timeout=15)
        try:
            return next(answer.stop for answer in call if answer.WhichOneof("message") == "stop")
        finally:
            ended.set()
            call.cancel()
