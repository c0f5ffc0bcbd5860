"""Random histories of the model world: faults, delays, crashes between any two writes, late writes."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kvpool.api.supernode import EvidenceClass
from tests.builders.failover import World
from tests.builders.failover_operator import Operator
from tests.plan.failover.invariants import Invariants, is_settled, settled

HOSTS = ("node-1", "node-2", "node-3", "node-4", "node-5")
DEVICE = "acc-0"
hosts = st.sampled_from(HOSTS)


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

    # -- time, hosts, and what is heard of them

    @rule(seconds=st.sampled_from((0.2, 1.0, 3.0, 7.0)))
    def time_passes(self, seconds: float) -> None:
        self.world.tick(seconds)

    @rule(host=hosts)
    def a_host_works(self, host: str) -> None:
        self.world.hosts[host].work()

    @rule(host=hosts)
    def a_report_arrives(self, host: str) -> None:
        self.operator.hear(host)

    @rule(seconds=st.sampled_from((2.0, 15.0, 70.0)))
    def all_goes_well_for_a_while(self, seconds: float) -> None:
        self.world.run(seconds, step=1.0)

    # -- the operator, one write at a time

    @rule()
    def the_operator_plans(self) -> None:
        self.operator.think()

    @rule()
    def the_operator_writes_once(self) -> None:
        self.operator.act_once()

    @rule()
    def the_operator_publishes(self) -> None:
        self.operator.publish()

    @rule()
    def the_operator_catches_up(self) -> None:
        self.operator.refresh()

    @rule()
    def the_operator_dies_and_another_leads(self) -> None:
        self.deposed.append(self.operator)
        self.world.lead()

    @precondition(lambda self: self.deposed)
    @rule()
    def a_write_of_a_dead_operator_arrives_late(self) -> None:
        self.deposed[-1].act_once()

    @rule(host=hosts)
    def only_one_host_is_heard_by_a_new_leader(self, host: str) -> None:
        self.deposed.append(self.operator)
        self.world.lead().views.clear()
        self.operator.hear(host)

    # -- faults

    @rule(host=hosts)
    def a_device_fails(self, host: str) -> None:
        self.world.report(host, DEVICE, EvidenceClass.FATAL)

    @rule(host=hosts)
    def a_device_stutters(self, host: str) -> None:
        self.world.report(host, DEVICE, EvidenceClass.SOFT, code="63", count=3)

    @rule(host=hosts)
    def a_device_is_repaired(self, host: str) -> None:
        self.world.heal(host, DEVICE)

    @rule(host=hosts)
    def a_host_dies(self, host: str) -> None:
        self.world.kill_host(host)

    @rule(host=hosts)
    def a_host_boots(self, host: str) -> None:
        self.world.hosts[host].reboot(self.world.now_seconds)

    @rule(host=hosts)
    def an_agent_dies(self, host: str) -> None:
        self.world.hosts[host].agent_up = False

    @rule(host=hosts)
    def an_agent_starts(self, host: str) -> None:
        if self.world.hosts[host].alive:
            self.world.hosts[host].agent_up = True
            self.world.hosts[host].hello_at = self.world.now_seconds

    @rule(answers=st.booleans())
    def the_router_falls_silent_or_answers(self, answers: bool) -> None:
        self.world.router_answers = answers

    # -- people

    @rule(host=hosts, wanted=st.booleans())
    def somebody_asks_for_maintenance(self, host: str, wanted: bool) -> None:
        self.world.set_maintenance([host] if wanted else [])

    @precondition(lambda self: self.world.open_remaps())
    @rule(data=st.data())
    def somebody_cancels_a_move(self, data: st.DataObject) -> None:
        remap = data.draw(st.sampled_from(self.world.open_remaps()))
        self.world.cancel(remap)

    @rule(paused=st.booleans())
    def somebody_pauses_or_resumes(self, paused: bool) -> None:
        self.world.paused = paused

    @rule(instances=st.sampled_from((1, 2, 3)))
    def somebody_changes_the_number_of_slots(self, instances: int) -> None:
        self.world.set_instances(instances)

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
            host.agent_up = True
        for _ in range(400):
            world.tick(2.0)
            plan = world.round()
            self.watch.check()
            if not plan.actions and is_settled(world):
                return
        settled(world)


Failover.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
TestRandomHistories = Failover.TestCase
