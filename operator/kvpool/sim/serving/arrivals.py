"""When requests come: at their time, or so long after the one before them in their session has ended."""

from collections.abc import Sequence

from kvpool.sim.events import Agenda, Kind
from kvpool.sim.workloads.request import Request


class Arrivals:
    """Puts requests on the agenda; those of a session that wait for another come when that has ended."""

    def __init__(self, requests: Sequence[Request], agenda: Agenda) -> None:
        self._requests = requests
        self._agenda = agenda
        self._next: dict[int, int] = {}
        last: dict[int, int] = {}
        for number, request in enumerate(requests):
            before = last.get(request.session) if request.session >= 0 else None
            if request.session >= 0:
                last[request.session] = number
            if before is None or request.think_ns < 0:
                agenda.at(request.arrival_ns, Kind.ARRIVAL, number)
            else:
                self._next[before] = number

    def ended(self, number: int, now_ns: int) -> None:
        """A request was served or refused: what waited for it comes after its think time."""
        follower = self._next.pop(number, None)
        if follower is not None:
            self._agenda.at(now_ns + self._requests[follower].think_ns, Kind.ARRIVAL, follower)
