"""What agents are told over real mutual TLS, and what becomes of what they say."""

from __future__ import annotations

import time
from dataclasses import replace

import grpc
import pytest

from kvpool.fleet import server
from kvpool.fleet.fleet import Fleet
from kvpool.model.nodeplan import LeaseTerms, NodePlanData, PlannedUnit, RosterMember
from kvpool.model.observations import AgentView
from kvpool.wire.v1alpha1 import agent_pb2 as pb
from tests.fleet.agents import ScriptedAgent, hello, renew, report
from tests.fleet.conftest import Connect, Told
from tests.fleet.doubles import Counts
from tests.harness.waiting import wait_until_async

TERMS = LeaseTerms(duration_seconds=10.0, max_skew_seconds=1.0, strict=False)
PLAN = NodePlanData("node-1", 7, (), (), (), TERMS, hold=False)
HELD = replace(PLAN, hold=True)
LARGE_UNIT = PlannedUnit(
    name="u",
    pool="ns/pool",
    tier="SSD",
    size_bytes=1,
    numa_node=-1,
    backend="file",
    path="",
    generation=1,
    reserve_bytes=0,
    mooncake=None,
    adopt=True,
    release="None",
    unmount_at_deadline=False,
)


async def view_where(fleet: Fleet, node: str, what: str, **fields: object) -> AgentView:
    """The node's view once it has these fields."""

    async def look() -> AgentView | None:
        view = fleet.views().get(node)
        if view is None or any(getattr(view, name) != value for name, value in fields.items()):
            return None
        return view

    found = await wait_until_async(look, 5, what)
    assert found is not None
    return found


async def welcomed(connect: Connect, node: str = "node-1") -> ScriptedAgent:
    agent = await connect(node)
    await agent.say(hello(node))
    await agent.expect("welcome")
    return agent


async def test_a_hello_is_answered_with_the_epoch_and_the_terms_of_the_lease(connect: Connect) -> None:
    agent = await connect()
    await agent.say(hello())
    welcome = await agent.expect("welcome")
    assert (welcome.operator_epoch, welcome.ttl_ms, welcome.max_skew_ms) == (7, 10_000, 1_000)
    assert not welcome.HasField("roster")  # none is known yet: the agent keeps what it has


async def test_a_node_without_a_plan_is_told_nothing_about_what_to_hold(connect: Connect) -> None:
    agent = await welcomed(connect)
    await agent.say(renew(1))
    await agent.expect("grant")


async def test_a_renewal_is_granted_at_once_and_counts_from_sending(fleet: Fleet, connect: Connect) -> None:
    agent = await welcomed(connect)
    assert fleet.views()["node-1"].lease.expires_at is None
    before = time.monotonic()
    await agent.say(renew(1))
    grant = await agent.expect("grant")
    after = time.monotonic()
    assert (grant.seq, grant.ttl_ms, grant.operator_epoch) == (1, 10_000, 7)
    granted_at = fleet.views()["node-1"].lease.granted_at
    assert granted_at is not None
    assert before <= granted_at <= after


async def test_what_a_hello_says_is_known_afterwards(fleet: Fleet, connect: Connect) -> None:
    agent = await connect()
    found = pb.Evidence(source="xid", code="79", evidence_class="Fatal", count=2, first_age_ms=5000)
    device = pb.DeviceReport(id="d0", uuid="GPU-0", evidence=[found], observed=True)
    started = time.monotonic()
    await agent.say(
        hello(pod_uid="u", peer_address="10.0.0.1:7", report=pb.Report(age_ms=2000, devices=[device]))
    )
    await agent.expect("welcome")
    view = fleet.views()["node-1"]
    assert (view.connected, view.pod_uid, view.peer_address, view.boot_id) == (
        True,
        "u",
        "10.0.0.1:7",
        "boot-a",
    )
    assert started - 2 <= view.reported_at <= time.monotonic() - 2
    evidence = view.devices[0].evidence[0]
    assert (evidence.code, evidence.count) == ("79", 2)
    assert started - 5 <= evidence.first_seen <= time.monotonic() - 5


async def test_a_plan_follows_the_welcome_and_every_change_gets_a_higher_revision(
    fleet: Fleet, connect: Connect
) -> None:
    agent = await connect()
    await agent.say(hello(report=pb.Report(applied_revision=41)))
    await agent.expect("welcome")
    fleet.set_plan("node-1", PLAN)
    first = await agent.expect("node_plan")
    assert first.revision == 42
    assert fleet.set_plan("node-1", replace(PLAN)) == 42
    fleet.set_plan("node-1", HELD)
    second = await agent.expect("node_plan")
    assert (second.revision, second.hold) == (43, True)
    assert fleet.views()["node-1"].plan_revision == 43


async def test_a_plan_made_before_the_agent_came_is_numbered_above_what_it_applied(
    fleet: Fleet, connect: Connect
) -> None:
    assert fleet.set_plan("node-1", PLAN) == 1
    agent = await connect()
    await agent.say(hello(report=pb.Report(applied_revision=1)))
    await agent.expect("welcome")
    assert (await agent.expect("node_plan")).revision == 2
    assert fleet.views()["node-1"].plan_revision == 2


async def test_new_lease_terms_in_a_plan_are_told_before_the_plan(fleet: Fleet, connect: Connect) -> None:
    agent = await welcomed(connect)
    fleet.set_plan("node-1", replace(PLAN, lease=LeaseTerms(4.0, 0.5, strict=True)))
    welcome = await agent.expect("welcome")
    assert (welcome.ttl_ms, welcome.max_skew_ms, welcome.strict) == (4_000, 500, True)
    await agent.expect("node_plan")
    await agent.say(renew(1))
    assert (await agent.expect("grant")).ttl_ms == 4_000


async def test_the_roster_travels_with_plan_and_welcome_under_one_revision(
    fleet: Fleet, connect: Connect
) -> None:
    member = RosterMember("node-2", "10.0.0.2:7", "10.0.0.2", "b1")
    fleet.set_plan("node-1", replace(PLAN, roster=(member,)))
    agent = await connect()
    await agent.say(hello())
    welcome = await agent.expect("welcome")
    plan = await agent.expect("node_plan")
    assert welcome.roster == plan.roster
    assert [entry.node_name for entry in plan.roster.members] == ["node-2"]
    await agent.say(renew(1, roster_revision=plan.roster.revision))
    await agent.expect("grant")
    assert fleet.views()["node-1"].roster_revision == plan.roster.revision


async def test_a_standby_names_the_leader_and_ends_the_stream(fleet: Fleet, connect: Connect) -> None:
    fleet.set_leader(None, leader="operator-b")
    agent = await connect()
    await agent.say(hello())
    assert (await agent.expect("not_leader")).leader == "operator-b"
    with pytest.raises(EOFError):
        await agent.hear()


async def test_losing_leadership_ends_open_streams_and_forgets_the_nodes(
    fleet: Fleet, connect: Connect
) -> None:
    agent = await welcomed(connect)
    fleet.set_leader(None, leader="operator-b")
    assert (await agent.expect("not_leader")).leader == "operator-b"
    with pytest.raises(EOFError):
        await agent.hear()
    assert fleet.views() == {}


async def test_an_agent_that_knows_a_higher_epoch_gets_nothing_until_the_leader_stepped_up(
    fleet: Fleet, connect: Connect, told: Told
) -> None:
    fleet.set_plan("node-1", PLAN)
    agent = await connect()
    await agent.say(hello(highest_operator_epoch=9), renew(1, roster_revision=5))
    await view_where(fleet, "node-1", "Hello and Renew", highest_operator_epoch=9, roster_revision=5)
    assert told.higher_epochs == [9]
    fleet.set_leader(10)
    assert (await agent.expect("welcome")).operator_epoch == 10
    assert (await agent.expect("node_plan")).operator_epoch == 10
    assert fleet.views()["node-1"].lease.granted_at is None


async def test_stepping_up_tells_every_agent_the_new_epoch(fleet: Fleet, connect: Connect) -> None:
    agent = await welcomed(connect)
    fleet.set_leader(8)
    assert (await agent.expect("welcome")).operator_epoch == 8
    await agent.say(renew(1))
    assert (await agent.expect("grant")).operator_epoch == 8


async def test_the_epoch_in_force_cannot_fall(fleet: Fleet) -> None:
    with pytest.raises(ValueError, match="operator epoch 6 is below 7"):
        fleet.set_leader(6)


async def test_evidence_is_known_before_the_report_that_will_contain_it(
    fleet: Fleet, connect: Connect, told: Told
) -> None:
    agent = await connect()
    device = pb.DeviceReport(id="d0", uuid="GPU-0", observed=True)
    await agent.say(hello(report=pb.Report(devices=[device])))
    await agent.expect("welcome")
    told.changed.clear()
    found = pb.Evidence(device="d0", uuid="GPU-0", source="xid", code="79", evidence_class="Fatal", count=1)
    await agent.say(pb.ConnectRequest(evidence=found), pb.ConnectRequest(evidence=found), renew(1))
    await agent.expect("grant")
    [seen] = fleet.views()["node-1"].devices
    assert [(one.source, one.code) for one in seen.evidence] == [("xid", "79")]
    assert "node-1" in told.changed


async def test_a_mere_renewal_wakes_nobody_but_news_about_a_peer_do(
    fleet: Fleet, connect: Connect, told: Told
) -> None:
    agent = await welcomed(connect)
    told.changed.clear()
    await agent.say(renew(1))
    await agent.expect("grant")
    assert told.changed == []
    unreachable = pb.PeerReachability(node_name="node-2", reached=False, age_ms=100)
    await agent.say(renew(2, unreachable))
    await agent.expect("grant")
    assert told.changed == ["node-1"]
    [word] = fleet.views()["node-1"].peers
    assert (word.peer, word.reached, word.lease_lost) == ("node-2", False, None)


async def test_an_agent_that_leaves_on_purpose_is_not_missed_for_as_long_as_it_said(
    fleet: Fleet, connect: Connect
) -> None:
    agent = await welcomed(connect)
    before = time.monotonic()
    await agent.say(pb.ConnectRequest(leaving=pb.Leaving(for_ms=30_000)), renew(1))
    await agent.expect("grant")
    leaving_until = fleet.views()["node-1"].leaving_until
    assert leaving_until is not None
    assert before + 30 <= leaving_until <= time.monotonic() + 30


async def test_what_was_known_outlives_the_connection(fleet: Fleet, connect: Connect) -> None:
    agent = await welcomed(connect)
    await agent.say(report(applied_revision=3), renew(1))
    await agent.expect("grant")
    await agent.hang_up()
    view = await view_where(fleet, "node-1", "the end of the connection", connected=False)
    assert view.applied_revision == 3
    assert view.lease.granted_at is not None


async def test_an_agent_that_comes_back_keeps_its_lease_and_gets_its_plan_again(
    fleet: Fleet, connect: Connect
) -> None:
    agent = await welcomed(connect)
    fleet.set_plan("node-1", PLAN)
    revision = (await agent.expect("node_plan")).revision
    await agent.say(renew(1))
    await agent.expect("grant")
    expires_at = fleet.views()["node-1"].lease.expires_at
    await agent.hang_up()
    again = await connect()
    await again.say(hello(report=pb.Report(applied_revision=revision)))
    await again.expect("welcome")
    assert (await again.expect("node_plan")).revision == revision
    assert fleet.views()["node-1"].lease.expires_at == expires_at


async def test_a_silent_stream_is_ended_after_three_leases(
    fleet: Fleet, connect: Connect, counts: Counts
) -> None:
    fleet.set_plan("node-1", replace(PLAN, lease=LeaseTerms(0.1, 0.1, strict=False)))
    agent = await welcomed(connect)
    code, _ = await agent.refusal()
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert counts.by_name["refused", "Silent"] == 1
    await view_where(fleet, "node-1", "the end of the stream", connected=False)


async def test_an_agent_that_does_not_read_is_ended_and_costs_no_memory(
    fleet: Fleet, connect: Connect, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "WRITE_SECONDS", 0.3)
    await welcomed(connect)
    names = (f"u{number}" for number in range(64))
    units = tuple(replace(LARGE_UNIT, name=name, path="/" + "x" * 1000) for name in names)

    async def ended() -> bool:
        # Each plan is new, and taken from the outbox as long as the connection has room.
        fleet.set_plan(
            "node-1", replace(PLAN, units=units, hold=not fleet.views()["node-1"].plan_revision % 2)
        )
        return not fleet.views()["node-1"].connected

    await wait_until_async(ended, 20, "the end of the stream", poll_seconds=0.002)
    assert counts.by_name["refused", "Silent"] == 1
    assert counts.by_name["superseded", "node_plan"] > 0


async def test_a_forgotten_node_is_gone_with_its_stream(fleet: Fleet, connect: Connect) -> None:
    agent = await welcomed(connect)
    fleet.forget("node-1")
    assert (await agent.refusal())[0] is grpc.StatusCode.ABORTED
    assert fleet.views() == {}
