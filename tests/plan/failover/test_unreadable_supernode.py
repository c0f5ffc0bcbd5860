"""A Supernode that is there and cannot be read: its policy is unknown, and what it rules stands still."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.api.conditions import ConditionType, find_condition
from kvpool.model.ids import ObjectKey
from kvpool.plan.groups import group_status
from kvpool.plan.liveness import HostState, host_findings
from kvpool.plan.node_plan import node_plans
from tests.builders.failover import GROUP, NAMESPACE, World, two_racks
from tests.plan.failover.serving import SLOT, broken, serving_world

UNREADABLE = "SupernodeUnreadable"


def unread(world: World) -> World:
    world.unread = {"sn-a"}
    return world


def without_reference(world: World) -> World:
    """A group that names no Supernode: only its nodes tell which one rules it."""
    group = world.api.groups[GROUP]
    spec = group.spec.model_copy(update={"supernode_ref": None})
    world.api.groups[GROUP] = group.model_copy(update={"spec": spec})
    return world


def device_exchanged(world: World) -> World:
    world.hosts["node-1"].uuids["acc-0"] = "node-1-replacement-uuid"
    return world


TROUBLES: dict[str, Callable[[World], World]] = {
    "a fatal code": broken,
    "a dead host": lambda world: world.kill_host("node-1"),
    "another device in its place": device_exchanged,
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
@pytest.mark.parametrize("named", [True, False], ids=["named by the group", "by its nodes alone"])
def test_nothing_moves_until_the_supernode_can_be_read_and_then_it_does(
    trouble: Callable[[World], World], named: bool
) -> None:
    world = serving_world() if named else without_reference(serving_world())
    before = world.slot().spec
    trouble(unread(world)).run(30)
    assert world.slot().spec == before
    assert len(world.api.remaps) == 1, "the first bind"
    world.unread.clear()
    world.run(20)
    assert world.place() == "node-2/acc-0"


def test_the_slot_says_why_it_does_not_move() -> None:
    world = broken(unread(serving_world())).run(5)
    blocked = find_condition(world.slot().status.conditions, ConditionType.BLOCKED)
    assert blocked is not None
    assert blocked.reason == UNREADABLE
    assert "node-1/acc-0: sim reported 79 (Fatal); Supernode sn-a cannot be read" in blocked.message


def test_the_group_does_not_call_itself_ready_on_a_policy_that_nobody_knows() -> None:
    world = unread(serving_world())
    status = group_status(world.operator.snapshot(), world.api.groups[GROUP], world.now)
    ready = find_condition(status.conditions, ConditionType.READY)
    assert ready is not None
    assert (ready.status, ready.reason) == ("Unknown", UNREADABLE)


@pytest.mark.parametrize("named", [True, False], ids=["named by the group", "by its nodes alone"])
def test_no_first_place_is_given_on_a_policy_that_nobody_knows(named: bool) -> None:
    world = unread(two_racks())
    (world if named else without_reference(world)).start().run(20)
    assert all(not slot.spec.seats for slot in world.api.slots.values())
    world.unread.clear()
    world.run(20)
    assert world.place() == "node-1/acc-0"


def test_a_silent_host_is_not_declared_dead_by_a_lease_that_its_policy_may_have_made_longer() -> None:
    world = unread(serving_world()).kill_host("node-1").run(60, step=2.0)
    found = host_findings(world.operator.snapshot(), world.now)["node-1"]
    assert (found.state, found.reason.code) == (HostState.SILENT, UNREADABLE)


def test_a_move_that_was_opened_before_claims_nothing_and_goes_on_later() -> None:
    world = broken(serving_world())
    while not world.open_remaps():
        world.tick(0.1)
        world.operator.refresh()
        world.operator.hear()
        world.operator.think()
        world.operator.act_once()
    unread(world).run(20)
    assert not any(kvnode.spec.claims for name, kvnode in world.api.kvnodes.items() if name != "node-1")
    world.unread.clear()
    world.run(5)
    assert world.place() == "node-2/acc-0"


@pytest.mark.parametrize(("level", "place"), [("Process", "node-2/acc-0"), ("ContentOnly", "node-1/acc-0")])
def test_a_move_past_its_claim_ends_only_on_the_surest_fence(level: str, place: str) -> None:
    world = serving_world()
    world.hosts["node-1"].stops = False
    broken(world).run(3)
    assert world.api.kvnodes["node-2"].spec.claims
    unread(world).fence_level = level
    world.hosts["node-1"].stops = True
    world.run(5)
    assert world.place() == place
    world.unread.clear()
    world.run(5)
    assert world.place() == "node-2/acc-0"


def test_a_device_stays_in_quarantine_while_its_delay_is_unknown() -> None:
    world = broken(serving_world()).run(4)
    unread(world.heal("node-1", "acc-0")).run(1000, step=5.0)
    assert world.api.kvnodes["node-1"].spec.quarantine
    world.unread.clear()
    world.run(600, step=5.0)
    assert not world.api.kvnodes["node-1"].spec.quarantine


def test_nodes_of_a_supernode_that_can_be_read_are_as_movable_as_before() -> None:
    world = serving_world()
    world.unread = {"sn-other"}
    broken(world).run(5)
    assert world.place() == "node-2/acc-0"


def test_leases_keep_the_terms_they_had() -> None:
    world = (
        two_racks().with_supernode(failover={"lease": {"duration": "20s", "maxSkew": "2s"}}).start().run(5)
    )
    for view in world.operator.views.values():
        assert view.lease.duration_seconds == 10.0, "what the model agents were granted"
    assert node_plans(world.operator.snapshot())["node-1"].lease.duration_seconds == 20.0
    world.unread = {"sn-a"}
    assert node_plans(world.operator.snapshot())["node-1"].lease.duration_seconds == 10.0
    world.operator.views.clear()
    assert node_plans(world.operator.snapshot())["node-1"].lease.duration_seconds == 10.0


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["break", "heal", "kill", "lead", "wait"]), st.integers(1, 4)), max_size=8
    )
)
def test_no_history_of_faults_changes_a_slot_while_its_supernode_cannot_be_read(
    history: list[tuple[str, int]],
) -> None:
    world = unread(two_racks().start().run(15))
    before = world.api.slots[ObjectKey(NAMESPACE, SLOT)].spec
    for what, number in history:
        host = f"node-{number}"
        match what:
            case "break":
                broken(world, host)
            case "heal":
                world.heal(host, "acc-0")
            case "kill":
                world.kill_host(host)
            case "lead":
                world.lead()
        world.run(6, step=1.0)
    assert world.slot().spec == before
