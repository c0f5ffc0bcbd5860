"""An instance that computes prompts, one after the other, and holds their KV until it was handed on."""

from collections import deque

from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.instances.job import Job
from kvpool.sim.prefixes.hierarchy import Hierarchy


class PrefillInstance:
    """First come, first served; prompts whose prefix is still being brought up are passed over.

    A prompt that does not fit beside KV still held waits, and all behind it.
    """

    __slots__ = (
        "_current_tokens",
        "_queue",
        "_waiting_ns",
        "believed",
        "busy_ns",
        "computed_tokens",
        "current",
        "free_ns",
        "link",
        "memory",
        "outstanding",
        "timing",
        "waiting_tokens",
    )

    def __init__(
        self,
        timing: TimingModel,
        memory: Hierarchy,
        link: LinkModel,
        believed: TimingModel | None = None,
    ) -> None:
        self.timing = timing
        self.believed = believed or timing
        self.memory = memory
        self.link = link
        self.current: Job | None = None
        self.free_ns = 0
        self.outstanding = 0
        self.busy_ns = 0
        self.computed_tokens = 0
        self.waiting_tokens = 0
        """Of prompts that were sent here and are not computed; those whose KV is here do not count."""
        self._queue: deque[tuple[Job, int, int]] = deque()
        self._waiting_ns = 0
        self._current_tokens = 0

    def hit_tokens(self, job: Job) -> int:
        """Tokens of the prompt whose KV is here; the last token of a prompt is always computed."""
        return job.usable_match(self.memory.device)

    def backlog_ns(self, now_ns: int) -> int:
        """Time until all that was sent here is computed, as it was estimated when it was sent."""
        running = max(0, self.free_ns - now_ns) if self.current is not None else 0
        return running + self._waiting_ns

    def send(self, job: Job) -> None:
        """Put a prompt at the end of the queue."""
        hit = self.hit_tokens(job)
        estimate = self.believed.prefill_ns(job.prompt_tokens, hit)
        fresh = job.prompt_tokens - hit
        self._queue.append((job, estimate, fresh))
        self.waiting_tokens += fresh
        self._waiting_ns += estimate
        self.outstanding += 1

    def start(self, now_ns: int) -> int | None:
        """Begin with the next prompt if there is one and it fits. Returns when it will be computed."""
        place = next((place for place, entry in enumerate(self._queue) if not entry[0].loads_left), None)
        if self.current is not None or place is None:
            return None
        job, estimate, fresh = self._queue[place]
        hit = max(self.hit_tokens(job), job.brought_tokens)
        if not self.memory.acquire(job.blocks, job.private_tokens):
            return None
        del self._queue[place]
        self._waiting_ns -= estimate
        self._current_tokens = fresh
        job.hit_tokens = hit
        job.compute_again(hit)
        spent = self.timing.prefill_ns(job.prompt_tokens, job.hit_tokens)
        self.current = job
        self.free_ns = now_ns + spent
        self.busy_ns += spent
        self.computed_tokens += job.prompt_tokens - job.hit_tokens
        return self.free_ns

    def finish(self) -> Job:
        """Take the prompt that was computed; its KV stays until `release`."""
        job = self.current
        assert job is not None, "an instance finishes what it has begun"
        self.current = None
        self.outstanding -= 1
        self.waiting_tokens -= self._current_tokens
        return job

    def release(self, job: Job) -> None:
        """Its KV has been handed on: shared blocks stay as long as there is room."""
        self.memory.release(job.blocks, job.private_tokens)
