"""The seat's life cycle over the real socket, with a real gRPC client in a process of its own."""

from __future__ import annotations

import json
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from devcluster.process import ManagedProcess
from kvpool.wire.v1alpha1 import agent_pb2 as wire
from kvpool.wire.v1alpha1 import local_pb2, local_pb2_grpc
from tests.agent.conftest import MakeNode
from tests.agent.node import TestNode
from tests.agent.scripted_operator import ScriptedOperator, write
from tests.harness.waiting import wait_until

SLOT = "inference/decode-0"
SEAT = wire.Seat(slot=SLOT, epoch=5, devices=["gpu0"])
STATES = {number: name for name, number in wire.SeatState.items()}


def seat_state(report: wire.Report, epoch: int = 5) -> str:
    found = [STATES[s.state].removeprefix("SEAT_STATE_") for s in report.seats if s.epoch == epoch]
    return found[0] if found else ""


def wait_for_seat(operator: ScriptedOperator, state: str, epoch: int = 5) -> wire.SeatReport:
    report = operator.wait_for_report(f"seat {state}", lambda r: seat_state(r, epoch) == state)
    return next(s for s in report.seats if s.epoch == epoch)


@pytest.fixture
def engine(node: TestNode) -> Iterator[ManagedProcess]:
    """An engine that obeys at once; its log says what it did."""
    program = Path(__file__).with_name("engine_program.py")
    process = ManagedProcess(
        "engine", [sys.executable, program, str(node.socket), "pod-a", "gpu0"], node.folder / "engine.log"
    )
    yield process
    process.kill()


def connected(node: TestNode, operator: ScriptedOperator, engine: ManagedProcess) -> None:
    node.start_agent()
    node.wait_until_connected()
    engine.start()
    operator.wait_for_report("the engine", lambda r: [e.pod_uid for e in r.engines] == ["pod-a"])


def attached(node: TestNode, operator: ScriptedOperator, engine: ManagedProcess) -> None:
    connected(node, operator, engine)
    operator.plan(revision=1, seats=[SEAT])
    seat = wait_for_seat(operator, "ATTACHED")
    assert (seat.pod_uid, seat.endpoint, seat.fence_level) == ("pod-a", "10.0.0.9:8000", "ContentOnly")


def test_the_socket_is_open_to_its_group_only(node: TestNode) -> None:
    node.start_agent()
    wait_until(node.socket.exists, 10, "the socket")
    assert stat.S_IMODE(node.socket.stat().st_mode) == 0o660


def test_an_engine_serves_only_when_the_plan_seats_it(
    node: TestNode, operator: ScriptedOperator, engine: ManagedProcess
) -> None:
    connected(node, operator, engine)
    operator.plan(revision=1, seats=[wire.Seat(slot=SLOT, epoch=4, devices=["gpu7"])])
    wait_for_seat(operator, "WAITING", epoch=4)
    assert "serving" not in engine.text()
    operator.plan(revision=2, seats=[SEAT])
    wait_for_seat(operator, "ATTACHED")
    engine.wait_for_line(f"serving {SLOT} under 5")


def test_a_seat_that_leaves_the_plan_is_stopped_and_then_released_at_level_process(
    node: TestNode, operator: ScriptedOperator, engine: ManagedProcess
) -> None:
    attached(node, operator, engine)
    operator.plan(revision=2)
    seat = wait_for_seat(operator, "RELEASED")
    assert seat.fence_level == "Process"
    assert "stopped" in engine.text()


def test_a_seat_whose_pod_does_not_speak_to_the_agent_is_not_released_at_level_process(
    make_node: MakeNode, operator: ScriptedOperator
) -> None:
    node = make_node(devices=[{"id": "gpu0", "uuid": "GPU-1", "holderPodUid": "pod-observed"}])
    node.start_agent()
    operator.plan(revision=1, seats=[SEAT])
    wait_for_seat(operator, "WAITING")
    operator.plan(revision=2)
    assert wait_for_seat(operator, "RELEASED").fence_level == "ContentOnly"
    write(node.devices_file, json.dumps({"devices": [{"id": "gpu0", "uuid": "GPU-1"}]}))
    operator.wait_for_report("level Process", lambda r: [seat.fence_level for seat in r.seats] == ["Process"])


def test_a_frozen_engine_stays_stopping_until_its_process_is_gone(
    node: TestNode, operator: ScriptedOperator, engine: ManagedProcess
) -> None:
    attached(node, operator, engine)
    engine.signal(signal.SIGSTOP)
    operator.plan(revision=2)
    wait_for_seat(operator, "STOPPING")
    reports = len(operator.heard.reports)
    wait_until(lambda: len(operator.heard.reports) > reports + 1, 10, "two more reports")
    assert all(seat_state(r) == "STOPPING" for r in operator.heard.reports[reports:])
    engine.kill()
    assert wait_for_seat(operator, "RELEASED").fence_level == "Process"


def test_an_engine_that_dies_leaves_its_seat_waiting(
    node: TestNode, operator: ScriptedOperator, engine: ManagedProcess
) -> None:
    attached(node, operator, engine)
    engine.kill()
    wait_for_seat(operator, "WAITING")
    engine.start()
    wait_for_seat(operator, "ATTACHED")


def test_an_engine_serves_through_a_restart_of_the_agent(
    node: TestNode, operator: ScriptedOperator, engine: ManagedProcess
) -> None:
    attached(node, operator, engine)
    lines = engine.text().count("serving")
    node.restart_agent()
    wait_until(lambda: len(operator.heard.hellos) == 2, 10, "the second Hello")
    assert seat_state(operator.heard.hellos[-1].report) == "ATTACHED"
    operator.wait_for_report(
        "engine and seat", lambda r: r.engines and r.applied_revision == 1 and seat_state(r) == "ATTACHED"
    )
    assert engine.text().count("serving") == lines


def test_an_engine_that_dies_while_the_agent_is_away_is_found_dead(
    node: TestNode, operator: ScriptedOperator, engine: ManagedProcess
) -> None:
    attached(node, operator, engine)
    node.agent.kill()
    engine.kill()
    operator.plan(revision=2)
    node.start_agent()
    assert wait_for_seat(operator, "RELEASED").fence_level == "Process"


def test_a_client_that_does_not_register_is_refused_and_counted(node: TestNode) -> None:
    node.start_agent()
    wait_until(node.socket.exists, 10, "the socket")
    with grpc.insecure_channel(f"unix:{node.socket}") as channel:
        call = local_pb2_grpc.LocalServiceStub(channel).Attach(
            iter([local_pb2.AttachRequest(stats=local_pb2.EngineStats())]), timeout=10
        )
        with pytest.raises(grpc.RpcError) as refused:
            next(call)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "kvpool_agent_local_api_refused_total 1.0" in node.get("/metrics")[1]


def test_connections_beyond_the_bound_are_turned_away(node: TestNode) -> None:
    import socket  # noqa: PLC0415 - for this test alone

    node.start_agent()
    wait_until(node.socket.exists, 10, "the socket")
    opened = []
    for _ in range(70):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(node.socket))
        opened.append(client)
    wait_until(
        lambda: "kvpool_agent_local_api_turned_away_total 6.0" in node.get("/metrics")[1],
        10,
        "the surplus to be counted",
    )
    for client in opened:
        client.close()


def test_the_released_seat_is_reported_within_a_second(
    node: TestNode, operator: ScriptedOperator, engine: ManagedProcess
) -> None:
    attached(node, operator, engine)
    began = time.monotonic()
    operator.plan(revision=2)
    wait_for_seat(operator, "RELEASED")
    assert time.monotonic() - began < 1.0
