"""A host that boots anew while a move leaves it: the proof is kept by the Remap, whoever leads by then."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.api.engineslot import FenceProof
from kvpool.api.kvnode import KVNode
from kvpool.api.remap import Remap, RemapPhase
from kvpool.model.ids import ObjectKey
from kvpool.plan.node_plan import node_plans
from tests.builders.failover import NAMESPACE, World, two_racks
from tests.plan.failover.invariants import Invariants, settled
from tests.plan.failover.serving import SLOT, broken, serving_world

KEY = ObjectKey(NAMESPACE, SLOT)


def with_open_move(world: World) -> Remap:
    """A move off node-1 that has claimed its new place and waits for an engine that does not stop."""
    world.hosts["node-1"].stops = False
    broken(world).run(3)
    assert world.api.kvnodes["node-2"].spec.claims
    (remap,) = world.open_remaps()
    return remap


def write_boot(world: World) -> None:
    """Write the present boot into the status of node-1's KVNode, as the capacity step does at every Hello."""
    kvnode: KVNode = world.api.kvnodes["node-1"]
    status = kvnode.status.model_copy(update={"boot_id": f"node-1-boot-{world.hosts['node-1'].boot}"})
    world.api.kvnodes["node-1"] = world.api.meta(kvnode, status=status)
    world.operator.refresh()


def boot_anew(world: World, *, forgets: bool = True) -> None:
    """Node-1 boots; its agent begins with nothing but the devices it finds."""
    host = world.hosts["node-1"]
    host.reboot(world.now_seconds)
    if forgets:
        host.seats.clear()
    host.plan_revision = host.applied_revision = 0


def go_silent_after_hello(world: World) -> None:
    """The new boot's agent says Hello, and is not heard again before it applied anything."""
    world.operator.revisions.pop("node-1", None)
    world.operator.hear("node-1")
    world.hosts["node-1"].agent_up = False


def proof(world: World) -> FenceProof | None:
    fenced = world.slot().spec.fenced_by
    return fenced.proof if fenced is not None else None


def test_the_remap_names_the_boot_that_is_left() -> None:
    remap = with_open_move(serving_world())
    assert [(left.node, left.boot_id) for left in remap.spec.from_boots] == [("node-1", "node-1-boot-1")]


def test_a_first_place_leaves_no_boot() -> None:
    (remap,) = serving_world().api.remaps.values()
    assert remap.spec.from_boots == ()


def test_a_boot_between_claim_and_bind_is_a_proof_though_the_node_s_status_has_it_already() -> None:
    world = serving_world()
    with_open_move(world)
    boot_anew(world)
    go_silent_after_hello(world)
    write_boot(world)
    world.tick(0.5)
    world.round(work=False)
    assert (world.place(), proof(world)) == ("node-2/acc-0", FenceProof.BOOT_ID_CHANGED)


def test_a_boot_while_no_operator_ran_is_a_proof_to_the_next_leader() -> None:
    world = serving_world()
    with_open_move(world)
    boot_anew(world)
    write_boot(world)
    world.lead()
    go_silent_after_hello(world)
    world.tick(0.5)
    world.round(work=False)
    assert (world.place(), proof(world)) == ("node-2/acc-0", FenceProof.BOOT_ID_CHANGED)


def test_the_same_boot_is_no_proof_whatever_the_agent_forgot() -> None:
    world = serving_world()
    with_open_move(world)
    world.hosts["node-1"].seats.clear()
    go_silent_after_hello(world)
    for _ in range(6):
        world.tick(0.5)
        world.round(work=False)
    assert world.place() == "node-1/acc-0"


def test_a_boot_before_the_move_was_opened_is_no_proof_the_new_boot_was_told_of_the_seat() -> None:
    world = serving_world()
    boot_anew(world)
    world.run(2)
    assert world.serving(), "its engine sits on the seat again, under the same epoch"
    remap = with_open_move(world)
    assert [left.boot_id for left in remap.spec.from_boots] == ["node-1-boot-2"]
    go_silent_after_hello(world)
    world.tick(0.5)
    world.round(work=False)
    assert world.place() == "node-1/acc-0"


def test_a_node_that_booted_while_it_is_being_left_is_not_told_of_the_seat_again() -> None:
    """A soft move waits for its routers and has claimed nothing; the new boot must not begin the epoch."""
    world = serving_world()
    world.router_answers = False
    world.set_maintenance(["node-1"]).run(2)
    assert world.open_remaps()
    assert not world.api.kvnodes["node-2"].spec.claims
    boot_anew(world)
    world.operator.hear()
    assert node_plans(world.operator.snapshot())["node-1"].seats == ()
    world.router_answers = True
    world.run(90)
    assert world.place() == "node-2/acc-0"
    settled(world)


def test_a_move_that_is_called_off_after_a_boot_gives_the_seat_back_to_the_new_boot() -> None:
    world = serving_world()
    world.router_answers = False
    world.set_maintenance(["node-1"]).run(2)
    boot_anew(world)
    world.set_maintenance([])
    world.router_answers = True
    world.run(90)
    assert RemapPhase.CANCELLED in [remap.status.phase for remap in world.api.remaps.values()]
    assert world.place() == "node-1/acc-0"
    settled(world)


def test_the_first_withdrawn_boot_counts_for_later_attempts() -> None:
    world = serving_world()
    with_open_move(world)
    boot_anew(world)
    go_silent_after_hello(world)
    write_boot(world)
    broken(world, "node-2")
    world.tick(0.5)
    world.round(work=False)
    for _ in range(8):
        world.tick(0.5)
        world.round(work=False)
    assert (world.place(), proof(world)) == ("node-3/acc-0", FenceProof.BOOT_ID_CHANGED)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.sampled_from(["fault", "boot", "status", "lead", "step", "step", "silent", "heard", "router"]),
        max_size=14,
    )
)
def test_no_order_of_boots_status_writes_and_leaders_lets_two_engines_serve(history: list[str]) -> None:
    world = two_racks().start().run(15, step=1.0)
    watch = Invariants(world)
    for what in history:
        match what:
            case "fault":
                broken(world)
            case "boot":
                boot_anew(world)
            case "status":
                write_boot(world)
            case "lead":
                world.lead()
            case "silent":
                world.hosts["node-1"].agent_up = False
            case "heard":
                world.hosts["node-1"].agent_up = world.hosts["node-1"].alive
            case "router":
                world.router_answers = not world.router_answers
            case _:
                world.tick(0.5)
                world.round()
        watch.check()
    world.hosts["node-1"].agent_up = world.router_answers = True
    for _ in range(60):
        world.tick(0.5)
        world.round()
        watch.check()
    assert not world.open_remaps()
