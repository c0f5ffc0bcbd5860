"""What a lost lease means, and when it means nothing."""

from __future__ import annotations

import pytest

from kvpool.plan.liveness import HostState, host_findings
from tests.builders.failover import World, two_racks
from tests.builders.failover_operator import Operator


def watched() -> World:
    """Four hosts on four boards, led long enough for expiries to be believed."""
    return two_racks().start().run(20, step=1.0)


def finding(world: World, host: str = "node-1") -> tuple[HostState, str]:
    found = host_findings(world.operator.snapshot(), world.now)[host]
    return found.state, found.reason.code


def test_a_host_that_renews_is_alive() -> None:
    assert finding(watched()) == (HostState.ALIVE, "LeaseHeld")


def test_a_silent_host_is_not_dead_before_its_lease_and_the_skew_are_over() -> None:
    world = watched().kill_host("node-1").run(10, step=1.0)
    assert finding(world) == (HostState.SILENT, "AgentSilent")
    world.run(2, step=1.0)
    assert finding(world) == (HostState.DEAD, "HostDead")


def test_a_host_that_peers_can_reach_is_not_dead_however_long_its_agent_is_silent() -> None:
    world = watched()
    world.hosts["node-1"].agent_up = False
    world.run(600, step=5.0)
    assert finding(world) == (HostState.SILENT, "HostReachable")


def test_peers_on_the_same_board_are_no_witnesses() -> None:
    world = World()
    for number in range(1, 5):
        world.with_host(f"node-{number}", board="b1", rack="r1")
    world.with_supernode().with_group().start().run(20, step=1.0)
    world.kill_host("node-1").run(30, step=1.0)
    assert finding(world) == (HostState.SILENT, "WitnessesLacking")


def test_one_witness_is_not_enough() -> None:
    world = World()
    for number, board in enumerate(("b1", "b1", "b2"), start=1):
        world.with_host(f"node-{number}", board=board, rack="r1")
    world.with_supernode().with_group().start().run(20, step=1.0)
    world.kill_host("node-1").run(30, step=1.0)
    assert finding(world) == (HostState.SILENT, "WitnessesLacking")


def test_a_node_that_is_not_ready_takes_the_place_of_witnesses() -> None:
    world = World()
    for number in range(1, 5):
        world.with_host(f"node-{number}", board="b1", rack="r1")
    world.with_supernode().with_group().start().run(20, step=1.0)
    world.kill_host("node-1")
    world.unready.add("node-1")
    world.run(12, step=1.0)
    assert finding(world) == (HostState.DEAD, "HostDead")


def test_a_node_that_is_not_ready_is_alive_while_it_renews_its_lease() -> None:
    world = watched()
    world.unready.add("node-1")
    world.run(300, step=5.0)
    assert finding(world) == (HostState.ALIVE, "LeaseHeld")


def test_in_a_guard_group_of_two_an_expired_lease_proves_nothing() -> None:
    world = World().with_host("node-1", board="b1", rack="r1").with_host("node-2", board="b2", rack="r1")
    world.with_supernode().with_group().start().run(20, step=1.0)
    world.kill_host("node-1")
    world.unready.add("node-1")
    world.run(60, step=1.0)
    assert finding(world) == (HostState.SILENT, "GuardGroupTooSmall")


def test_leases_lost_by_more_than_half_of_the_group_are_an_outage_of_the_control_plane() -> None:
    world = watched()
    for host in ("node-1", "node-2", "node-3"):
        world.kill_host(host)
    world.run(30, step=1.0)
    assert finding(world) == (HostState.SILENT, "MassExpiry")


def test_leases_lost_by_half_of_the_group_are_believed() -> None:
    world = World()
    for number in range(1, 7):
        world.with_host(f"node-{number}", board=f"b{number}", rack="r1")
    world.with_supernode().with_group().start().run(20, step=1.0)
    for host in ("node-1", "node-2", "node-3"):
        world.kill_host(host)
    world.run(12, step=1.0)
    assert finding(world) == (HostState.DEAD, "HostDead")


def test_the_first_expiries_after_a_mass_loss_are_not_believed_yet() -> None:
    """Three of four come back at the same time; the fourth may just be the slowest."""
    world = watched()
    for host in world.hosts.values():
        host.agent_up = False
    world.run(30, step=1.0)
    for name in ("node-2", "node-3", "node-4"):
        world.hosts[name].agent_up = True
        world.hosts[name].hello_at = world.now_seconds
    world.hosts["node-1"].alive = False
    world.run(2, step=1.0)
    assert finding(world) == (HostState.SILENT, "MassExpiry")
    world.run(14, step=1.0)
    assert finding(world) == (HostState.DEAD, "HostDead")


@pytest.mark.parametrize("why", ["leader", "api"])
def test_no_expiry_is_believed_for_a_lease_and_a_witness_after_a_change(why: str) -> None:
    world = watched().kill_host("node-1").run(8, step=1.0)
    if why == "leader":
        world.operator = Operator(world, world.operator.epoch + 1)
        world.operator.hear()
    else:
        world.api_back_since = world.now_seconds
    world.run(13, step=1.0)
    assert finding(world)[0] in (HostState.SILENT, HostState.UNKNOWN)
    world.run(3, step=1.0)
    assert finding(world) == (HostState.DEAD, "HostDead")


def test_a_host_that_this_leader_never_heard_is_unknown_and_not_dead() -> None:
    world = watched()
    world.operator = Operator(world, world.operator.epoch + 1)
    assert finding(world) == (HostState.UNKNOWN, "NotHeardYet")


def test_an_agent_that_said_it_would_leave_is_waited_for() -> None:
    world = watched()
    view = world.operator.views["node-1"]
    world.hosts["node-1"].leaving_until = world.now_seconds + 60
    world.operator.hear()
    world.kill_host("node-1").run(40, step=1.0)
    assert view.leaving_until is None
    assert finding(world) == (HostState.SILENT, "Leaving")
    world.run(22, step=1.0)
    assert finding(world) == (HostState.DEAD, "HostDead")


def test_the_plan_names_the_next_moment_at_which_a_lease_ends() -> None:
    world = watched()
    found = host_findings(world.operator.snapshot(), world.now)["node-1"]
    assert found.changes_at == world.now_seconds + 11
