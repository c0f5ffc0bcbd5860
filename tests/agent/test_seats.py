"""Who sits where: the rules alone, without sockets."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kvpool.api.supernode import FenceLevel
from kvpool.rules.lease import Stand
from kvpool_agent.processes import ProcessId
from kvpool_agent.seats import Command, Engine, PlannedSeat, SeatBook, SeatState, Verb

SLOT = "inference/decode-0"
SEAT = PlannedSeat(SLOT, 5, ("gpu0",))


def engine(connection: int = 1, pod_uid: str = "pod-a", pid: int = 100, device: str = "gpu0") -> Engine:
    return Engine(
        connection=connection,
        pod_uid=pod_uid,
        pod_name=f"inference/{pod_uid}",
        endpoint="10.0.0.1:8000",
        devices=(device,),
        standby=True,
        readiness="EngineReady",
        guarded=False,
        process=ProcessId(pid, 1),
    )


def leased_book() -> SeatBook:
    return SeatBook(stand=Stand.HELD)


def serving_book() -> SeatBook:
    book = leased_book()
    book.register(engine(), "", 0)
    book.plan([SEAT], hold=False)
    assert verbs(book.settle()) == [Verb.SERVE]
    book.attached(1, SLOT, 5)
    book.settle()
    return book


def verbs(commands: tuple[Command, ...]) -> list[Verb]:
    return [command.verb for command in commands]


def state(book: SeatBook, epoch: int = 5) -> SeatState:
    return book.records[SLOT, epoch].state


def released_at(book: SeatBook, epoch: int = 5) -> FenceLevel:
    assert state(book, epoch) is SeatState.RELEASED
    return book.records[SLOT, epoch].fence_level


def test_an_engine_that_holds_the_devices_is_told_to_serve_once() -> None:
    book = leased_book()
    book.register(engine(), "", 0)
    book.plan([SEAT], hold=False)
    assert book.settle() == (Command(1, Verb.SERVE, SLOT, 5, ("gpu0",)),)
    assert book.settle() == ()
    assert state(book) is SeatState.WAITING


def test_an_engine_that_is_in_no_plan_is_never_told_to_serve() -> None:
    book = leased_book()
    book.register(engine(device="gpu7"), "", 0)
    book.plan([SEAT], hold=False)
    assert book.settle() == ()


def test_the_plan_may_name_the_pod_instead_of_leaving_it_to_the_devices() -> None:
    book = leased_book()
    book.register(engine(1, "pod-a", 100), "", 0)
    book.register(engine(2, "pod-b", 200), "", 0)
    book.plan([PlannedSeat(SLOT, 5, ("gpu0",), "pod-b")], hold=False)
    assert [command.connection for command in book.settle()] == [2]


@pytest.mark.parametrize("holder", ["pod-a", "inference/pod-a"], ids=["by UID", "by name"])
def test_the_provider_may_know_who_holds_a_device_when_the_engine_does_not_say(holder: str) -> None:
    book = leased_book()
    book.register(engine(device="unknown"), "", 0)
    book.holders = {"gpu0": holder}
    book.plan([SEAT], hold=False)
    assert verbs(book.settle()) == [Verb.SERVE]


def test_nothing_is_started_on_hold_or_without_a_lease() -> None:
    for stand, hold in ((Stand.HELD, True), (Stand.SERVING_ON, False), (Stand.STOP, False)):
        book = SeatBook(stand=stand)
        book.register(engine(), "", 0)
        book.plan([SEAT], hold=hold)
        assert book.settle() == ()


def test_a_seat_that_left_the_plan_is_released_only_when_the_engine_confirms() -> None:
    book = serving_book()
    book.plan([], hold=False)
    assert verbs(book.settle()) == [Verb.STOP]
    assert state(book) is SeatState.STOPPING
    book.stopped(1, SLOT, 5)
    book.settle()
    assert state(book) is SeatState.RELEASED


def test_a_pod_that_was_never_told_is_not_proven_out_while_it_holds_the_devices() -> None:
    book = leased_book()
    book.holders = None
    book.plan([SEAT], hold=False)
    book.plan([], hold=False)
    book.settle()
    assert released_at(book) is FenceLevel.CONTENT_ONLY, "nothing is known of the devices yet"
    book.holders = {"gpu0": "pod-observed", "gpu1": "pod-else"}
    book.settle()
    assert released_at(book) is FenceLevel.CONTENT_ONLY
    book.holders = None
    book.settle()
    assert released_at(book) is FenceLevel.CONTENT_ONLY, "an agent that starts anew has not asked yet"
    book.holders, book.unasked = {"gpu1": "pod-else"}, frozenset({"gpu0"})
    book.settle()
    assert released_at(book) is FenceLevel.CONTENT_ONLY, "the device cannot be asked about"
    book.unasked = frozenset()
    book.settle()
    assert released_at(book) is FenceLevel.PROCESS


@pytest.mark.parametrize("holder", ["pod-a", "inference/pod-a"], ids=["by UID", "by name"])
def test_an_engine_that_waits_on_the_local_api_serves_nothing_though_it_holds_the_devices(
    holder: str,
) -> None:
    book = leased_book()
    book.register(engine(), "", 0)
    book.holders = {"gpu0": holder}
    book.plan([SEAT], hold=True)
    book.plan([], hold=True)
    book.settle()
    assert released_at(book) is FenceLevel.PROCESS


def test_an_engine_that_stopped_waits_as_a_standby_from_then_on() -> None:
    book = leased_book()
    book.register(dataclasses.replace(engine(), standby=False), "", 0)
    book.plan([SEAT], hold=False)
    book.settle()
    book.attached(1, SLOT, 5)
    book.plan([], hold=False)
    book.settle()
    assert not book.engines[1].standby
    book.stopped(1, SLOT, 5)
    assert book.engines[1].standby


def test_a_disconnected_engine_is_not_released_while_its_process_lives() -> None:
    book = serving_book()
    book.left(1)
    book.plan([], hold=False)
    assert book.settle() == ()
    assert state(book) is SeatState.STOPPING
    assert book.watched() == {(SLOT, 5): ProcessId(100, 1)}
    book.process_gone((SLOT, 5))
    assert state(book) is SeatState.RELEASED


def test_an_engine_whose_end_cannot_be_proven_stays_stopping_until_it_comes_back() -> None:
    book = leased_book()
    blind = Engine(1, "pod-a", "", "", ("gpu0",), standby=True, readiness="", guarded=False, process=None)
    book.register(blind, "", 0)
    book.plan([SEAT], hold=False)
    book.settle()
    book.left(1)
    book.plan([], hold=False)
    book.settle()
    assert book.watched() == {}
    assert state(book) is SeatState.STOPPING


def test_another_process_of_the_same_pod_cannot_confirm_for_the_first() -> None:
    book = serving_book()
    book.left(1)
    book.register(engine(2, pid=101), "", 0)
    book.plan([], hold=False)
    book.settle()
    book.stopped(2, SLOT, 5)
    assert state(book) is SeatState.STOPPING


def test_a_seat_nobody_was_told_to_take_is_released_at_once() -> None:
    book = leased_book()
    book.plan([SEAT], hold=False)
    book.settle()
    book.plan([], hold=False)
    book.settle()
    assert state(book) is SeatState.RELEASED


def test_an_engine_told_to_serve_that_has_not_answered_must_confirm_too() -> None:
    book = leased_book()
    book.register(engine(), "", 0)
    book.plan([SEAT], hold=False)
    book.settle()
    book.plan([], hold=False)
    assert verbs(book.settle()) == [Verb.STOP]
    assert state(book) is SeatState.STOPPING


def test_coming_back_without_a_slot_proves_nothing() -> None:
    book = leased_book()
    book.register(engine(), "", 0)
    book.plan([SEAT], hold=False)
    book.settle()
    book.left(1)
    book.plan([], hold=False)
    book.register(engine(2), "", 0)
    assert verbs(book.settle()) == [Verb.STOP]
    assert state(book) is SeatState.STOPPING


def test_an_engine_that_serves_through_a_restart_of_the_agent_is_kept() -> None:
    before = serving_book()
    book = SeatBook(records=dict(before.records), stand=Stand.HELD)
    book.register(engine(9), SLOT, 5)
    assert book.settle() == ()
    book.plan([SEAT], hold=False)
    assert book.settle() == ()
    assert state(book) is SeatState.ATTACHED


def test_an_engine_that_serves_an_epoch_of_the_past_is_stopped_once_there_is_a_plan() -> None:
    book = leased_book()
    book.register(engine(), SLOT, 4)
    assert book.settle() == ()
    book.plan([SEAT], hold=False)
    assert [(c.verb, c.epoch) for c in book.settle()] == [(Verb.STOP, 4)]
    book.stopped(1, SLOT, 4)
    assert [(c.verb, c.epoch) for c in book.settle()] == [(Verb.SERVE, 5)]


def test_a_second_engine_that_claims_the_same_seat_is_stopped() -> None:
    book = serving_book()
    book.register(engine(2, "pod-b", 200), SLOT, 5)
    assert [(c.connection, c.verb) for c in book.settle()] == [(2, Verb.STOP)]
    book.stopped(2, SLOT, 5)
    assert state(book) is SeatState.ATTACHED


def test_a_lost_lease_stops_the_engine_but_releases_no_seat() -> None:
    book = serving_book()
    book.stand = Stand.STOP
    assert verbs(book.settle()) == [Verb.STOP]
    book.stopped(1, SLOT, 5)
    assert book.settle() == ()
    assert state(book) is SeatState.WAITING
    book.stand = Stand.HELD
    assert verbs(book.settle()) == [Verb.SERVE]


def test_serving_on_without_lease_stops_nothing() -> None:
    book = serving_book()
    book.stand = Stand.SERVING_ON
    assert book.settle() == ()
    assert state(book) is SeatState.ATTACHED


def test_a_released_seat_is_forgotten_when_the_slot_comes_back_under_a_later_epoch() -> None:
    book = serving_book()
    book.plan([], hold=False)
    book.settle()
    book.stopped(1, SLOT, 5)
    book.plan([PlannedSeat(SLOT, 6, ("gpu0",))], hold=False)
    assert verbs(book.settle()) == [Verb.SERVE]
    assert (SLOT, 5) not in book.records


class SlowEngine(RuleBasedStateMachine):
    """One engine that obeys late or never: it serves from Serve until it says Stopped or dies."""

    def __init__(self) -> None:
        super().__init__()
        self.book = leased_book()
        self.pid = 100
        self.connected = False
        self.serving: set[int] = set()
        self.unheard: list[Command] = []
        self.come()

    @rule(epochs=st.sampled_from([(), (5,), (6,)]))
    def plan(self, epochs: tuple[int, ...]) -> None:
        self.book.plan([PlannedSeat(SLOT, epoch, ("gpu0",)) for epoch in epochs], hold=False)
        self.settle()

    @rule(stand=st.sampled_from(list(Stand)))
    def lease(self, stand: Stand) -> None:
        self.book.stand = stand
        self.settle()

    @precondition(lambda self: self.connected)
    @rule()
    def confirm_serving(self) -> None:
        for epoch in self.serving:
            self.book.attached(1, SLOT, epoch)
        self.settle()

    @precondition(lambda self: self.connected)
    @rule()
    def obey_stops(self) -> None:
        for command in self.unheard:
            if command.verb is Verb.STOP:
                self.serving.discard(command.epoch)
                self.book.stopped(1, SLOT, command.epoch)
        self.unheard.clear()
        self.settle()

    @precondition(lambda self: self.connected)
    @rule()
    def hang_up(self) -> None:
        self.book.left(1)
        self.unheard.clear()
        self.connected = False
        self.settle()

    @precondition(lambda self: not self.connected)
    @rule()
    def come(self) -> None:
        epoch = max(self.serving, default=0)
        self.book.register(engine(1, pid=self.pid), SLOT if epoch else "", epoch)
        self.connected = True
        self.settle()

    @precondition(lambda self: not self.connected)
    @rule()
    def die(self) -> None:
        self.serving.clear()
        for key in self.book.watched():
            self.book.process_gone(key)
        self.pid += 1
        self.settle()

    def settle(self) -> None:
        for command in self.book.settle():
            self.unheard.append(command)
            if command.verb is Verb.SERVE:
                self.serving.add(command.epoch)

    @invariant()
    def one_epoch_at_a_time(self) -> None:
        assert len(self.serving) <= 1

    @invariant()
    def no_epoch_is_called_released_while_it_may_be_served(self) -> None:
        released = {r.epoch for r in self.book.records.values() if r.state is SeatState.RELEASED}
        assert not released & self.serving


TestSlowEngine = SlowEngine.TestCase
TestSlowEngine.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
