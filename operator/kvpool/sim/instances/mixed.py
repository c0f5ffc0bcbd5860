"""An instance that computes prompts and makes answers in one batch, as engines with chunked prefill do.

Each step takes one token of every running sequence, and fills what is left of its budget of tokens with
chunks of prompts, first come, first served (vLLM v1). A step lasts as long as its decoding and its chunks
together. While no prompt waits, whole runs of steps are skipped. Prompts are let in when they fit; answers
grow, and when the next step would not fit the sequence that joined last gives up its KV and is computed
again.
"""

from collections import deque

from kvpool.plan.routing.pending import Pending
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.instances.batch import Batch
from kvpool.sim.instances.job import Job
from kvpool.sim.instances.pace import Pace, ns_of_ticks, ticks_of_ns
from kvpool.sim.prefixes.hierarchy import Hierarchy


class MixedInstance:
    """One engine with its memory."""

    __slots__ = (
        "_batch",
        "_completing",
        "_grown_tokens",
        "_is_stepping",
        "_misfit",
        "_prompts",
        "_running",
        "_waiting",
        "capacity_tokens",
        "chunk_tokens",
        "computed_tokens",
        "link",
        "lost_steps",
        "lost_tokens",
        "memory",
        "most_running",
        "outstanding",
        "pending",
        "prefill_tokens",
        "recomputed_tokens",
        "reserved_tokens",
        "started",
        "timing",
    )

    def __init__(
        self,
        timing: TimingModel,
        memory: Hierarchy,
        most_running: int,
        chunk_tokens: int,
        link: LinkModel,
    ) -> None:
        self.timing = timing
        self.memory = memory
        self.capacity_tokens = memory.device.capacity_tokens
        self.most_running = most_running
        self.chunk_tokens = chunk_tokens
        self.link = link
        self.pending = Pending()
        self.outstanding = 0
        self.reserved_tokens = 0
        """Promised to all that were sent here and have not ended."""
        self.prefill_tokens = 0
        """Of prompts that were sent here and are not computed."""
        self.computed_tokens = 0
        self.recomputed_tokens = 0
        self.lost_steps = self.lost_tokens = 0
        """Done and made before the instance died."""
        self.started: list[Job] = []
        """Whose prefill has begun; the owner takes them."""
        self._batch = Batch(Pace.of(timing))
        self._misfit: Job | None = None
        """Who did not fit when it was tried last; nothing was released since."""
        self._is_stepping = False
        """Whether a step is under way at whose end something is to be decided."""
        self._waiting: deque[Job] = deque()
        self._prompts: deque[tuple[Job, int]] = deque()
        """Whose prompts are being computed, and how many tokens of each are."""
        self._completing: list[Job] = []
        """Whose prompts are complete at the end of the step under way."""
        self._running: dict[int, Job] = {}
        self._grown_tokens = 0

    @property
    def running(self) -> int:
        """Sequences in the batch, those whose prompts are being computed included."""
        return self._batch.running + len(self._prompts) + len(self._completing)

    @property
    def waiting(self) -> int:
        """Requests that were not let in yet."""
        return len(self._waiting)

    @property
    def kv_tokens(self) -> int:
        """Tokens of the running sequences."""
        prompts = sum(job.context_tokens for job, _ in self._prompts)
        return self._batch.kv_tokens + prompts + sum(job.context_tokens for job in self._completing)

    @property
    def steps(self) -> int:
        """Steps done so far."""
        return self._batch.steps

    @property
    def made_tokens(self) -> int:
        """Tokens made by steps of decoding."""
        return self._batch.made_tokens

    def jobs(self) -> list[Job]:
        """What runs."""
        return [*self._running.values(), *self._completing, *(job for job, _ in self._prompts)]

    def hit_tokens(self, job: Job) -> int:
        """Tokens of the prompt whose KV is in the device."""
        return job.usable_match(self.memory.device)

    def backlog_ns(self, now_ns: int) -> int:
        """Time to compute the prompts that wait, if nothing decoded beside them."""
        return round(self.timing.prefill_token_ns * self.prefill_tokens)

    def look(self, now_ns: int) -> None:
        """Bring the batch to now."""
        if not self._is_stepping:
            self._batch.advance(ticks_of_ns(now_ns))
        self.pending.steps = self._batch.steps

    def send(self, job: Job, now_ns: int) -> None:
        """Let a request wait for a place in the batch."""
        self.look(now_ns)
        self.outstanding += 1
        self.reserved_tokens += job.need_tokens
        job.enter(self.pending)
        self._wait(job)
        self._waiting.append(job)
        self.nudge(now_ns)

    def nudge(self, now_ns: int) -> None:
        """Somebody who waits may be let in: decide at the end of the step under way."""
        batch, now = self._batch, ticks_of_ns(now_ns)
        if self._is_stepping:
            return
        batch.advance(now)
        if batch.running and batch.clock < now:
            batch.step()
        batch.idle_until(now)
        self._is_stepping = True

    def due_ns(self) -> int | None:
        """When something is to be decided or told next; None while nothing runs or waits."""
        batch = self._batch
        if self._is_stepping:
            return ns_of_ticks(batch.clock)
        due = batch.due_ns()
        if due is None or batch.ended:
            return due
        return min(due, ns_of_ticks(batch.clock_after(self._free_tokens() // batch.running)))

    def wake(self, now_ns: int) -> list[Job]:
        """Do what is due. Returns the requests that have ended by now, with `end_ns` set."""
        self.look(now_ns)
        self._is_stepping = False
        device, batch = self.memory.device, self._batch
        device.grow(self._ungrown_tokens())
        self._grown_tokens = batch.made_tokens
        ended: list[Job] = []
        for number, ticks in batch.take(ticks_of_ns(now_ns)):
            job = self._running.pop(number)
            job.context_tokens += job.left_tokens
            self._end(job, ns_of_ticks(ticks), ended)
        for job in self._completing:
            self._complete(job, now_ns, ended)
        self._completing.clear()
        if not self._preempt():
            self._form_steps(now_ns)
        self.pending.steps = batch.steps
        return ended

    def fail(self) -> list[Job]:
        """Lose everything, tiers of its own too. Returns the requests that were here, by number."""
        lost = [*self.jobs(), *self._waiting]
        self.lost_steps += self._batch.steps
        self.lost_tokens += self._batch.made_tokens
        self._batch = Batch(self._batch.pace)
        self.pending = Pending()
        self._waiting.clear()
        self._prompts.clear()
        self._completing.clear()
        self._running.clear()
        self.started.clear()
        self.memory.forget()
        self._misfit = None
        self._is_stepping = False
        self._grown_tokens = self.outstanding = self.reserved_tokens = self.prefill_tokens = 0
        return sorted(lost, key=lambda job: job.number)

    def _end(self, job: Job, end_ns: int, ended: list[Job]) -> None:
        job.end_ns = end_ns
        job.left_tokens = 0
        self._release(job)
        self.outstanding -= 1
        self.reserved_tokens -= job.need_tokens
        job.leave(self.pending)
        ended.append(job)

    def _complete(self, job: Job, now_ns: int, ended: list[Job]) -> None:
        """A prompt is computed: its last chunk made a token."""
        self.prefill_tokens -= job.fresh_tokens
        job.is_computed = True
        if job.first_ns < 0:
            job.first_ns = now_ns
        job.context_tokens += 1
        job.left_tokens -= 1
        if job.left_tokens == 0:
            self._end(job, now_ns, ended)
            return
        self._running[job.number] = job
        self._batch.join(job.number, job.context_tokens, job.left_tokens)
        job.leave(self.pending)
        self.pending.steps = self._batch.steps
        job.enter(self.pending)

    def _form_steps(self, now_ns: int) -> None:
        """Fill the next step with chunks; nothing happens when no prompt is there or fits.

        A prompt that takes whole steps to itself gets them at once, until it is complete, a sequence ends or
        the memory is full: who comes meanwhile could not be let in earlier.
        """
        batch = self._batch
        while True:
            ticks = self._fill()
            if ticks is None:
                return
            if not self._is_stepping:
                batch.idle_until(ticks_of_ns(now_ns))
                self._is_stepping = True
            base = batch.pace.base if batch.running else 0
            batch.step(ticks + max(0, batch.pace.prefill_base - base))
            if self._completing or batch.ended or self._free_tokens() < batch.running:
                return

    def _fill(self) -> int | None:
        """Give chunks of prompts what is left of one step's budget. Returns the ticks that they add to it.

        None: there is nothing to give, or nobody to give it to; chunks that cost nothing add 0.
        """
        batch = self._batch
        whole = budget = self.chunk_tokens - batch.running
        ticks = 0
        while budget > 0 and (self._prompts or self._admit()):
            job, done = self._prompts[0]
            count = min(budget, job.context_tokens - done)
            ticks += batch.pace.chunk_ticks(done, count)
            budget -= count
            if done + count < job.context_tokens:
                self._prompts[0] = (job, done + count)
                break
            self._prompts.popleft()
            self._completing.append(job)
        return ticks if budget < whole else None

    def _admit(self) -> bool:
        """Let the next request in whose prefix is here or is not coming, if it fits."""
        place = next((place for place, job in enumerate(self._waiting) if not job.loads_left), None)
        if place is None or self.running >= self.most_running:
            return False
        job = self._waiting[place]
        if job is self._misfit:
            return False
        hit = max(self.hit_tokens(job), job.brought_tokens)
        private = self._private_tokens(job) + 1
        # One step of growth has to fit beside it, or it would push out at once what runs.
        spare = self._batch.running + self._ungrown_tokens()
        if not self.memory.acquire(job.blocks, private, spare):
            self._misfit = job
            return False
        del self._waiting[place]
        if job.preempted:
            job.recomputed_tokens += job.context_tokens - hit
            self.recomputed_tokens += job.context_tokens - hit
        else:
            job.hit_tokens = hit
            job.compute_again(hit)
            self.computed_tokens += job.context_tokens - hit
            self.started.append(job)
        job.brought_tokens = 0
        self._prompts.append((job, hit))
        return True

    def _preempt(self) -> bool:
        """Take KV from those that joined last until the next step fits. Returns whether any lost it."""
        batch = self._batch
        lost = False
        while batch.running and self._free_tokens() < batch.running:
            number, job = self._running.popitem()
            job.context_tokens = batch.context_tokens(number)
            job.left_tokens = batch.remove(number)
            self._release(job)
            job.preempted += 1
            self._wait(job)
            self._waiting.appendleft(job)
            lost = True
        if lost:
            self._is_stepping = not batch.running
        return lost

    def _wait(self, job: Job) -> None:
        job.fresh_tokens = job.context_tokens - self.hit_tokens(job)
        self.prefill_tokens += job.fresh_tokens

    def _release(self, job: Job) -> None:
        self.memory.release(job.blocks, self._private_tokens(job))
        self._misfit = None

    def _private_tokens(self, job: Job) -> int:
        return job.context_tokens - len(job.blocks) * self.memory.device.block_tokens

    def _free_tokens(self) -> int:
        return self.capacity_tokens - self.memory.device.used_tokens - self._ungrown_tokens()

    def _ungrown_tokens(self) -> int:
        """Made since the memory was last told."""
        return self._batch.made_tokens - self._grown_tokens
