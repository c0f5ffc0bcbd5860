"""Random histories of the model world: faults, delays, crashes between any two writes, late writes."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kvpool.api.supernode import EvidenceClass
from tests.builders.failover import World
from tests.builders.failover_operator import Operator
from tests.plan.failover.invariants import Invariants, is_settled, settled

HOSTS = ("node-1", "node-2", "node-3", "node-4", "node-5")
DEVICE = "acc-0"
FAULTS = (
    "fatal",
    "soft",
    "repaired",
    "dead",
    "boots",
    "agent dies",
    "agent starts",
    "engine ignores stops",
    "router",
)
WISHES = ("maintenance", "no maintenance", "cancel", "pause", "1", "2", "3")
hosts = st.sampled_from(HOSTS)


@dataclass(frozen=True)
class Turn:
    """Which parts of one turn take place."""

    working: tuple[str, ...]
    hears: tuple[str, ...]
    catches_up: bool
    thinks: bool
    publishes_first: bool
    writes: int
    publishes_last: bool


some_hosts = st.one_of(st.just(HOSTS), st.lists(hosts, max_size=3, unique=True).map(tuple))
turns_of_operators = st.builds(
    Turn,
    working=some_hosts,
    hears=some_hosts,
    catches_up=st.booleans(),
    thinks=st.booleans(),
    publishes_first=st.booleans(),
    writes=st.integers(0, 3),
    publishes_last=st.booleans(),
)


def two_slots_and_three_spares() -> World:
    world = World()
    for number, name in enumerate(HOSTS):
        world.with_host(name, board=f"b{number}", rack=f"r{number % 2}")
        world.with_engine(name, DEVICE, standby=number > 1)
    return world.with_supernode(spares={"floor": 1}).with_group(instances=2).start().run(3)


class Failover(RuleBasedStateMachine):
    """Every rule is one small event; what an operator decided is written one write at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.world = two_slots_and_three_spares()
        self.deposed: list[Operator] = []
        self.watch = Invariants(self.world)

    @property
    def operator(self) -> Operator:
        return self.world.operator

    @rule(turns=st.integers(1, 6), seconds=st.sampled_from((0.2, 1.0, 3.0)))
    def all_goes_well(self, turns: int, seconds: float) -> None:
        for _ in range(turns):
            self.world.tick(seconds)
            self.world.round()
            self.watch.check()

    @rule(seconds=st.sampled_from((12.0, 70.0)))
    def all_goes_well_for_long(self, seconds: float) -> None:
        self.world.run(seconds, step=1.0)

    @rule(turn=turns_of_operators, seconds=st.sampled_from((0.0, 0.5, 4.0)))
    def an_operator_takes_a_turn_in_part(self, turn: Turn, seconds: float) -> None:
        """Reports, list-watch and plans may be late or lost; a plan may be carried out in part only."""
        self.world.tick(seconds)
        operator = self.operator
        for host in turn.working:
            self.world.hosts[host].work()
        if turn.catches_up:
            operator.refresh()
        if turn.hears:
            operator.hear(*turn.hears)
        if turn.thinks:
            operator.think()
        if turn.publishes_first:
            operator.publish()
        for _ in range(turn.writes):
            operator.act_once()
            self.watch.check()
        if turn.publishes_last:
            operator.publish()

    @rule(writes=st.integers(0, 2), heard=st.sampled_from(((), HOSTS[:1], HOSTS)))
    def the_operator_dies_and_another_leads(self, writes: int, heard: tuple[str, ...]) -> None:
        """The old one dies within a turn; what it sent may arrive late, what agents say may come later."""
        old = self.operator
        old.refresh()
        old.hear()
        old.think()
        for _ in range(writes):
            old.act_once()
        self.deposed.append(old)
        self.world.lead().views.clear()
        if heard:
            self.operator.hear(*heard)

    @precondition(lambda self: self.deposed)
    @rule()
    def a_write_of_a_dead_operator_arrives_late(self) -> None:
        self.deposed[-1].act_once()

    @rule(fault=st.sampled_from(FAULTS), host=hosts)
    def something_breaks_or_is_repaired(self, fault: str, host: str) -> None:
        world, victim = self.world, self.world.hosts[host]
        match fault:
            case "fatal":
                world.report(host, DEVICE, EvidenceClass.FATAL)
            case "soft":
                world.report(host, DEVICE, EvidenceClass.SOFT, code="63", count=3)
            case "repaired":
                world.heal(host, DEVICE)
            case "dead":
                world.kill_host(host)
            case "boots":
                victim.reboot(world.now_seconds)
            case "agent dies":
                victim.agent_up = False
            case "agent starts" if victim.alive:
                victim.agent_up, victim.hello_at = True, world.now_seconds
            case "engine ignores stops":
                victim.stops = not victim.stops
            case "router":
                world.router_answers = not world.router_answers

    @rule(
        wish=st.sampled_from(("maintenance", "no maintenance", "cancel", "pause", "1", "2", "3")), host=hosts
    )
    def somebody_wants_something(self, wish: str, host: str) -> None:
        world = self.world
        match wish:
            case "maintenance" | "no maintenance":
                world.set_maintenance([host] if wish == "maintenance" else [])
            case "cancel":
                for remap in world.open_remaps():
                    world.cancel(remap)
            case "pause":
                world.paused = not world.paused
            case _:
                world.set_instances(int(wish))

    @invariant()
    def nothing_unsafe_has_happened(self) -> None:
        self.watch.check()

    def teardown(self) -> None:
        """P1, P4, S14: once faults are over, every slot is bound and served, whatever happened before."""
        world = self.world
        world.paused, world.router_answers = False, True
        world.set_maintenance([])
        world.set_instances(2)
        for host in world.hosts.values():
            world.heal(host.name, DEVICE)
            if not host.alive:
                host.reboot(world.now_seconds)
            host.agent_up = host.stops = True
        for _ in range(400):
            world.tick(2.0)
            plan = world.round()
            self.watch.check()
            if not plan.actions and is_settled(world):
                return
        settled(world)


Failover.TestCase.settings = settings(
    max_examples=10,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
TestRandomHistories = Failover.TestCase


class LongHistory:
    """One long history, reproduced by its seed: the machine's own rules, drawn more evenly."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.machine = Failover()

    def step(self) -> None:
        draw, machine = self.draw, self.machine
        weights = {
            self.well: 30,
            self.long: 3,
            self.part: 32,
            self.succession: 8,
            self.late: 5,
            self.fault: 15,
            self.wish: 7,
        }
        draw.choices(list(weights), list(weights.values()))[0]()
        machine.watch.check()

    def well(self) -> None:
        self.machine.all_goes_well(self.draw.randint(1, 6), self.draw.choice((0.2, 1.0, 3.0)))

    def long(self) -> None:
        self.machine.all_goes_well_for_long(self.draw.choice((12.0, 70.0)))

    def part(self) -> None:
        draw = self.draw
        turn = Turn(
            working=self.some_hosts(),
            hears=self.some_hosts(),
            catches_up=draw.random() < 0.7,
            thinks=draw.random() < 0.8,
            publishes_first=draw.random() < 0.7,
            writes=draw.randint(0, 3),
            publishes_last=draw.random() < 0.7,
        )
        self.machine.an_operator_takes_a_turn_in_part(turn, draw.choice((0.0, 0.5, 4.0)))

    def some_hosts(self) -> tuple[str, ...]:
        draw = self.draw
        return HOSTS if draw.random() < 0.6 else tuple(draw.sample(HOSTS, draw.randint(0, 3)))

    def succession(self) -> None:
        heard = self.draw.choice(((), HOSTS[:1], HOSTS))
        self.machine.the_operator_dies_and_another_leads(self.draw.randint(0, 2), heard)

    def late(self) -> None:
        if self.machine.deposed:
            self.machine.a_write_of_a_dead_operator_arrives_late()

    def fault(self) -> None:
        self.machine.something_breaks_or_is_repaired(self.draw.choice(FAULTS), self.draw.choice(HOSTS))

    def wish(self) -> None:
        self.machine.somebody_wants_something(self.draw.choice(WISHES), self.draw.choice(HOSTS))


@pytest.mark.parametrize("seed", range(16))
def test_a_long_history_of_faults_is_safe_and_ends_well(seed: int) -> None:
    history = LongHistory(seed)
    for _ in range(100):
        history.step()
    history.machine.teardown()
