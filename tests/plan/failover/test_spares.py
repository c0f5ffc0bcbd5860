"""Which place a slot gets, and which it never gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kvpool.api.supernode import EvidenceClass, SpareCounts
from kvpool.model.decisions import OpenRemap
from kvpool.model.observations import HOLDER_UNKNOWN, AgentView
from kvpool.plan.failover import failover_plan
from kvpool.plan.supernodes import supernode_status
from tests.builders.failover import World
from tests.builders.failover_hosts import Host


def world_of(*hosts: tuple[str, str, str], devices: int = 1) -> World:
    """Hosts as (name, board, rack); the first has the engine, the others warm standbys."""
    world = World()
    for name, board, rack in hosts:
        world.with_host(name, board=board, rack=rack, devices=devices)
        world.with_engine(name, "acc-0", standby=name != hosts[0][0])
    return world.with_supernode().with_group()


class Temperate(World):
    """A world of :func:`world_of` whose engines say how warm they are, by host; others are EngineReady."""

    def __init__(self, hosts: Sequence[tuple[str, str, str]], readiness: dict[str, str]) -> None:
        super().__init__()
        self.readiness = readiness
        for number, (name, board, rack) in enumerate(hosts):
            self.with_host(name, board=board, rack=rack).with_engine(name, "acc-0", standby=number > 0)
        self.with_supernode()

    def view_of(self, host: Host, plan_revision: int) -> AgentView:
        view = super().view_of(host, plan_revision)
        says = self.readiness.get(host.name, "EngineReady")
        return replace(view, engines=tuple(replace(engine, readiness=says) for engine in view.engines))


def spares_of(world: World) -> SpareCounts:
    """What the Supernode says of its spares."""
    (supernode,) = world.api.supernodes.values()
    return supernode_status(world.operator.snapshot(), supernode, world.now).spares


def broken(world: World, host: str = "a-first") -> World:
    return world.report(host, "acc-0", EvidenceClass.FATAL)


HOSTS = (
    ("a-first", "b1", "r1"),
    ("m-far", "b5", "r3"),
    ("n-same-rack", "b2", "r1"),
    ("z-same-board", "b1", "r1"),
)


@pytest.mark.parametrize(
    ("dead", "place"),
    [
        ((), "z-same-board/acc-0"),
        (("z-same-board",), "n-same-rack/acc-0"),
        (("z-same-board", "n-same-rack"), "m-far/acc-0"),
    ],
)
def test_the_nearest_spare_is_taken(dead: tuple[str, ...], place: str) -> None:
    world = world_of(*HOSTS).start().run(20, step=1.0)
    for host in dead:
        broken(world, host)
    assert broken(world).run(4).place() == place


def test_equal_spares_are_taken_by_name_in_whatever_order_they_are_known() -> None:
    hosts = [("a-first", "b1", "r1"), ("c", "b3", "r2"), ("b", "b2", "r2"), ("d", "b4", "r2")]
    for order in (hosts, [hosts[0], *reversed(hosts[1:])]):
        world = world_of(*order).start().run(20, step=1.0)
        assert broken(world).run(4).place() == "b/acc-0"


def test_a_spare_in_quarantine_is_passed_over() -> None:
    world = world_of(*HOSTS).start().run(20, step=1.0)
    broken(world).run(4)
    assert world.place() == "z-same-board/acc-0"
    world.heal("a-first", "acc-0")
    broken(world, "z-same-board").run(4)
    assert world.place() == "n-same-rack/acc-0", "a-first is clean, but not for long enough"


def test_a_spare_under_maintenance_is_passed_over() -> None:
    world = world_of(*HOSTS).start().run(20, step=1.0)
    world.set_maintenance(["z-same-board"])
    assert broken(world).run(4).place() == "n-same-rack/acc-0"


def test_a_spare_whose_agent_is_silent_is_passed_over() -> None:
    world = world_of(*HOSTS).start().run(20, step=1.0)
    world.hosts["z-same-board"].agent_up = False
    assert broken(world.run(2)).run(4).place() == "n-same-rack/acc-0"


def test_a_device_without_a_warm_engine_is_no_spare_for_a_role_that_wants_one() -> None:
    world = world_of(HOSTS[0]).with_host("z-same-board", board="b1", rack="r1").start().run(20, step=1.0)
    broken(world).run(4)
    assert world.place() == "a-first/acc-0"
    assert "1 without a warm engine" in world.reason().message


def test_a_device_without_an_engine_will_do_when_readiness_is_device() -> None:
    world = world_of(HOSTS[0]).with_host("z-same-board", board="b1", rack="r1")
    standby = {"podSelector": {"matchLabels": {"app": "standby"}}, "readiness": "Device"}
    world.with_group(standby=standby).start().run(20, step=1.0)
    assert broken(world).run(4).place() == "z-same-board/acc-0"


@pytest.mark.parametrize("holder", ["uid-stranger", "other/named-by-kubelet", HOLDER_UNKNOWN])
def test_a_device_is_no_spare_while_somebody_holds_it_or_nobody_knows(holder: str) -> None:
    world = world_of(HOSTS[0]).with_host("z-same-board", board="b1", rack="r1")
    world.hosts["z-same-board"].held_by["acc-0"] = holder
    standby = {"podSelector": {"matchLabels": {"app": "standby"}}, "readiness": "Device"}
    world.with_group(standby=standby).start().run(20, step=1.0)
    assert broken(world).run(4).place() == "a-first/acc-0"


@pytest.mark.parametrize(
    ("says", "asked", "place"),
    [
        ("Device", "WeightsLoaded", "n-same-rack/acc-0"),
        ("WeightsLoaded", "WeightsLoaded", "z-same-board/acc-0"),
        ("EngineReady", "WeightsLoaded", "z-same-board/acc-0"),
        ("WeightsLoaded", "EngineReady", "n-same-rack/acc-0"),
        ("Device", "Device", "z-same-board/acc-0"),
        ("a word of tomorrow", "WeightsLoaded", "n-same-rack/acc-0"),
        ("", "Device", "z-same-board/acc-0"),
    ],
)
def test_a_standby_takes_a_seat_when_it_is_as_warm_as_the_role_asks(
    says: str, asked: str, place: str
) -> None:
    world = Temperate(HOSTS, {"z-same-board": says})
    standby = {"podSelector": {"matchLabels": {"app": "standby"}}, "readiness": asked}
    world.with_group(standby=standby).start().run(20, step=1.0)
    assert broken(world).run(4).place() == place


def test_a_standby_that_is_too_cold_is_named_and_counts_as_no_spare() -> None:
    world = Temperate((HOSTS[0], HOSTS[3]), {"z-same-board": "Device"})
    standby = {"podSelector": {"matchLabels": {"app": "standby"}}, "readiness": "WeightsLoaded"}
    world.with_group(standby=standby).start().run(20, step=1.0)
    assert spares_of(world).ready == 0
    broken(world).run(4)
    assert world.place() == "a-first/acc-0"
    assert world.reason().code == "NoSpare"
    assert "which is at Device, standby.readiness is WeightsLoaded" in world.reason().message
    world.readiness["z-same-board"] = "WeightsLoaded"
    assert world.run(10, step=1.0).place() == "z-same-board/acc-0"


def test_a_soft_move_does_not_take_the_last_warm_standby_because_a_cold_one_is_left() -> None:
    world = Temperate((HOSTS[0], HOSTS[2], HOSTS[3]), {"z-same-board": "Device"})
    standby = {"podSelector": {"matchLabels": {"app": "standby"}}, "readiness": "WeightsLoaded"}
    world.with_group(standby=standby).start().run(20, step=1.0)
    assert spares_of(world).ready == 1
    world.set_maintenance(["a-first"]).run(10, step=1.0)
    assert world.place() == "a-first/acc-0"
    assert world.reason().code == "SpareFloor"


def test_a_warm_standby_is_preferred_to_an_empty_device_of_the_same_distance() -> None:
    world = world_of(HOSTS[0]).with_host("b-empty", board="b1", rack="r1")
    world.with_host("z-warm", board="b1", rack="r1").with_engine("z-warm", "acc-0", standby=True)
    standby = {"podSelector": {"matchLabels": {"app": "standby"}}, "readiness": "Device"}
    world.with_group(standby=standby).start().run(20, step=1.0)
    assert broken(world).run(4).place() == "z-warm/acc-0"


def test_a_device_that_somebody_elses_pod_holds_is_no_spare() -> None:
    world = world_of(HOSTS[0]).with_host("z-same-board", board="b1", rack="r1")
    world.with_engine("z-same-board", "acc-0", name="stranger")
    stranger = world.hosts["z-same-board"].engines[0]
    object.__setattr__(stranger.pod, "labels", {"app": "other"})
    world.start().run(20, step=1.0)
    broken(world).run(4)
    assert world.place() == "a-first/acc-0"


def test_another_supernode_is_used_only_when_it_is_allowed() -> None:
    for allowed, place in ((False, "a-first/acc-0"), (True, "other/acc-0")):
        world = world_of(HOSTS[0]).with_supernode(spares={"allowRemote": allowed})
        world.with_host("other", board="b9", rack="r9").with_engine("other", "acc-0", standby=True)
        world.outside = {"other"}
        world.start().run(20, step=1.0)
        assert broken(world).run(4).place() == place


def test_a_seat_of_two_devices_takes_two_of_one_node_or_none() -> None:
    standby = {"podSelector": {"matchLabels": {"app": "standby"}}, "readiness": "Device"}
    world = World().with_host("a-first", board="b1", rack="r1", devices=2)
    world.with_engine("a-first", "acc-0", more=("acc-1",))
    world.with_host("b-half", board="b1", rack="r1", devices=1).with_host(
        "c-whole", board="b2", rack="r2", devices=2
    )
    world.with_supernode().with_group(standby=standby, devicesPerPod=2).start().run(20, step=1.0)
    assert world.place() == "a-first/acc-0+acc-1"
    assert broken(world).run(4).place() == "c-whole/acc-0+acc-1"


def test_engines_that_run_already_keep_their_places_in_the_order_of_their_names() -> None:
    world = World()
    for number in (1, 2, 10):
        world.with_host(f"host-{number}", board=f"b{number}", rack="r1")
        world.with_engine(f"host-{number}", "acc-0", name=f"decode-{number}")
    world.with_supernode().with_group(instances=None).start().run(20, step=1.0)
    places = [world.place(f"chat-decode-{instance}") for instance in range(3)]
    assert places == ["host-1/acc-0", "host-2/acc-0", "host-10/acc-0"]


def test_seats_of_attach_observe_follow_their_pods_and_are_moved_by_nobody_else() -> None:
    world = world_of(*HOSTS).with_group(attach="Observe", standby=None).start().run(20, step=1.0)
    assert world.place() == "a-first/acc-0"
    broken(world).run(5)
    assert world.place() == "a-first/acc-0"
    assert world.reason().code == "AttachObserve"
    engine = world.hosts["a-first"].engines.pop()
    world.hosts["z-same-board"].engines.clear()
    world.with_engine("z-same-board", "acc-0", name=engine.pod.key.name)
    world.run(20, step=1.0)
    assert world.place() == "z-same-board/acc-0"
    assert world.serving()


def test_a_seat_follows_its_pod_however_long_the_pod_was_away() -> None:
    world = world_of(*HOSTS).with_group(attach="Observe", standby=None).start().run(20, step=1.0)
    assert world.place() == "a-first/acc-0"
    engine = world.hosts["a-first"].engines.pop()
    world.hosts["z-same-board"].engines.clear()
    world.run(60, step=1.0)
    assert world.place() == "a-first/acc-0"
    assert not world.serving()
    world.with_engine("z-same-board", "acc-0", name=engine.pod.key.name)
    world.run(20, step=1.0)
    assert world.place() == "z-same-board/acc-0"
    assert world.serving()


def test_a_seat_is_left_by_nobody_while_kubelet_does_not_say_who_holds_its_device() -> None:
    world = world_of(*HOSTS).with_group(attach="Observe", standby=None).start().run(20, step=1.0)
    engine = world.hosts["a-first"].engines.pop()
    world.hosts["z-same-board"].engines.clear()
    world.run(60, step=1.0)
    world.with_engine("z-same-board", "acc-0", name=engine.pod.key.name)
    world.operator.refresh()
    world.operator.hear()
    snapshot, now = world.operator.snapshot(), world.now
    agent = snapshot.agents["a-first"]
    unknown = replace(agent, devices=tuple(replace(one, holder=HOLDER_UNKNOWN) for one in agent.devices))
    silent = replace(snapshot, agents={**snapshot.agents, "a-first": unknown})
    assert any(isinstance(action, OpenRemap) for action in failover_plan(snapshot, now).actions)
    assert not any(isinstance(action, OpenRemap) for action in failover_plan(silent, now).actions)
