"""A fleet of instances that compute prompts and make answers in one batch."""

from collections.abc import Callable, Sequence

from kvpool.plan.routing.router import Router
from kvpool.plan.routing.views import Objective, Overlap
from kvpool.sim.events import Kind
from kvpool.sim.instances.job import Job
from kvpool.sim.instances.mixed import MixedInstance
from kvpool.sim.serving.design import MixedDesign
from kvpool.sim.serving.fleet import Fleet
from kvpool.sim.serving.lengths import ExactLengths, Lengths
from kvpool.sim.serving.memories import BringUp, Memories
from kvpool.sim.serving.outcome import Outcome
from kvpool.sim.serving.run import FleetRun, Sample
from kvpool.sim.serving.views import View, views_of

TOO_LONG = "prompt and answer are larger than the memory of an instance"


class MixedFleet(Fleet):
    """Serves one workload; make a new one for each run."""

    def __init__(self, design: MixedDesign, router: Router, lengths: Lengths | None = None) -> None:
        super().__init__(lengths or ExactLengths(), design.report_interval_ns)
        self._design = design
        self._router = router
        self._instances: list[MixedInstance] = []
        self._views: list[View] = []

    def prepare(self, block_tokens: int) -> None:
        """Make the instances, whose memories have the grain of the workload."""
        design = self._design
        self._memories = Memories(
            design.instances, design.tiers, block_tokens, design.make_eviction, self.clock
        )
        self._bring_up = BringUp(self._memories, design.bytes_per_token, self.agenda, self.clock)
        self._instances = [
            MixedInstance(spec.timing, memory, spec.most_running, design.chunk_tokens, spec.link)
            for spec, memory in zip(design.instances, self._memories.hierarchies, strict=True)
        ]
        self._all_places = list(range(len(self._instances)))
        beliefs = [spec.believed for spec in design.instances]
        self._views = views_of(self._instances, beliefs, self.clock, design.report_interval_ns)

    def handlers(self) -> dict[int, Callable[[int], None]]:
        """Steps, and loads from lower tiers."""
        return {
            Kind.STEP: self._on_step,
            Kind.LOAD_SETUP: self._bring_up.on_setup,
            Kind.LOAD: self._on_load,
        }

    def views(self) -> Sequence[View]:
        """Of all instances."""
        return self._views

    def objective(self, slo_class: str) -> Objective:
        """From the design."""
        return self._design.objectives[slo_class]

    def take(self, job: Job) -> None:
        """Route it; what can never fit is refused at once."""
        longest = job.prompt_tokens + job.request.output_tokens
        room = min(instance.capacity_tokens for instance in self._instances)
        if longest > room:
            self.refuse(job, TOO_LONG, longest, room)
            return
        places = self.open_places()
        if places is None:
            places = self._all_places
        elif not places:
            self.park(job)
            return
        overlaps = tuple(Overlap(self._instances[place].hit_tokens(job)) for place in places)
        views = [self._views[place] for place in places]
        place = places[self._router.choose(self.ask(job, 0, overlaps), views, self.clock.now_ns)]
        if self.is_refused(job, place):
            return
        instance = self._instances[place]
        job.prefill_place = job.decode_place = place
        self._bring_up.begin(job, place, instance.timing)
        instance.send(job, self.clock.now_ns)
        self._views[place].sent(job)
        self._plan_step(place)

    def fail(self, place: int) -> None:
        """All requests there begin again elsewhere."""
        for job in self._instances[place].fail():
            self._views[place].ended(job)
            self.again(job)
        self.agenda.cancel(Kind.STEP, place)

    def _on_load(self, store: int) -> None:
        for job in self._bring_up.on_load(store):
            self._instances[job.prefill_place].nudge(self.clock.now_ns)
            self._plan_step(job.prefill_place)

    def _on_step(self, place: int) -> None:
        instance = self._instances[place]
        ended = instance.wake(self.clock.now_ns)
        for job in instance.started:
            self.note_hit(job)
        instance.started.clear()
        for job in ended:
            self._views[place].ended(job)
            self.end(job)
        self._plan_step(place)

    def _plan_step(self, place: int) -> None:
        due = self._instances[place].due_ns()
        if due is not None:
            self.agenda.at(due, Kind.STEP, place)

    def sample(self) -> Sample:
        """Sums over all instances."""
        for instance in self._instances:
            instance.look(self.clock.now_ns)
        devices = [instance.memory.device for instance in self._instances]
        return Sample(
            self.clock.now_ns,
            sum(instance.running for instance in self._instances),
            sum(instance.waiting for instance in self._instances),
            sum(device.used_tokens for device in devices),
            sum(device.idle_blocks * device.block_tokens for device in devices),
            self._memories.lower_tokens(),
        )

    def result(self, outcomes: tuple[Outcome, ...]) -> FleetRun:
        """Sums over all instances."""
        instances = self._instances
        return FleetRun(
            outcomes=outcomes,
            end_ns=self.clock.now_ns,
            decode_steps=sum(instance.steps + instance.lost_steps for instance in instances),
            made_tokens=sum(instance.made_tokens + instance.lost_tokens for instance in instances),
            computed_tokens=sum(instance.computed_tokens for instance in instances),
            evicted_blocks=sum(instance.memory.device.evicted_blocks for instance in instances),
            capacity_tokens=sum(instance.capacity_tokens for instance in instances),
            lower_capacity_tokens=self._memories.lower_capacity_tokens(),
            demoted_bytes=self._memories.demoted_bytes(self._design.bytes_per_token),
            unique_share=self._memories.unique_share(),
            links=self._memories.links(),
            samples=tuple(self.samples),
            events=tuple(self.words),
        )
