"""What nodes do when the operator is silent: three agents on one machine, one engine."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.process import ManagedProcess
from kvpool.wire.v1alpha1 import agent_pb2 as wire
from tests.agent.conftest import MakeNode
from tests.agent.node import TestNode
from tests.agent.scripted_operator import Authority, ScriptedOperator
from tests.harness.waiting import wait_until

TTL_SECONDS = 3.0
SLOT = "inference/decode-0"
UNREACHABLE = "192.0.2.1:9631"
"""Of a network for documentation: nothing answers there."""


@pytest.fixture
def group(make_node: MakeNode, operator: ScriptedOperator) -> list[TestNode]:
    """Three nodes on three boards; each knows the others."""
    nodes = [make_node(f"node-{n}", address=f"127.0.0.{n + 1}") for n in (1, 2, 3)]
    members = [
        wire.RosterMember(
            node_name=node.name,
            peer_address=f"{node.address}:{node.peer_port}",
            host_address=node.address,
            board=f"board-{node.name}",
        )
        for node in nodes
    ]
    operator.script.ttl_ms = int(TTL_SECONDS * 1000)
    operator.script.roster = wire.Roster(revision=3, members=members)
    return nodes


@pytest.fixture
def engine(group: list[TestNode]) -> Iterator[ManagedProcess]:
    program = Path(__file__).with_name("engine_program.py")
    process = ManagedProcess(
        "engine",
        [sys.executable, program, str(group[0].socket), "pod-a", "gpu0"],
        group[0].folder / "engine.log",
    )
    yield process
    process.kill()


def start_serving(group: list[TestNode], operator: ScriptedOperator, engine: ManagedProcess) -> None:
    operator.plan(revision=1, seats=[wire.Seat(slot=SLOT, epoch=5, devices=["gpu0"])])
    for node in group:
        node.start_agent()
    engine.start()
    engine.wait_for_line(f"serving {SLOT} under 5", deadline_seconds=20)
    wait_until(lambda: len(operator.heard.renews_of) == 3, 15, "all three nodes")
    wait_until(
        lambda: all(len(r.reachability) == 2 for r in newest_renews(operator)),
        15,
        "every node has probed the others",
    )


def newest_renews(operator: ScriptedOperator) -> list[wire.Renew]:
    return [renews[-1] for _, renews in sorted(operator.heard.renews_of.items())]


def serving_on(node: TestNode) -> bool:
    return "kvpool_agent_serving_on 1.0" in node.get("/metrics")[1]


def test_an_outage_of_the_operator_stops_nothing(
    group: list[TestNode], operator: ScriptedOperator, engine: ManagedProcess
) -> None:
    start_serving(group, operator, engine)
    operator.script.grants = False
    wait_until(lambda: all(serving_on(node) for node in group), 15, "all nodes to serve on")
    began = time.monotonic()
    wait_until(lambda: time.monotonic() - began > TTL_SECONDS, 10, "another lease's time")
    assert "stopped" not in engine.text()
    operator.script.grants = True
    wait_until(lambda: not any(serving_on(node) for node in group), 15, "the leases to be back")
    assert "stopped" not in engine.text()


def test_operators_that_are_gone_for_longer_than_a_lease_stop_nothing(
    group: list[TestNode], operator: ScriptedOperator, engine: ManagedProcess, authority: Authority
) -> None:
    start_serving(group, operator, engine)
    operator.kill_servers()
    wait_until(lambda: all(serving_on(node) for node in group), 15, "all nodes to serve on")
    began = time.monotonic()
    wait_until(lambda: time.monotonic() - began > TTL_SECONDS, 10, "another lease's time")
    successor = ScriptedOperator(authority)
    successor.script = dataclasses.replace(operator.script, epoch=8)
    assert successor.script.plan is not None
    successor.script.plan.operator_epoch = 8
    successor.start(agent_port=operator.agent_port)
    try:
        wait_until(lambda: len(successor.heard.renews_of) == 3, 15, "all nodes at the new leader")
        wait_until(lambda: not any(serving_on(node) for node in group), 15, "the leases to be back")
        assert "stopped" not in engine.text()
    finally:
        for node in group:
            node.agent.kill()
        successor.stop()


def test_a_node_that_alone_lost_its_lease_stops_its_engine_and_serves_again_with_a_new_lease(
    group: list[TestNode], operator: ScriptedOperator, engine: ManagedProcess
) -> None:
    start_serving(group, operator, engine)
    operator.script.deaf_to = frozenset({"node-1"})
    began = time.monotonic()
    engine.wait_for_line("stopped .*the node's lease ran out", deadline_seconds=15)
    assert time.monotonic() - began < TTL_SECONDS + 1
    operator.script.deaf_to = frozenset()
    wait_until(lambda: engine.text().count(f"serving {SLOT}") == 2, 15, "the engine to serve again")


def test_a_strict_node_stops_at_its_deadline_whatever_its_peers_say(
    group: list[TestNode], operator: ScriptedOperator, engine: ManagedProcess
) -> None:
    operator.script.strict = True
    start_serving(group, operator, engine)
    operator.script.grants = False
    engine.wait_for_line("stopped .*the node's lease ran out", deadline_seconds=15)


def test_a_dead_agent_is_reached_by_its_peers_and_a_dead_host_is_not(
    group: list[TestNode], operator: ScriptedOperator, engine: ManagedProcess
) -> None:
    start_serving(group, operator, engine)
    group[1].agent.kill()
    assert operator.script.roster is not None
    operator.script.roster.members.append(
        wire.RosterMember(
            node_name="node-4", peer_address=UNREACHABLE, host_address="192.0.2.1", board="board-4"
        )
    )
    operator.script.roster.revision = 4
    operator.plan(revision=2, roster=operator.script.roster)

    def seen() -> dict[str, tuple[bool, int]]:
        renew = operator.heard.renews_of["node-1"][-1]
        return {peer.node_name: (peer.reached, peer.lease) for peer in renew.reachability}

    held, silent = wire.PEER_LEASE_HELD, wire.PEER_LEASE_UNSPECIFIED
    wanted = {"node-2": (True, silent), "node-3": (True, held), "node-4": (False, silent)}
    wait_until(lambda: seen() == wanted, 15, f"{wanted}")
    assert operator.heard.renews_of["node-1"][-1].roster_revision == 4
