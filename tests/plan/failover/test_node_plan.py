"""What a node is told to hold."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from types import FrameType

from kvpool.api.kvnode import Claim, UnitSpec
from kvpool.api.supernode import EvidenceClass
from kvpool.model.ids import ObjectKey
from kvpool.model.nodeplan import NodePlanData
from kvpool.plan.node_plan import node_plans
from tests.builders.failover import NAMESPACE, World, two_racks

SLOT = ObjectKey(NAMESPACE, "chat-decode-0")
POOL = ObjectKey(NAMESPACE, "chat")


def plan_for(world: World, node: str = "node-1") -> NodePlanData:
    return node_plans(world.operator.snapshot())[node]


def serving_world() -> World:
    return two_racks().start().run(20, step=1.0)


def test_a_seat_is_planned_where_claim_and_slot_agree() -> None:
    world = serving_world()
    (seat,) = plan_for(world).seats
    assert (seat.slot, seat.epoch, seat.devices) == (SLOT, world.slot().spec.epoch, ("acc-0",))
    assert plan_for(world, "node-2").seats == ()


def test_a_seat_without_its_claim_is_not_planned() -> None:
    world = serving_world()
    kvnode = world.api.kvnodes["node-1"]
    spec = kvnode.spec.model_copy(update={"claims": ()})
    world.api.kvnodes["node-1"] = kvnode.model_copy(update={"spec": spec})
    world.operator.refresh()
    assert plan_for(world).seats == ()


def test_a_claim_for_an_epoch_that_the_slot_has_not_reached_is_no_seat_yet() -> None:
    world = serving_world()
    world.hosts["node-1"].stops = False
    world.report("node-1", "acc-0", EvidenceClass.FATAL).run(3)
    assert [claim.slot for claim in world.api.kvnodes["node-2"].spec.claims] == [str(SLOT)]
    assert plan_for(world, "node-2").seats == ()
    assert plan_for(world).seats == (), "the old engine is told to stop once the new place is claimed"


def test_the_seat_of_a_slot_that_is_being_deleted_is_not_planned() -> None:
    world = serving_world().set_instances(0)
    world.tick(1.0)
    world.round()
    world.tick(1.0)
    world.round()
    assert world.slot().metadata.deletion_timestamp is not None
    assert plan_for(world).seats == ()


def test_the_roster_is_the_whole_guard_group_with_addresses_and_boards() -> None:
    roster = plan_for(serving_world()).roster
    assert [(member.node, member.board) for member in roster] == [
        ("node-1", "b1"),
        ("node-2", "b2"),
        ("node-3", "b3"),
        ("node-4", "b4"),
    ]
    assert {member.host_address for member in roster} == {"10.0.0.1"}


def test_the_lease_is_the_one_of_the_supernode() -> None:
    lease = {"lease": {"duration": "6s", "maxSkew": "500ms", "policy": "Strict"}}
    world = two_racks().with_supernode(failover=lease).start().run(3)
    terms = plan_for(world).lease
    assert (terms.duration_seconds, terms.max_skew_seconds, terms.strict) == (6.0, 0.5, True)


def test_a_pause_holds_the_node() -> None:
    world = serving_world()
    assert not plan_for(world).hold
    world.paused = True
    assert plan_for(world).hold


def with_unit(
    world: World, *, pool_store: dict[str, object], store: dict[str, object] | None
) -> NodePlanData:
    """The plan of node-1 when it is to hold one unit of a pool with this store."""
    pool = world.api.pools[POOL]
    spec = type(pool.spec).parse({**pool.spec.dump(), "store": pool_store})
    unit = {"name": "u", "pool": str(POOL), "tier": "DRAM", "sizeBytes": 1 << 20, "backend": "tmpfs"}
    kvnode = world.api.kvnodes["node-1"]
    units = (UnitSpec.parse(unit | ({"store": store} if store else {})),)
    kvnode = kvnode.model_copy(update={"spec": kvnode.spec.model_copy(update={"units": units})})
    snapshot = replace(
        world.operator.snapshot(),
        pools={POOL: pool.model_copy(update={"spec": spec})},
        kvnodes={**world.api.kvnodes, "node-1": kvnode},
    )
    return node_plans(snapshot)["node-1"]


MOONCAKE: dict[str, object] = {"mooncake": {"master": {"serviceRef": {"name": "master"}}}}
NONE: dict[str, object] = {"none": {}}


def test_a_unit_names_the_store_that_mounts_it() -> None:
    plan = with_unit(serving_world(), pool_store=MOONCAKE, store={"master": "10.0.0.9:50051"})
    target = plan.units[0].mooncake
    assert target is not None
    assert (target.master, target.metadata_server) == ("10.0.0.9:50051", "P2PHANDSHAKE")
    assert not plan.units[0].unmount_at_deadline


def test_only_the_unit_is_left_out_while_its_store_has_no_address() -> None:
    world = serving_world()
    plan = with_unit(world, pool_store=MOONCAKE, store=None)
    assert plan.units == ()
    assert plan.seats == plan_for(world).seats != (), "seats are given and withdrawn all the same"


def test_a_unit_without_a_store_is_left_out_while_its_pool_cannot_be_read() -> None:
    world = serving_world()
    unit = UnitSpec.parse(
        {"name": "u", "pool": str(POOL), "tier": "DRAM", "sizeBytes": 1 << 20, "backend": "tmpfs"}
    )
    kvnode = world.api.kvnodes["node-1"]
    kvnode = kvnode.model_copy(update={"spec": kvnode.spec.model_copy(update={"units": (unit,)})})
    gone = replace(world.operator.snapshot(), pools={}, kvnodes={**world.api.kvnodes, "node-1": kvnode})
    assert [planned.name for planned in node_plans(gone)["node-1"].units] == ["u"]
    unreadable = replace(gone, unreadable=frozenset({("KVPool", POOL)}))
    assert node_plans(unreadable)["node-1"].units == ()


def test_a_unit_of_a_pool_without_a_store_is_planned_without_one() -> None:
    plan = with_unit(serving_world(), pool_store=NONE, store=None)
    assert plan.units[0].mooncake is None


def test_a_required_stop_makes_the_keeper_unmount_at_its_deadline() -> None:
    world = two_racks().with_supernode(failover={"fence": {"require": "Process"}}).start().run(3)
    plan = with_unit(world, pool_store=NONE, store=None)
    assert plan.units[0].unmount_at_deadline


def test_equal_worlds_make_equal_plans() -> None:
    one, other = serving_world(), serving_world()
    assert plan_for(one) == plan_for(other)
    assert isinstance(one.api.kvnodes["node-1"].spec.claims[0], Claim)


def test_plans_of_many_nodes_take_time_by_the_node_and_not_by_its_square() -> None:
    world = serving_world()
    snapshot = world.operator.snapshot()
    kvnode, fact = snapshot.kvnodes["node-1"], snapshot.nodes["node-1"]
    names = [f"n{number:04}" for number in range(1000)]
    many = replace(
        snapshot,
        kvnodes={
            name: kvnode.model_copy(update={"metadata": kvnode.metadata.model_copy(update={"name": name})})
            for name in names
        },
        nodes={name: replace(fact, name=name) for name in names},
        slots={ObjectKey(NAMESPACE, f"slot-{number}"): world.slot() for number in range(1000)},
    )
    calls: Counter[str] = Counter()

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        calls[event] += 1

    sys.setprofile(count)
    try:
        plans = node_plans(many)
    finally:
        sys.setprofile(None)
    assert (len(plans), len(plans["n0000"].roster)) == (1000, 1000)
    assert calls["call"] < 100 * 1000
