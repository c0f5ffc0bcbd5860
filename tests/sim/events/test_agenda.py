"""What happens next, and in which order."""

from hypothesis import given
from hypothesis import strategies as st

from kvpool.sim.events import Agenda, Kind

EVENTS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(Kind), st.integers(0, 3)),
    unique_by=lambda event: event[1:],
)


def drained(agenda: Agenda) -> list[tuple[int, int, int]]:
    events = []
    while (event := agenda.pop()) is not None:
        events.append(event)
    return events


@given(EVENTS)
def test_events_come_by_time_then_kind_then_id_however_they_were_put_in(
    events: list[tuple[int, Kind, int]],
) -> None:
    forth, back = Agenda(), Agenda()
    for time_ns, kind, ident in events:
        forth.at(time_ns, kind, ident)
    for time_ns, kind, ident in reversed(events):
        back.at(time_ns, kind, ident)
    assert drained(forth) == drained(back) == sorted(events)


def test_an_event_put_to_another_time_comes_once_and_then() -> None:
    agenda = Agenda()
    agenda.at(10, Kind.STEP, 1)
    agenda.at(20, Kind.STEP, 1)
    agenda.at(5, Kind.STEP, 1)
    agenda.at(7, Kind.LINK, 1)
    assert drained(agenda) == [(5, Kind.STEP, 1), (7, Kind.LINK, 1)]


def test_an_event_put_back_to_a_time_it_had_before_comes_once() -> None:
    agenda = Agenda()
    for time_ns in (10, 20, 10):
        agenda.at(time_ns, Kind.STEP, 1)
    assert drained(agenda) == [(10, Kind.STEP, 1)]


def test_a_cancelled_event_does_not_come() -> None:
    agenda = Agenda()
    agenda.at(10, Kind.STEP, 1)
    agenda.cancel(Kind.STEP, 1)
    agenda.cancel(Kind.STEP, 2)
    assert len(agenda) == 0
    assert agenda.pop() is None
