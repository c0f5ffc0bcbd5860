"""A fleet with separate prefill and decode instances, and the hand-off of KV between them.

Order of a hand-off: room for the whole sequence is reserved at the destination, the KV crosses the
destination's link (shared with all others on their way there), the sequence joins the batch, the source's
copy is released. What is in flight therefore occupies memory on both sides, and bounds how much can be.
"""

from collections.abc import Callable, Sequence

from kvpool.plan.routing.prefill import EarliestPrefill
from kvpool.plan.routing.router import PrefillRouter, Router
from kvpool.plan.routing.views import Objective, Overlap
from kvpool.sim.events import Kind
from kvpool.sim.instances.decode import DecodeInstance
from kvpool.sim.instances.job import Job
from kvpool.sim.instances.prefill import PrefillInstance
from kvpool.sim.serving.design import FirstToken, HandOff, SplitDesign
from kvpool.sim.serving.fleet import Fleet
from kvpool.sim.serving.lengths import ExactLengths, Lengths
from kvpool.sim.serving.memories import BringUp, Memories
from kvpool.sim.serving.outcome import Outcome
from kvpool.sim.serving.run import FleetRun, LinkUse, Sample
from kvpool.sim.serving.views import PrefillView, View, views_of

TOO_LONG_TO_PREFILL = "the prompt is larger than the memory of a prefill instance"
TOO_LONG_TO_DECODE = "prompt and answer are larger than the memory of a decode instance"
NOT_TAKEN = "the prefill router refused it"


class SplitFleet(Fleet):
    """Serves one workload; make a new one for each run."""

    def __init__(
        self,
        design: SplitDesign,
        router: Router,
        prefill_router: PrefillRouter | None = None,
        lengths: Lengths | None = None,
    ) -> None:
        super().__init__(lengths or ExactLengths(), design.report_interval_ns)
        self._design = design
        self._router = router
        self._prefill_router: PrefillRouter = prefill_router or EarliestPrefill()
        self._decode = [
            DecodeInstance(spec.timing, spec.capacity_tokens, spec.most_running, spec.link)
            for spec in design.decode
        ]
        beliefs = [spec.believed for spec in design.decode]
        self._views = views_of(self._decode, beliefs, self.clock, design.report_interval_ns)
        self._prefill: list[PrefillInstance] = []
        self._prefill_views: list[PrefillView] = []

    def prepare(self, block_tokens: int) -> None:
        """Make the memories, whose grain is the workload's."""
        design = self._design
        self._memories = Memories(
            design.prefill, design.tiers, block_tokens, design.make_eviction, self.clock
        )
        self._bring_up = BringUp(self._memories, design.bytes_per_token, self.agenda, self.clock)
        self._prefill = [
            PrefillInstance(spec.timing, memory, spec.link, spec.believed.timing)
            for spec, memory in zip(design.prefill, self._memories.hierarchies, strict=True)
        ]
        self._prefill_views = [
            PrefillView(instance, instance.believed, instance.link, self.clock) for instance in self._prefill
        ]

    def handlers(self) -> dict[int, Callable[[int], None]]:
        """Ends of prompts, set-ups, transfers and steps."""
        return {
            Kind.PREFILL: self._on_prefill,
            Kind.SETUP: self._on_setup,
            Kind.LINK: self._on_link,
            Kind.STEP: self._on_step,
            Kind.LOAD_SETUP: self._bring_up.on_setup,
            Kind.LOAD: self._on_load,
        }

    def views(self) -> Sequence[View]:
        """Of the decode instances."""
        return self._views

    def objective(self, slo_class: str) -> Objective:
        """From the design."""
        return self._design.objectives[slo_class]

    def take(self, job: Job) -> None:
        """Route it; what can never fit is refused at once."""
        if job.is_computed:
            # It could not be handed on, and its KV is still at its source.
            self._send_to_decode(job)
            return
        room = max(spec.capacity_tokens for spec in self._design.prefill)
        if job.prompt_tokens > room:
            self.refuse(job, TOO_LONG_TO_PREFILL, job.prompt_tokens, room)
            return
        longest = job.prompt_tokens + max(job.bound_tokens, job.request.output_tokens)
        room = min(instance.capacity_tokens for instance in self._decode)
        if longest > room:
            self.refuse(job, TOO_LONG_TO_DECODE, longest, room)
            return
        ask = self.ask(
            job,
            self._design.bytes_per_token,
            tuple(Overlap(instance.hit_tokens(job)) for instance in self._prefill),
        )
        place = self._prefill_router.choose(ask, self._prefill_views, self.clock.now_ns)
        if place is None:
            self.refuse(job, NOT_TAKEN)
            return
        job.prefill_place = place
        if self._design.hand_off is HandOff.DESTINATION_FIRST:
            self._send_to_decode(job)
        else:
            self._send_to_prefill(job)

    def _send_to_prefill(self, job: Job) -> None:
        instance = self._prefill[job.prefill_place]
        self._bring_up.begin(job, job.prefill_place, instance.timing)
        instance.send(job)
        self._start_prefill(job.prefill_place)

    def fail(self, place: int) -> None:
        """A decode instance died: what had landed begins again, the rest is still at its source."""
        lost, arriving = self._decode[place].fail()
        self.agenda.cancel(Kind.STEP, place)
        self.agenda.cancel(Kind.LINK, place)
        for number in arriving:
            self.agenda.cancel(Kind.SETUP, number)
            self._views[place].ended(self.jobs[number])
            if self.jobs[number].is_computed:
                self._send_to_decode(self.jobs[number])
            else:
                self.jobs[number].decode_place = -1
        for job in lost:
            self._views[place].ended(job)
            if job.is_landed:
                self.again(job)
            else:
                self._send_to_decode(job)

    def _withdraw(self, job: Job) -> None:
        """An answer of one token was made by prefill: the room reserved for it is free."""
        if job.decode_place >= 0:
            self._decode[job.decode_place].withdraw(job)
            self._views[job.decode_place].ended(job)
            self._grant(job.decode_place)

    def _on_load(self, store: int) -> None:
        for job in self._bring_up.on_load(store):
            self._start_prefill(job.prefill_place)

    def _start_prefill(self, place: int) -> None:
        instance = self._prefill[place]
        due = instance.start(self.clock.now_ns)
        if due is not None and instance.current is not None:
            self.note_hit(instance.current)
            self.agenda.at(due, Kind.PREFILL, place)

    def _on_prefill(self, place: int) -> None:
        job = self._prefill[place].finish()
        job.is_computed = True
        if self._design.first_token is FirstToken.PREFILL:
            job.first_ns = self.clock.now_ns
            job.left_tokens -= 1
            job.context_tokens += 1
        if job.left_tokens == 0:
            job.end_ns = job.first_ns
            self._prefill[place].release(job)
            if self._design.hand_off is HandOff.DESTINATION_FIRST:
                self._withdraw(job)
            self.end(job)
        elif self._design.hand_off is HandOff.DESTINATION_FIRST and job.decode_place >= 0:
            self._transfer(job)
        else:
            self._send_to_decode(job)
        self._start_prefill(place)

    def _send_to_decode(self, job: Job) -> None:
        ask = self.ask(job, self._design.bytes_per_token, ())
        places = self.open_places()
        if places is not None and not places:
            self.park(job)
            return
        views = self._views if places is None else [self._views[place] for place in places]
        place = self._router.choose(ask, views, self.clock.now_ns)
        place = place if places is None else places[place]
        if self.is_refused(job, place):
            return
        job.decode_place = place
        self._decode[place].send(job, self.clock.now_ns)
        self._views[place].sent(job)
        self._grant(place)

    def _grant(self, place: int) -> None:
        """Send on whoever has room at the destination now."""
        for job in self._decode[place].grant(self.clock.now_ns):
            if job.is_computed:
                self._transfer(job)
            else:
                self._send_to_prefill(job)
        self._plan_step(place)

    def _transfer(self, job: Job) -> None:
        setup_ns = self._decode[job.decode_place].link.setup_ns
        self.agenda.at(self.clock.now_ns + setup_ns, Kind.SETUP, job.number)

    def _on_setup(self, number: int) -> None:
        job = self.jobs[number]
        inbound = self._decode[job.decode_place].inbound
        inbound.join(self.clock.now_ns, number, job.prompt_tokens * self._design.bytes_per_token)
        self._plan_link(job.decode_place)

    def _on_link(self, place: int) -> None:
        instance = self._decode[place]
        for number in instance.inbound.take(self.clock.now_ns):
            job = self.jobs[number]
            instance.land(job, self.clock.now_ns)
            self._prefill[job.prefill_place].release(job)
            self._start_prefill(job.prefill_place)
        self._plan_link(place)
        self._plan_step(place)

    def _on_step(self, place: int) -> None:
        for job in self._decode[place].end(self.clock.now_ns):
            self._views[place].ended(job)
            self.end(job)
        self._grant(place)

    def _plan_link(self, place: int) -> None:
        due = self._decode[place].inbound.due_ns()
        if due is not None:
            self.agenda.at(due, Kind.LINK, place)

    def _plan_step(self, place: int) -> None:
        due = self._decode[place].due_ns()
        if due is not None:
            self.agenda.at(due, Kind.STEP, place)

    def sample(self) -> Sample:
        """Sums over all instances."""
        memories = [instance.memory.device for instance in self._prefill]
        for instance in self._decode:
            instance.look(self.clock.now_ns)
        return Sample(
            self.clock.now_ns,
            sum(instance.running for instance in self._decode),
            sum(instance.waiting for instance in self._decode)
            + sum(instance.outstanding for instance in self._prefill),
            sum(instance.kv_tokens for instance in self._decode)
            + sum(memory.used_tokens for memory in memories),
            sum(memory.idle_blocks * memory.block_tokens for memory in memories),
            self._memories.lower_tokens(),
        )

    def result(self, outcomes: tuple[Outcome, ...]) -> FleetRun:
        """Sums over all instances; one link for each decode instance."""
        links = {
            f"decode-{place}": LinkUse(instance.inbound.moved_bytes, instance.inbound.busy_ns)
            for place, instance in enumerate(self._decode)
        }
        return FleetRun(
            outcomes=outcomes,
            end_ns=self.clock.now_ns,
            decode_steps=sum(instance.steps + instance.lost_steps for instance in self._decode),
            made_tokens=sum(instance.made_tokens + instance.lost_tokens for instance in self._decode),
            computed_tokens=sum(instance.computed_tokens for instance in self._prefill),
            evicted_blocks=sum(instance.memory.device.evicted_blocks for instance in self._prefill),
            capacity_tokens=sum(
                spec.capacity_tokens for spec in (*self._design.prefill, *self._design.decode)
            ),
            lower_capacity_tokens=self._memories.lower_capacity_tokens(),
            demoted_bytes=self._memories.demoted_bytes(self._design.bytes_per_token),
            unique_share=self._memories.unique_share(),
            links={**links, **self._memories.links()},
            samples=tuple(self.samples),
            events=tuple(self.words),
        )
