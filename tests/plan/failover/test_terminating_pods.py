"""A pod that stays Terminating on a dead node: a move needs a fence, never the end of the old pod."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.api.engineslot import FenceProof
from kvpool.model.ids import ObjectKey
from kvpool.plan.node_plan import node_plans
from tests.builders.failover import NAMESPACE, World
from tests.plan.failover.invariants import Invariants, settled
from tests.plan.failover.serving import SLOT, broken, serving_world

KEY = ObjectKey(NAMESPACE, SLOT)


def with_dead_kubelet(world: World, *, terminating: bool) -> World:
    """The kubelet of node-1 does not answer: its Node is not ready, and a deleted pod stays Terminating."""
    world.unready.add("node-1")
    (engine,) = world.hosts["node-1"].engines
    engine.pod = replace(engine.pod, deleting=terminating, ready=False)
    return world


@pytest.mark.parametrize("terminating", [False, True], ids=["the pod was not deleted", "it is Terminating"])
def test_a_slot_leaves_a_dead_node_whether_or_not_its_pod_is_stuck_terminating(terminating: bool) -> None:
    world = serving_world()
    before = world.slot().spec.epoch
    with_dead_kubelet(world, terminating=terminating).kill_host("node-1").run(14)
    assert world.place() == "node-2/acc-0"
    slot = world.slot().spec
    assert slot.epoch > before
    assert slot.fenced_by is not None
    assert (slot.fenced_by.epoch, slot.fenced_by.proof) == (before, FenceProof.GUARD_EXPIRY)
    assert world.hosts["node-1"].engines[0].pod.deleting is terminating, "nobody waited for its end"


def test_the_old_epoch_is_refused_when_the_dead_node_comes_back_with_its_terminating_pod() -> None:
    world = with_dead_kubelet(serving_world(), terminating=True)
    before = world.slot().spec.epoch
    world.kill_host("node-1").run(14)
    world.hosts["node-1"].reboot(world.now_seconds)
    watch = Invariants(world)
    for _ in range(20):
        world.tick(0.5)
        world.round()
        watch.check()
    assert [(node, epoch) for node, _, epoch in world.serving()] == [("node-2", world.slot().spec.epoch)]
    planned = node_plans(world.operator.snapshot())["node-1"].seats
    assert (KEY, before) not in [(seat.slot, seat.epoch) for seat in planned]
    world.unready.clear()
    world.hosts["node-1"].engines.clear()
    settled(world.run(80))


def test_a_faulty_device_is_left_on_the_word_of_the_agent_while_its_pod_is_stuck_terminating() -> None:
    """The kubelet is dead and the agent is not: its confirmed stop is the fence."""
    world = broken(with_dead_kubelet(serving_world(), terminating=True)).run(4)
    assert world.place() == "node-2/acc-0"
    fence = world.slot().spec.fenced_by
    assert fence is not None
    assert fence.proof is FenceProof.RELEASE_ACK


def test_a_terminating_pod_counts_as_running_until_its_node_is_fenced() -> None:
    world = serving_world()
    epoch = world.slot().spec.epoch
    with_dead_kubelet(world, terminating=True)
    watch = Invariants(world)
    for _ in range(120):
        world.tick(0.5)
        world.round()
        watch.check()
    assert (world.place(), world.slot().spec.epoch) == ("node-1/acc-0", epoch)
    world.hosts["node-1"].stops = False
    broken(world).run(20)
    assert world.place() == "node-1/acc-0", "a stop that is not confirmed is no fence"
