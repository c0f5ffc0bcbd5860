"""Which moves and quarantines belong to one incident, whoever leads and however its beginning is measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.api.kvnode import KVNode, Quarantined
from kvpool.api.remap import RemapKind
from kvpool.api.supernode import EvidenceClass
from kvpool.model.snapshot import Leadership, Snapshot
from kvpool.plan.incidents import SAME_BEGINNING_SECONDS, Incidents, Trouble
from tests.builders.failover import World
from tests.plan.failover.serving import broken, serving_world, two_slots

TROUBLE = "node-1/acc-0/uuid"
NOW = World().now


def snapshot_with(*incidents: str) -> Snapshot:
    """A node on which devices are in quarantine for these incidents."""
    quarantine = tuple(
        Quarantined(device=f"acc-{number}", reason="bad", incident=one, since="2026-01-02T03:00:00.000Z")
        for number, one in enumerate(incidents)
    )
    kvnode = KVNode.parse({"metadata": {"name": "node-1"}})
    spec = kvnode.spec.model_copy(update={"quarantine": quarantine})
    kvnodes = {"node-1": kvnode.model_copy(update={"spec": spec})}
    return Snapshot(leadership=Leadership(1, 0.0, 0.0), kvnodes=kvnodes)


def world_with_two_slots_on_one_host() -> World:
    world = World().with_host("node-1", board="b1", rack="r1", devices=2)
    for number in range(2):
        world.with_engine("node-1", f"acc-{number}")
    for number in range(2, 7):
        world.with_host(f"node-{number}", board=f"b{number}", rack="r1")
        world.with_engine(f"node-{number}", "acc-0", standby=True)
    return world.with_supernode().with_group(instances=2).start().run(80)


def moved(world: World) -> dict[str, str]:
    """Slot to the incident of its newest move."""
    ordered = sorted(world.api.remaps.values(), key=lambda remap: remap.spec.epoch)
    return {remap.spec.slot: remap.spec.incident for remap in ordered}


def test_a_first_place_is_no_incident() -> None:
    assert [remap.spec.incident for remap in serving_world().api.remaps.values()] == [""]


def test_the_move_off_a_faulty_device_and_its_quarantine_name_one_incident() -> None:
    world = broken(serving_world()).run(4)
    incident = world.succeeded()[-1].spec.incident
    assert incident
    (entry,) = world.api.kvnodes["node-1"].spec.quarantine
    assert entry.incident == incident
    world.run(200, step=5.0)
    (entry,) = world.api.kvnodes["node-1"].spec.quarantine
    assert entry.incident == incident, "a quarantine that is pushed on is of the same incident"


def test_two_faulty_devices_are_two_incidents() -> None:
    world = broken(broken(two_slots().run(80)), "node-2").run(5)
    one, other = moved(world).values()
    assert one != other


def test_all_slots_of_a_dead_host_are_moved_for_one_incident() -> None:
    world = world_with_two_slots_on_one_host().kill_host("node-1").run(16)
    assert {world.place("chat-decode-0"), world.place("chat-decode-1")} == {"node-2/acc-0", "node-3/acc-0"}
    (incident,) = set(moved(world).values())
    assert incident


def test_a_leader_that_finds_the_second_slot_of_a_dead_host_later_names_the_same_incident() -> None:
    """Its own look at the host begins with its leadership: the beginning differs, the trouble stands."""
    world = world_with_two_slots_on_one_host()
    world.with_supernode(failover={"budgets": {"restorative": {"maxInFlight": 1}}})
    world.operator.refresh()
    world.kill_host("node-1").run(10)
    while not world.open_remaps():
        world.tick(0.25)
        world.round()
    assert len(world.open_remaps()) == 1
    world.lead()
    world.run(60)
    (incident,) = set(moved(world).values())
    assert incident


def test_the_next_attempt_after_a_lost_spare_is_of_the_same_incident() -> None:
    world = serving_world()
    world.hosts["node-1"].stops = False
    broken(world).run(3)
    broken(world, "node-2").run(3)
    first, second = sorted(
        (remap for remap in world.api.remaps.values() if remap.spec.kind is RemapKind.RESTORATIVE),
        key=lambda remap: remap.metadata.name,
    )
    assert first.spec.incident == second.spec.incident != ""


def test_a_device_that_fails_again_after_its_quarantine_is_a_new_incident() -> None:
    world = broken(serving_world()).run(4)
    first = world.succeeded()[-1].spec.incident
    world.heal("node-1", "acc-0").run(700, step=5.0)
    for spare in ("node-3", "node-4"):
        broken(world, spare)
    broken(world, "node-2").run(90)
    assert world.place() == "node-1/acc-0"
    broken(world.heal("node-3", "acc-0"), "node-1").run(4)
    again = moved(world)["chat-decode-0"]
    assert again != first
    assert again.partition("-")[0] == first.partition("-")[0], "the same device"


def test_emptying_a_node_is_one_incident_however_long_it_takes() -> None:
    world = world_with_two_slots_on_one_host().set_maintenance(["node-1"]).run(200)
    assert [remap.spec.kind for remap in world.succeeded()].count(RemapKind.VOLUNTARY) == 2
    (incident,) = set(moved(world).values())
    assert incident


def test_soft_evidence_that_grows_fatal_stays_one_incident() -> None:
    world = serving_world()
    world.router_answers = False
    world.report("node-1", "acc-0", EvidenceClass.SOFT, code="63", count=3).run(65)
    (voluntary,) = world.open_remaps()
    broken(world).run(4)
    assert world.place() == "node-2/acc-0"
    assert moved(world)["chat-decode-0"] == voluntary.spec.incident != ""


@given(st.floats(0, 1e5), st.floats(-1.0, 1.0))
def test_a_beginning_that_is_measured_again_makes_no_second_incident(since: float, error: float) -> None:
    first = Incidents(snapshot_with()).of(Trouble(TROUBLE, since), NOW)
    known = Incidents(snapshot_with(first))
    assert known.of(Trouble(TROUBLE, since + error), NOW) == first
    assert known.of(Trouble(f"{TROUBLE}2", since), NOW) != first


@pytest.mark.parametrize("stands", [True, False], ids=["while it stands", "after it is over"])
def test_a_later_beginning_is_the_same_incident_only_while_the_trouble_stands(stands: bool) -> None:
    first = Incidents(snapshot_with()).of(Trouble(TROUBLE, 100.0), NOW)
    later = Trouble(TROUBLE, 101.0 + SAME_BEGINNING_SECONDS + 60.0)
    known = Incidents(snapshot_with(first) if stands else snapshot_with())
    assert (known.of(later, NOW) == first) is stands


def test_identifiers_that_nobody_of_ours_wrote_are_passed_over() -> None:
    known = Incidents(snapshot_with("", "ticket-4711x", "-", "a-b-c"))
    assert known.of(Trouble(TROUBLE, 5.0), NOW) == Incidents(snapshot_with()).of(Trouble(TROUBLE, 5.0), NOW)
