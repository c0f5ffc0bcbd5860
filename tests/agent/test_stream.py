"""Enrolment and the stream to the leader."""

from __future__ import annotations

import asyncio
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from kvpool.wire.keepalive import agent_channel_options
from kvpool.wire.v1alpha1 import agent_pb2 as wire
from kvpool_agent.enrolment import Enrolment, EnrolmentOptions, channel_options
from kvpool_agent.stream import OperatorStream
from tests.agent.node import TestNode
from tests.agent.quiet_node import QuietNode
from tests.agent.scripted_operator import SERVER_NAME, Authority, ScriptedOperator, write
from tests.harness.waiting import wait_until


def wait_for_log(node: TestNode, text: str) -> None:
    wait_until(lambda: text in node.agent.text(), 15, f"{text!r} in the log")


def test_the_agent_enrols_with_its_token_and_keeps_its_key_to_itself(
    node: TestNode, operator: ScriptedOperator
) -> None:
    node.start_agent()
    node.wait_until_connected()
    request = operator.heard.enrolments[0]
    assert (request.token, request.node_name) == ("a-token", node.name)
    assert b"PRIVATE KEY" not in request.csr_pem
    assert stat.S_IMODE(node.places.identity.stat().st_mode) == 0o700
    hello = operator.heard.hellos[0]
    assert (hello.node_name, hello.pod_uid) == (node.name, f"uid-of-{node.name}")
    assert hello.peer_address == f"127.0.0.1:{node.peer_port}"


def test_the_agent_waits_for_the_authority_to_be_published(
    node: TestNode, operator: ScriptedOperator
) -> None:
    node.authority.unlink()
    node.start_agent()
    wait_for_log(node, "to appear")
    write(node.authority, operator.authority.pem.decode())
    node.wait_until_connected()


def test_a_refused_token_is_read_again_until_a_good_one_is_there(
    node: TestNode, operator: ScriptedOperator
) -> None:
    operator.script.refuses_token = "a-token"
    node.start_agent()
    wait_for_log(node, "UNAUTHENTICATED: the token is for another audience")
    write(node.token, "a-better-token")
    node.wait_until_connected()


def test_a_certificate_for_another_node_is_not_taken(node: TestNode, operator: ScriptedOperator) -> None:
    operator.script.certificate_names = "node-9"
    node.start_agent()
    wait_for_log(node, f"does not name {node.name}")
    assert operator.heard.hellos == []


def test_an_operator_of_another_authority_is_not_spoken_to(
    node: TestNode, operator: ScriptedOperator
) -> None:
    write(node.authority, Authority().pem.decode())
    node.start_agent()
    wait_for_log(node, "enrolment failed")
    assert operator.heard.enrolments == []


def test_every_address_is_dialled_and_standbys_are_passed_over(
    node: TestNode, operator: ScriptedOperator
) -> None:
    operator.script.leads = False
    node.start_agent()
    wait_for_log(node, "not the leader")
    operator.script.leads = True
    node.wait_until_connected()


def test_a_report_comes_at_least_every_three_seconds(node: TestNode, operator: ScriptedOperator) -> None:
    node.start_agent()
    node.wait_until_connected()
    count = len(operator.heard.reports)
    began = time.monotonic()
    wait_until(lambda: len(operator.heard.reports) > count + 1, 10, "two more reports")
    assert time.monotonic() - began < 6.5
    report = operator.report
    assert report is not None
    assert report.sources
    assert {"bind", "devices", "peers", "stand", "engines", "stream"} <= set(report.loop_age_seconds)


def test_a_lower_epoch_is_refused_counted_and_stays_refused_over_a_restart(
    node: TestNode, operator: ScriptedOperator
) -> None:
    node.start_agent()
    node.wait_until_connected()
    unit = node.unit()
    operator.plan(operator_epoch=6, revision=9, units=[unit])
    refused = operator.wait_for_report("a refusal", lambda r: r.refused_epochs == 1)
    assert refused.applied_revision == 0
    assert not refused.units
    operator.script.epoch = 5
    operator.script.plan = None
    hellos = len(operator.heard.hellos)
    node.restart_agent()
    wait_until(lambda: len(operator.heard.hellos) > hellos, 10, "another Hello")
    assert operator.heard.hellos[-1].highest_operator_epoch == 7
    wait_for_log(node, "refused a lower operator epoch")
    renews = len(operator.heard.renews)
    operator.script.epoch = 8
    wait_until(lambda: len(operator.heard.renews) > renews, 15, "the lease renewed under epoch 8")


def test_a_plan_that_makes_no_sense_is_refused_and_the_last_one_stays(
    node: TestNode, operator: ScriptedOperator
) -> None:
    unit = node.unit()
    operator.plan(revision=1, units=[unit], hold=True)
    node.start_agent()
    operator.wait_for_unit(unit.name, "Pending")
    operator.plan(revision=2, units=[wire.Unit(name="x", generation=1)])
    wait_for_log(node, "plan refused, the last one stays")
    report = operator.report
    assert report is not None
    assert report.applied_revision == 1
    assert "kvpool_agent_refused_plans_total 1.0" in node.get("/metrics")[1]


def test_two_missed_grants_make_the_agent_dial_anew(node: TestNode, operator: ScriptedOperator) -> None:
    operator.script.ttl_ms = 1500
    node.start_agent()
    node.wait_until_connected()
    hellos = len(operator.heard.hellos)
    operator.script.grants = False
    wait_until(lambda: len(operator.heard.hellos) > hellos, 10, "another Hello")


def test_an_agent_that_is_told_to_end_says_that_it_leaves(node: TestNode, operator: ScriptedOperator) -> None:
    node.start_agent()
    node.wait_until_connected()
    assert node.agent.terminate() == 0
    assert [leaving.for_ms for leaving in operator.heard.leaving] == [30_000]


@pytest.fixture
def successor(authority: Authority, operator: ScriptedOperator) -> Iterator[ScriptedOperator]:
    """Another operator, to take over the first one's address."""
    other = ScriptedOperator(authority)
    yield other
    if other.agent_port:
        other.stop()


def test_a_new_leader_on_the_same_address_is_found_and_told_the_highest_epoch(
    node: TestNode, operator: ScriptedOperator, successor: ScriptedOperator
) -> None:
    node.start_agent()
    node.wait_until_connected()
    port = operator.agent_port
    operator.kill_servers()
    successor.script.epoch = 8
    successor.start(agent_port=port)
    wait_until(lambda: successor.heard.renews, 15, "the agent at the new leader")
    assert successor.heard.hellos[0].highest_operator_epoch == 7
    assert len(operator.heard.enrolments) == 1


def test_the_agent_stays_healthy_while_no_operator_answers(
    node: TestNode, operator: ScriptedOperator
) -> None:
    operator.script.leads = False
    node.start_agent()
    wait_for_log(node, "not the leader")
    assert node.get("/healthz") == (200, "ok\n")


def test_an_agent_is_ready_once_a_leader_greeted_it_and_stays_so_without_one(
    node: TestNode, operator: ScriptedOperator
) -> None:
    operator.script.leads = False
    node.start_agent()
    wait_for_log(node, "not the leader")
    assert node.get("/readyz") == (503, "no leading operator said Welcome yet\n")
    operator.script.leads = True
    node.wait_until_connected()
    assert node.get("/readyz") == (200, "ok\n")
    operator.kill_servers()
    wait_for_log(node, "operator does not answer")
    assert node.get("/readyz") == (200, "ok\n")


async def test_two_addresses_of_one_operator_do_not_make_the_streams_end_each_other(
    operator: ScriptedOperator, tmp_path: Path
) -> None:
    operator.script.one_stream_a_node = True
    token, authority = (
        write(tmp_path / name, text)
        for name, text in (("token", "a-token"), ("ca.pem", operator.authority.pem.decode()))
    )
    address = f"127.0.0.1:{operator.agent_port}"
    options = EnrolmentOptions("node-1", f"127.0.0.1:{operator.enrol_port}", token, authority, SERVER_NAME)
    enrolment = Enrolment(tmp_path, options, lambda: None)
    stream = OperatorStream(address, SERVER_NAME, enrolment, QuietNode(), lambda: None)
    with mock.patch("kvpool_agent.stream._resolve", return_value=(address, f"ipv4:{address}")):
        running = asyncio.create_task(stream.run())
        try:
            await asyncio.to_thread(wait_until, lambda: len(operator.heard.renews) > 9, 15, "ten Renews")
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert len(operator.heard.hellos) == 2


def test_the_channel_to_the_operator_pings_as_its_servers_allow() -> None:
    assert set(agent_channel_options()) < set(channel_options("a-name"))
    assert channel_options("") == agent_channel_options()
