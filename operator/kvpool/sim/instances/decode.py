"""An instance that only decodes: KV is reserved before it is sent, and sequences join between two steps."""

from collections import deque

from kvpool.plan.routing.pending import Pending
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.instances.batch import Batch
from kvpool.sim.instances.job import Job
from kvpool.sim.instances.pace import Pace, ns_of_ticks, ticks_of_ns
from kvpool.sim.links.shared import SharedLink


class DecodeInstance:
    """Requests wait for room in the order they were sent; what outgrows its reservation may be preempted.

    When the next step would not fit, the sequence that joined last loses its KV and waits at the front; its
    context is computed again here (recompute preemption, as vLLM does).
    """

    __slots__ = (
        "_arriving",
        "_batch",
        "_granted_tokens",
        "_ready",
        "_running",
        "_waiting",
        "capacity_tokens",
        "inbound",
        "link",
        "lost_steps",
        "lost_tokens",
        "most_running",
        "outstanding",
        "pending",
        "recomputed_tokens",
        "reserved_tokens",
        "timing",
        "unjoined_tokens",
    )

    def __init__(self, timing: TimingModel, capacity_tokens: int, most_running: int, link: LinkModel) -> None:
        self.timing = timing
        self.capacity_tokens = capacity_tokens
        self.most_running = most_running
        self.link = link
        self.inbound = SharedLink(link.bytes_per_second)
        self.pending = Pending()
        self.outstanding = 0
        self.reserved_tokens = 0
        """Promised to all that were sent here and have not ended, whether they have room yet or not."""
        self.recomputed_tokens = 0
        self.lost_steps = self.lost_tokens = 0
        """Done and made before the instance died."""
        self.unjoined_tokens = 0
        """Context of sequences that have room but do not run yet."""
        self._batch = Batch(Pace.of(timing))
        self._granted_tokens = 0
        self._arriving: set[int] = set()
        self._waiting: deque[Job] = deque()
        self._ready: deque[Job] = deque()
        self._running: dict[int, Job] = {}

    @property
    def running(self) -> int:
        """Sequences that run or have room and are on their way."""
        return self._batch.running + len(self._arriving) + len(self._ready)

    @property
    def kv_tokens(self) -> int:
        """Their tokens, at the step the batch was last brought to."""
        return self._batch.kv_tokens + self.unjoined_tokens

    @property
    def waiting(self) -> int:
        """Requests that have no room yet."""
        return len(self._waiting)

    @property
    def prefill_tokens(self) -> int:
        """It computes no prompts."""
        return 0

    @property
    def steps(self) -> int:
        """Steps done so far."""
        return self._batch.steps

    @property
    def made_tokens(self) -> int:
        """Tokens decoded so far."""
        return self._batch.made_tokens

    def jobs(self) -> list[Job]:
        """What runs or has landed."""
        return [*self._running.values(), *self._ready]

    def backlog_ns(self, now_ns: int) -> int:
        """Time until what is on the way here has arrived."""
        return self.inbound.backlog_ns(now_ns)

    def look(self, now_ns: int) -> None:
        """Bring the batch to now; changes nothing that could not be said before."""
        self._batch.advance(ticks_of_ns(now_ns))
        self.pending.steps = self._batch.steps

    def send(self, job: Job, now_ns: int) -> None:
        """Let a request wait for room."""
        self.look(now_ns)
        self.outstanding += 1
        self.reserved_tokens += job.need_tokens
        job.enter(self.pending)
        self._waiting.append(job)

    def grant(self, now_ns: int) -> list[Job]:
        """Reserve room for those at the front that fit. Returns who may be sent now.

        What was preempted here is computed again at once and is not returned.
        """
        granted: list[Job] = []
        while self._waiting:
            job = self._waiting[0]
            need = max(job.need_tokens, job.context_tokens + 1)
            if max(self._granted_tokens, self.kv_tokens) + need > self.capacity_tokens:
                break
            self._waiting.popleft()
            job.reserved_tokens = need
            self._granted_tokens += need
            self.unjoined_tokens += job.context_tokens
            if job.must_recompute:
                self._ready.append(job)
            else:
                self._arriving.add(job.number)
                granted.append(job)
        self._activate(now_ns)
        return granted

    def land(self, job: Job, now_ns: int) -> None:
        """The KV of a request has arrived: it joins before the next step, or when the batch has a place."""
        self._arriving.discard(job.number)
        job.is_landed = True
        self._ready.append(job)
        self._activate(now_ns)

    def withdraw(self, job: Job) -> None:
        """A request that had room here needs it no more: it ended elsewhere."""
        self._arriving.discard(job.number)
        self._granted_tokens -= job.reserved_tokens
        self.unjoined_tokens -= job.prompt_tokens
        self.reserved_tokens -= job.need_tokens
        self.outstanding -= 1
        job.leave(self.pending)

    def end(self, now_ns: int) -> list[Job]:
        """Return the requests that have ended by now, with `end_ns` set; their room is free."""
        self.look(now_ns)
        ended: list[Job] = []
        self._mark_firsts()
        for number, ticks in self._batch.take(ticks_of_ns(now_ns)):
            job = self._running.pop(number)
            job.end_ns = ns_of_ticks(ticks)
            job.left_tokens = 0
            self._granted_tokens -= job.reserved_tokens
            self.reserved_tokens -= job.need_tokens
            self.outstanding -= 1
            job.leave(self.pending)
            ended.append(job)
        self._preempt()
        self._activate(now_ns)
        return ended

    def due_ns(self) -> int | None:
        """When a sequence ends next, or the batch outgrows the memory; None while nothing runs."""
        due = self._batch.due_ns()
        if due is None or self._batch.ended:
            return due
        fitting = max(0, self.capacity_tokens - self.kv_tokens) // self._batch.running
        return min(due, ns_of_ticks(self._batch.clock_after(fitting)))

    def fail(self) -> tuple[list[Job], list[int]]:
        """Lose everything. Returns who ran, had landed or waited, and the numbers of those on their way."""
        lost = sorted([*self._running.values(), *self._ready, *self._waiting], key=lambda job: job.number)
        arriving = sorted(self._arriving)
        self.lost_steps += self._batch.steps
        self.lost_tokens += self._batch.made_tokens
        self._batch = Batch(self._batch.pace)
        self.pending = Pending()
        self.inbound.forget()
        self._arriving.clear()
        self._ready.clear()
        self._waiting.clear()
        self._running.clear()
        self.outstanding = self.reserved_tokens = self._granted_tokens = self.unjoined_tokens = 0
        return lost, arriving

    def _mark_firsts(self) -> None:
        for number, ticks in self._batch.firsts:
            self._running[number].first_ns = ns_of_ticks(ticks)
        self._batch.firsts.clear()

    def _activate(self, now_ns: int) -> None:
        batch = self._batch
        if not self._ready or batch.running >= self.most_running:
            return
        now = ticks_of_ns(now_ns)
        batch.advance(now)
        if batch.running and batch.clock < now:
            batch.step()  # the one under way: what it ends is told when it ends
        batch.idle_until(now)
        while self._ready and batch.running < self.most_running:
            job = self._ready.popleft()
            self.unjoined_tokens -= job.context_tokens
            if job.must_recompute:
                batch.step(batch.pace.prefill_base + batch.pace.chunk_ticks(0, job.context_tokens))
                job.recomputed_tokens += job.context_tokens
                self.recomputed_tokens += job.context_tokens
                job.must_recompute = False
            self._running[job.number] = job
            self.pending.steps = batch.steps
            job.leave(self.pending)
            job.enter(self.pending)
            batch.join(job.number, job.context_tokens, job.left_tokens)
            if job.first_ns < 0:
                batch.fresh.append(job.number)

    def _preempt(self) -> None:
        self._mark_firsts()
        batch = self._batch
        while self.kv_tokens + batch.running > self.capacity_tokens:
            # A sequence that has the memory alone fits: what is larger was never let in.
            if batch.running == 0 or (batch.running == 1 and not self.unjoined_tokens):
                return
            number = next(number for number in reversed(self._running) if number in batch)
            job = self._running.pop(number)
            job.context_tokens = batch.context_tokens(number)
            job.left_tokens = batch.remove(number)
            job.preempted += 1
            job.must_recompute = True
            self._granted_tokens -= job.reserved_tokens
            self._waiting.appendleft(job)
