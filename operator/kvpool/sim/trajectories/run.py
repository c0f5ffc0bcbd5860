"""Runs programs on an engine that serves a few turns at once and keeps contexts in one pool of memory.

A turn of a program whose context was pushed out computes all of it again. Slots slow each other only through
the step time, which is taken at the start of a turn for the sequences that then run. Memory is counted in
tokens, both tiers together; sharing within a group is not modelled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from kvpool.plan.sliding_window import SlidingWindow
from kvpool.plan.timing.model import TimingModel
from kvpool.plan.trajectories.admission import (
    AdmissionSettings,
    budget_tokens,
    decide,
    eviction_order,
    finished_groups,
)
from kvpool.plan.trajectories.program import Program
from kvpool.sim.trajectories.pool import ContextPool
from kvpool.sim.workloads.generators.trajectories import Trajectory

_TURN_ENDS, _TURN_ASKED = 0, 1


@dataclass(frozen=True, slots=True)
class Engine:
    """What the programs run on, and what is known beforehand of programs of their class."""

    timing: TimingModel
    slots: int
    device_tokens: int
    host_tokens: int
    usual_final_tokens: int
    """Upper quantile of the final context, before any program has ended."""
    usual_turns: int
    """Mean, likewise."""


@dataclass(slots=True)
class TrajectoryReport:
    """What came out of a run."""

    makespan_ns: int = 0
    group_ends_ns: dict[int, int] = field(default_factory=dict)
    prefilled_tokens: int = 0
    recomputed_tokens: int = 0
    """Of those, context that had been computed before."""
    evicted: int = 0
    """Times that a living program was pushed out of memory."""
    longest_wait_ns: int = 0
    """From asking for a turn to its start."""
    decisions: int = 0
    bypassed: int = 0
    """Decisions at which everything fitted."""

    @property
    def first_group_ns(self) -> int:
        """When the first group was complete."""
        return min(self.group_ends_ns.values())


@dataclass(slots=True)
class _State:
    trajectory: Trajectory
    turn: int = 0
    context_tokens: int = 0
    asked_ns: int = 0
    waiting_since_ns: int = 0
    admitted: bool = False
    arrived: bool = False
    asks: bool = False
    computing: bool = False
    finished: bool = False


class _Run:
    def __init__(
        self, programs: Sequence[Trajectory], engine: Engine, settings: AdmissionSettings | None
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._pool = ContextPool(engine.device_tokens + engine.host_tokens)
        self._states = {one.ident: _State(one) for one in programs}
        self._agenda: list[tuple[int, int, int]] = []
        self._free_slots = engine.slots
        self._finals = SlidingWindow(200)
        self._turns = SlidingWindow(200)
        self.report = TrajectoryReport()
        for one in programs:
            heappush(self._agenda, (one.arrival_ns, _TURN_ASKED, one.ident))

    def run(self) -> TrajectoryReport:
        while self._agenda:
            now = self._agenda[0][0]
            while self._agenda and self._agenda[0][0] == now:
                _, kind, ident = heappop(self._agenda)
                if kind == _TURN_ASKED:
                    self._ask(self._states[ident], now)
                else:
                    self._end(self._states[ident], now)
            self._dispatch(now)
        return self.report

    def _ask(self, state: _State, now: int) -> None:
        if not state.arrived:
            state.arrived = True
            state.waiting_since_ns = now
        state.asks = True
        state.asked_ns = now

    def _dispatch(self, now: int) -> None:
        while self._free_slots and (ident := self._next(now)) is not None:
            self._start(self._states[ident], now)

    def _next(self, now: int) -> int | None:
        """The program whose turn is served next; None when nobody may."""
        asking = [one for one in self._states.values() if one.asks]
        if not asking:
            return None
        first = min(asking, key=lambda one: (one.asked_ns, one.trajectory.ident)).trajectory.ident
        if self._settings is None:
            return first
        capacity = budget_tokens(self._engine.device_tokens, self._engine.host_tokens, self._settings)
        decision = decide(self._programs(), capacity, now, self._settings)
        self.report.decisions += 1
        self.report.bypassed += decision.bypass
        for ident in decision.admitted:
            self._states[ident].admitted = True
        if decision.bypass:
            return first
        return next((ident for ident in decision.admitted if self._states[ident].asks), None)

    def _start(self, state: _State, now: int) -> None:
        trajectory, turn = state.trajectory, state.trajectory.turns[state.turn]
        held = self._pool.held_tokens(trajectory.ident)
        self.report.recomputed_tokens += state.context_tokens - held
        prompt = state.context_tokens + turn.prompt_tokens
        self.report.prefilled_tokens += prompt - held
        self.report.longest_wait_ns = max(self.report.longest_wait_ns, now - state.asked_ns)
        state.asks = False
        state.computing = True
        state.context_tokens = prompt + turn.output_tokens
        self._free_slots -= 1
        self._keep(trajectory.ident, state.context_tokens, now)
        running = self._engine.slots - self._free_slots
        tokens = sum(one.context_tokens for one in self._states.values() if one.computing)
        step_ns = self._engine.timing.step_ns(running, tokens)
        spent = self._engine.timing.prefill_ns(prompt, held) + turn.output_tokens * step_ns
        heappush(self._agenda, (now + spent, _TURN_ENDS, trajectory.ident))

    def _keep(self, ident: int, tokens: int, now: int) -> None:
        if self._settings is None:
            victims = tuple(one for one in self._pool.by_age() if not self._states[one].computing)
        elif self._pool.used_tokens + tokens - self._pool.held_tokens(ident) <= self._pool.capacity_tokens:
            victims = ()
        else:
            victims = eviction_order(self._programs())
        for gone in self._pool.keep(ident, tokens, victims):
            state = self._states[gone]
            if not state.finished:
                self.report.evicted += 1
                state.admitted = False
                state.waiting_since_ns = now

    def _end(self, state: _State, now: int) -> None:
        turn = state.trajectory.turns[state.turn]
        state.turn += 1
        state.computing = False
        self._free_slots += 1
        if state.turn < len(state.trajectory.turns):
            heappush(self._agenda, (now + turn.tool_ns, _TURN_ASKED, state.trajectory.ident))
            return
        state.finished = True
        self.report.makespan_ns = now
        self._finals.add(state.context_tokens)
        self._turns.add(state.turn)
        group = state.trajectory.group
        if group in finished_groups(self._programs()):
            self.report.group_ends_ns[group] = now
            if self._settings is not None:
                for ident, one in self._states.items():
                    if one.trajectory.group == group:
                        self._pool.drop(ident)

    def _programs(self) -> list[Program]:
        finals, turns = self._finals.upper(0.1), self._turns.mean()
        final = self._engine.usual_final_tokens if finals is None else round(finals)
        usual = self._engine.usual_turns if turns is None else round(turns)
        return [
            Program(
                one.trajectory.ident,
                one.trajectory.group,
                one.context_tokens,
                max(final, one.context_tokens),
                one.turn,
                max(usual, one.turn + 1),
                one.trajectory.arrival_ns,
                one.waiting_since_ns,
                one.admitted,
                one.computing,
                one.finished,
            )
            for one in self._states.values()
            if one.arrived
        ]


def run_trajectories(
    programs: Sequence[Trajectory], engine: Engine, settings: AdmissionSettings | None
) -> TrajectoryReport:
    """Run all programs to their end. `settings` None: first come first served, least recently used first out.

    The same programs, engine and settings give the same report.
    """
    return _Run(programs, engine, settings).run()


def shares_of(report: TrajectoryReport, base: TrajectoryReport) -> Mapping[str, float]:
    """Compare two runs of the same programs: figures of `report` against those of `base`."""
    return {
        "recompute": report.recomputed_tokens / max(1, base.recomputed_tokens),
        "makespan": report.makespan_ns / base.makespan_ns,
        "first_group": report.first_group_ns / base.first_group_ns,
    }
