"""What every fleet does alike: requests come and end, loads are reported, the state is sampled."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kvpool.plan.routing.views import Ask, Objective, Overlap
from kvpool.sim.events import Agenda, Kind
from kvpool.sim.instances.job import Job
from kvpool.sim.prefixes.tier import Tier
from kvpool.sim.serving.arrivals import Arrivals
from kvpool.sim.serving.lengths import Lengths
from kvpool.sim.serving.outcome import Outcome
from kvpool.sim.serving.run import FleetRun, Sample
from kvpool.sim.serving.views import Clock, View
from kvpool.sim.workloads.request import Request, Workload

TELL_EVERY: Final = 64
"""Requests between two words about progress."""


RETRY_NS: Final = 100_000_000
"""After a connection was refused, until a client tries again."""
FULL_WEIGHT: Final = 100


class Faults(Protocol):
    """What fails and comes back, and what routers are told of it."""

    def due_ns(self) -> int | None:
        """When to look next; None: never again."""

    def is_more_to_come(self) -> bool:
        """Whether a fault or a repair is still ahead."""

    def step(self, now_ns: int) -> None:
        """Let happen what is due."""

    def weights(self) -> list[int]:
        """Of each instance, 0 to 100."""

    def hosts(self) -> list[str]:
        """Which host serves each instance; empty: nobody."""

    def take_words(self) -> list[tuple[int, str]]:
        """What has happened since this was asked last: when, and what."""


STALLED_NS: Final = 600_000_000_000
"""After so long without service it is asked whether any is ahead."""
_UPKEEP: Final = frozenset({Kind.FAULT, Kind.ARRIVAL, Kind.REPORT, Kind.SAMPLE})
"""Events that serve nobody; a request's first arrival is another matter."""


class NobodyServesError(ValueError):
    """Requests wait for ever: instances failed for good, or a routing rule sends them nowhere."""


class Fleet(ABC):
    """Serves one workload; make a new one for each run."""

    def __init__(self, lengths: Lengths, report_interval_ns: int) -> None:
        self.agenda = Agenda()
        self.clock = Clock()
        self.jobs: dict[int, Job] = {}
        """Requests that have come and have not ended."""
        self.samples: list[Sample] = []
        self._lengths = lengths
        self._report_interval_ns = report_interval_ns
        self._sample_every_ns = 0
        self._most_samples = 0
        self._open = 0
        self._told: Callable[[int], None] | None = None
        self._requests: Sequence[Request] = ()
        self._block_tokens = 1
        self._outcomes: list[Outcome | None] = []
        self._seen: set[int] = set()
        self.words: list[tuple[int, str]] = []
        """What happened to instances, and when."""
        self._faults: Faults | None = None
        self._weights: list[int] = []
        self._credit: list[int] = []
        self._hosts: list[str] = []
        self._parked: list[Job] = []

    def run(
        self,
        workload: Workload,
        samples: int = 0,
        told: Callable[[int], None] | None = None,
        faults: Faults | None = None,
    ) -> FleetRun:
        """Serve all requests. `samples`: at most twice as many points of the timeline are kept; 0: none.

        `told` is called now and then with the number of requests that are not done. `faults` lets instances
        fail and come back.

        Raises NobodyServesError when requests are left that nothing will ever end.
        """
        self._requests = workload.requests
        self._block_tokens = workload.block_tokens
        self._told = told
        self._open = len(workload.requests)
        self._outcomes = [None] * self._open
        self.prepare(workload.block_tokens)
        self._arrivals = Arrivals(workload.requests, self.agenda)
        if self._report_interval_ns:
            self.agenda.at(0, Kind.REPORT, 0)
        if samples and workload.requests:
            self._most_samples = samples
            self._sample_every_ns = max(1, workload.requests[-1].arrival_ns // samples)
            self.agenda.at(0, Kind.SAMPLE, 0)
        if faults is not None:
            self._watch(faults)
        self._loop()
        return self.result(tuple(outcome for outcome in self._outcomes if outcome is not None))

    def _loop(self) -> None:
        handlers: dict[int, Callable[[int], None]] = {
            Kind.FAULT: self._on_fault,
            Kind.ARRIVAL: self._on_arrival,
            Kind.REPORT: self._on_report,
            Kind.SAMPLE: self._on_sample,
            **self.handlers(),
        }
        clock, pop, jobs, served_ns = self.clock, self.agenda.pop, self.jobs, 0
        while self._open:
            event = pop()
            if event is None:
                raise self._stalled(served_ns)
            clock.now_ns, kind, ident = event
            # As `_serves`, without a call for each of a million events.
            if kind not in _UPKEEP or (kind == Kind.ARRIVAL and ident not in jobs):
                served_ns = clock.now_ns
            elif clock.now_ns - served_ns > STALLED_NS and not self._is_more_to_come():
                raise self._stalled(served_ns)
            handlers[kind](ident)

    def _serves(self, kind: int, ident: int) -> bool:
        return kind not in _UPKEEP or (kind == Kind.ARRIVAL and ident not in self.jobs)

    def _is_more_to_come(self) -> bool:
        """Whether something is ahead that serves, however far: a long step, a new request, a repair."""
        if self._faults is not None and self._faults.is_more_to_come():
            return True
        return any(self._serves(kind, ident) for kind, ident in self.agenda.pending())

    def _stalled(self, served_ns: int) -> NobodyServesError:
        lost = sum(1 for host in self._hosts if not host)
        why = (
            f"; {lost} of {len(self._hosts)} instances have failed: give spares, or repairedAfter"
            if lost
            else ""
        )
        return NobodyServesError(
            f"{self._open} requests wait, nobody has served any since {served_ns / 1e9:.1f} s, and nothing "
            f"that would is to come{why}"
        )

    @abstractmethod
    def prepare(self, block_tokens: int) -> None:
        """Make what depends on the workload."""

    @abstractmethod
    def handlers(self) -> dict[int, Callable[[int], None]]:
        """What to do for each further kind of event."""

    @abstractmethod
    def take(self, job: Job) -> None:
        """A request has come."""

    @abstractmethod
    def fail(self, place: int) -> None:
        """The instance at that place, which a router chooses, has died with all it held."""

    @abstractmethod
    def views(self) -> Sequence[View]:
        """What routers see of the instances that report."""

    @abstractmethod
    def sample(self) -> Sample:
        """The state now."""

    @abstractmethod
    def result(self, outcomes: tuple[Outcome, ...]) -> FleetRun:
        """What the run gave."""

    @abstractmethod
    def objective(self, slo_class: str) -> Objective:
        """What a class was promised."""

    def ask(self, job: Job, bytes_per_token: int, overlaps: tuple[Overlap, ...]) -> Ask:
        """The request as a router sees it."""
        return Ask(
            job.prompt_tokens,
            job.expected_tokens,
            job.bound_tokens,
            job.objective,
            bytes_per_token,
            overlaps,
            self.clock.now_ns - job.arrival_ns,
        )

    def note_hit(self, job: Job) -> None:
        """Say which tier the prefix of a prompt came from; called when its prefill begins.

        One that brought something up stands at the deepest tier that it came from, whatever else of it had
        to be computed again.
        """
        blocks = job.blocks
        hit = job.hit_tokens // self._block_tokens
        was_held = False
        if hit < len(blocks) and hit < (job.prompt_tokens - 1) // self._block_tokens:
            was_held = blocks[hit] in self._seen
            self._seen.update(blocks[hit:])
        if job.loaded:
            job.deepest = max(job.loaded)
        elif was_held:
            job.deepest = Tier.RECOMPUTE
        elif hit and job.deepest == Tier.NEW:
            job.deepest = Tier.HBM

    def end(self, job: Job) -> None:
        """A request was served: `first_ns` and `end_ns` are set."""
        request = job.request
        self._outcomes[job.number] = Outcome(
            job.number,
            request.slo_class,
            job.arrival_ns,
            job.first_ns,
            job.end_ns,
            job.prompt_tokens,
            request.output_tokens,
            job.hit_tokens,
            job.loaded,
            job.deepest,
            job.recomputed_tokens,
            job.preempted,
        )
        self._lengths.learn(request)
        self._close(job.number, job.end_ns)

    def refuse(self, job: Job, why: str, needed_tokens: int = 0, room_tokens: int = 0) -> None:
        """A request is not served at all; `needed_tokens` and `room_tokens` are for one that fits nowhere."""
        self._outcomes[job.number] = Outcome(
            job.number,
            job.request.slo_class,
            job.arrival_ns,
            -1,
            -1,
            job.prompt_tokens,
            job.request.output_tokens,
            0,
            {},
            Tier.NEW,
            0,
            0,
            why,
            needed_tokens,
            room_tokens,
        )
        self._close(job.number, self.clock.now_ns)

    def open_places(self) -> list[int] | None:
        """Which instances may be sent to, by their weights; None: all.

        An instance of weight w is among them w times in 100.
        """
        if self._faults is None:
            return None
        places = []
        for place, weight in enumerate(self._weights):
            self._credit[place] += weight
            if self._credit[place] >= FULL_WEIGHT:
                self._credit[place] -= FULL_WEIGHT
                places.append(place)
        return places or [place for place, weight in enumerate(self._weights) if weight]

    def park(self, job: Job) -> None:
        """Nobody may be sent to: the request waits for a weight."""
        self._parked.append(job)

    def is_refused(self, job: Job, place: int) -> bool:
        """Whether nobody serves there though the router thinks so; the client then tries again soon."""
        if self._faults is None or self._hosts[place]:
            return False
        self.agenda.at(self.clock.now_ns + RETRY_NS, Kind.ARRIVAL, job.number)
        return True

    def again(self, job: Job) -> None:
        """A request whose instance died: the client asks anew after a moment."""
        job.restart()
        self.agenda.at(self.clock.now_ns + RETRY_NS, Kind.ARRIVAL, job.number)

    def _watch(self, faults: Faults) -> None:
        self._faults = faults
        self._weights, self._hosts = faults.weights(), faults.hosts()
        self._credit = [0] * len(self._weights)
        self._plan_fault(faults)

    def _plan_fault(self, faults: Faults) -> None:
        due = faults.due_ns()
        if due is not None:
            self.agenda.at(max(due, self.clock.now_ns), Kind.FAULT, 0)

    def _on_fault(self, _: int) -> None:
        faults = self._faults
        assert faults is not None, "faults are on the agenda only where there are some"
        faults.step(self.clock.now_ns)
        self.words += faults.take_words()
        before, self._hosts = self._hosts, faults.hosts()
        for place, (old, new) in enumerate(zip(before, self._hosts, strict=True)):
            if old and old != new:
                self.fail(place)
        if faults.weights() != self._weights:
            self._weights = faults.weights()
            parked, self._parked = self._parked, []
            for job in parked:
                self.take(job)
        self._plan_fault(faults)

    def _close(self, number: int, now_ns: int) -> None:
        del self.jobs[number]
        self._open -= 1
        if self._told is not None and self._open % TELL_EVERY == 0:
            self._told(self._open)
        self._arrivals.ended(number, now_ns)

    def _on_arrival(self, number: int) -> None:
        known = self.jobs.get(number)
        if known is not None:
            self.take(known)
            return
        request = self._requests[number]
        job = Job(number, request, self.clock.now_ns, self.objective(request.slo_class), self._block_tokens)
        predicted = self._lengths.predict(number, request)
        job.expected_tokens, job.bound_tokens = predicted.mean_tokens, predicted.bound_tokens
        self.jobs[number] = job
        self.take(job)

    def _on_report(self, _: int) -> None:
        for view in self.views():
            view.report()
        self.agenda.at(self.clock.now_ns + self._report_interval_ns, Kind.REPORT, 0)

    def _on_sample(self, _: int) -> None:
        self.samples.append(self.sample())
        if len(self.samples) >= 2 * self._most_samples:
            del self.samples[1::2]
            self._sample_every_ns *= 2
        self.agenda.at(self.clock.now_ns + self._sample_every_ns, Kind.SAMPLE, 0)
