"""An uninstall takes every slot away: with weight 0 acknowledged first where kvpool writes the route."""

from __future__ import annotations

import pytest

from kvpool.api.common import Mode
from kvpool.model.decisions import CreateSlot, DeleteSlot, OpenRemap
from kvpool.model.snapshot import Uninstall
from kvpool.plan.failover import failover_plan
from kvpool.plan.node_plan import node_plans
from tests.builders.failover import GROUP, World, two_racks

WORD = Uninstall("kvpool-system", "1")
SLOT = "chat-decode-0"


def serving() -> World:
    world = two_racks().start().run(70, step=1.0)
    assert world.router == {SLOT: 100}
    return world


def claims(world: World) -> list[str]:
    return [claim.slot for kvnode in world.api.kvnodes.values() for claim in kvnode.spec.claims]


def deletes(world: World) -> bool:
    plan = failover_plan(world.operator.snapshot(), world.now)
    return any(isinstance(action, DeleteSlot) for action in plan.actions)


def test_slots_go_after_the_route_and_their_engines_are_stopped() -> None:
    world = serving()
    world.uninstall = WORD
    world.router_answers = False
    world.run(5)
    assert not deletes(world), "the route has not acknowledged weight 0"
    world.router_answers = True
    world.run(20, step=1.0)
    assert world.router == {}
    assert world.api.slots == {}
    assert claims(world) == []
    assert world.serving() == []
    assert all(plan.retire for plan in node_plans(world.operator.snapshot()).values())


def test_a_route_that_fails_open_is_taken_to_nothing_all_the_same() -> None:
    world = two_racks().with_group(routing={"failureMode": "FailOpen"}).start().run(70, step=1.0)
    world.uninstall = WORD
    world.run(20, step=1.0)
    assert world.router == {}
    assert world.api.slots == {}


@pytest.mark.parametrize("change", ["cap", "group"])
def test_a_slot_whose_outputs_nobody_writes_goes_without_an_acknowledgement(change: str) -> None:
    world = serving()
    if change == "cap":
        world.mode_cap = Mode.OBSERVE
    else:
        del world.api.groups[GROUP]
    world.run(5)
    assert list(world.api.slots)
    world.uninstall = WORD
    world.run(20, step=1.0)
    assert world.router == {SLOT: 100}, "frozen: the route itself is taken away by whoever uninstalls"
    assert world.api.slots == {}
    assert claims(world) == []


def test_a_slot_waits_for_the_proof_that_its_engine_is_out() -> None:
    world = serving()
    node = world.place().partition("/")[0]
    world.hosts[node].stops = False
    world.uninstall = WORD
    world.run(20, step=1.0)
    assert world.slot().metadata.deletion_timestamp is not None
    assert claims(world)
    assert not node_plans(world.operator.snapshot())[node].retire
    world.hosts[node].stops = True
    world.run(20, step=1.0)
    assert world.api.slots == {}


def test_a_pause_holds_it_and_nothing_new_is_made() -> None:
    world = serving()
    world.paused, world.uninstall = True, WORD
    world.run(5)
    assert world.slot().metadata.deletion_timestamp is None
    assert world.router == {SLOT: 100}
    world.set_instances(3).run(5)
    plan = failover_plan(world.operator.snapshot(), world.now)
    assert not [action for action in plan.actions if isinstance(action, CreateSlot | OpenRemap)]
