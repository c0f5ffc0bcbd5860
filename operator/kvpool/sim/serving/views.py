"""What routers see of instances: the state itself, or reports of a certain age and their own dispatches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kvpool.plan.routing.pending import Pending
from kvpool.plan.routing.views import Instance, Objective, Running
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.instances.job import Job
from kvpool.sim.instances.prefill import PrefillInstance


class Serving(Protocol):
    """An instance of the simulator that a router may send requests to."""

    capacity_tokens: int
    outstanding: int
    reserved_tokens: int
    pending: Pending

    @property
    def running(self) -> int:
        """Sequences that run or have room."""

    @property
    def kv_tokens(self) -> int:
        """Their tokens."""

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens that wait to be computed."""

    @property
    def steps(self) -> int:
        """Decode steps done."""

    def backlog_ns(self, now_ns: int) -> int:
        """Time until what is on its way has arrived."""

    def look(self, now_ns: int) -> None:
        """Bring the state to now."""

    def jobs(self) -> list[Job]:
        """What runs."""


@dataclass(frozen=True, slots=True)
class Belief:
    """The constants of an instance as its router believes them to be; they may be wrong."""

    timing: TimingModel
    link: LinkModel
    capacity_tokens: int


@dataclass(slots=True)
class Clock:
    """The time that views are read at."""

    now_ns: int = 0


@dataclass(frozen=True, slots=True)
class SeenSequence:
    """One sequence as a router sees it."""

    remaining_tokens: int
    reserved_tokens: int
    objective: Objective


class View(Instance, Protocol):
    """What fleets need of views, beside what routers read."""

    def sent(self, job: Job) -> None:
        """The router has sent a request there."""

    def ended(self, job: Job) -> None:
        """A request has ended there."""

    def report(self) -> None:
        """The instance tells its load."""


class LiveView:
    """The instance as it is at this moment."""

    def __init__(self, instance: Serving, belief: Belief, clock: Clock) -> None:
        self._instance = instance
        self._belief = belief
        self._clock = clock

    @property
    def running(self) -> int:
        """Sequences that run or have room, now."""
        self._instance.look(self._clock.now_ns)
        return self._instance.running

    @property
    def kv_tokens(self) -> int:
        """Their tokens, now."""
        self._instance.look(self._clock.now_ns)
        return self._instance.kv_tokens

    @property
    def reserved_tokens(self) -> int:
        """KV promised, now: also to those that still wait for room."""
        return self._instance.reserved_tokens

    @property
    def capacity_tokens(self) -> int:
        """As believed."""
        return self._belief.capacity_tokens

    @property
    def outstanding(self) -> int:
        """Sent and not ended, now."""
        return self._instance.outstanding

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens not computed, now."""
        return self._instance.prefill_tokens

    @property
    def timing(self) -> TimingModel:
        """As believed."""
        return self._belief.timing

    @property
    def link(self) -> LinkModel:
        """As believed."""
        return self._belief.link

    @property
    def backlog_ns(self) -> int:
        """Of the way in, now."""
        return self._instance.backlog_ns(self._clock.now_ns)

    @property
    def pending(self) -> Pending:
        """The instance's own record."""
        self._instance.look(self._clock.now_ns)
        return self._instance.pending

    def sequences(self) -> Iterable[Running]:
        """What runs, now."""
        self._instance.look(self._clock.now_ns)
        return seen_sequences(self._instance)

    def sent(self, job: Job) -> None:
        """The instance knows already."""

    def ended(self, job: Job) -> None:
        """The instance knows already."""

    def report(self) -> None:
        """Nothing to tell that was not seen."""


class ReportedView:
    """The last report, and what this router sent since."""

    def __init__(self, instance: Serving, belief: Belief, clock: Clock) -> None:
        self._instance = instance
        self._clock = clock
        self.timing = belief.timing
        self.link = belief.link
        self.capacity_tokens = belief.capacity_tokens
        self.running = 0
        self.kv_tokens = 0
        self.reserved_tokens = 0
        self.outstanding = 0
        self.prefill_tokens = 0
        self.pending = Pending()
        self._arrived_ns = 0
        self._sequences: list[SeenSequence] = []
        self._entered: dict[int, tuple[int, Job]] = {}
        self._ended: list[Job] = []

    @property
    def backlog_ns(self) -> int:
        """Of the report, less the time since."""
        return max(0, self._arrived_ns - self._clock.now_ns)

    def sequences(self) -> Iterable[Running]:
        """Of the report, and those that were sent since."""
        return self._sequences

    def sent(self, job: Job) -> None:
        """Count it at once: the next report may be far."""
        objective = job.objective
        if job.number in self._entered:
            # It was lost with the instance and comes again before a report told so.
            self._ended.remove(job)
            self._forget(job)
        end = self.pending.enter(job.expected_tokens, job.need_tokens, objective.weight, objective.tpot_ns)
        self._entered[job.number] = (end, job)
        self.outstanding += 1
        self.reserved_tokens += job.need_tokens
        self.running += 1
        self.kv_tokens += job.prompt_tokens
        self._sequences.append(SeenSequence(max(1, job.expected_tokens), job.need_tokens, objective))

    def ended(self, job: Job) -> None:
        """Known with the next report."""
        self._ended.append(job)

    def report(self) -> None:
        """Take the load of the instance as it is now."""
        instance, now = self._instance, self._clock.now_ns
        instance.look(now)
        self.running = instance.running
        self.kv_tokens = instance.kv_tokens
        self.reserved_tokens = instance.reserved_tokens
        self.outstanding = instance.outstanding
        self.prefill_tokens = instance.prefill_tokens
        self._arrived_ns = now + instance.backlog_ns(now)
        self._sequences = seen_sequences(instance)
        for job in self._ended:
            self._forget(job)
        self._ended.clear()
        self._move_ends()

    def _forget(self, job: Job) -> None:
        end, _ = self._entered.pop(job.number)
        self.pending.leave(end, job.need_tokens, job.objective.weight, job.objective.tpot_ns)

    def _move_ends(self) -> None:
        """Take over when the instance expects each to end: those that had to wait end later than thought."""
        pending = self.pending
        pending.steps = self._instance.steps
        for number, (end, job) in self._entered.items():
            if end != job.expected_end:
                objective = job.objective
                pending.leave(end, job.need_tokens, objective.weight, objective.tpot_ns)
                left = job.expected_end - pending.steps
                moved = pending.enter(left, job.need_tokens, objective.weight, objective.tpot_ns)
                self._entered[number] = (moved, job)


def views_of(
    instances: Sequence[Serving], beliefs: Sequence[Belief], clock: Clock, report_interval_ns: int
) -> list[View]:
    """Return a view of each instance: of reports when there is an interval, else live."""
    pairs = list(zip(instances, beliefs, strict=True))
    if report_interval_ns:
        return [ReportedView(instance, belief, clock) for instance, belief in pairs]
    return [LiveView(instance, belief, clock) for instance, belief in pairs]


def seen_sequences(instance: Serving) -> list[SeenSequence]:
    """The sequences of an instance as it would report them."""
    steps = instance.steps
    return [
        SeenSequence(max(1, job.expected_end - steps), job.reserved_tokens, job.objective)
        for job in instance.jobs()
    ]


class PrefillView:
    """A prefill instance as routers see it: always new, as its queue is known to whoever fills it."""

    def __init__(self, instance: PrefillInstance, timing: TimingModel, link: LinkModel, clock: Clock) -> None:
        self._instance = instance
        self._clock = clock
        self.timing = timing
        self.link = link

    @property
    def backlog_ns(self) -> int:
        """Time until what was sent to it is computed."""
        return self._instance.backlog_ns(self._clock.now_ns)

    @property
    def outstanding(self) -> int:
        """Prompts that were sent to it and are not computed."""
        return self._instance.outstanding

    @property
    def prefill_tokens(self) -> int:
        """Tokens of those prompts that are not computed."""
        return self._instance.waiting_tokens
