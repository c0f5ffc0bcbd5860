"""Bytes as they were reported: bound and used by unit, and what others hold in the same stores."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kvpool.api.kvnode import UnitPhase, UnitSpec
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.observations import PodFact, SegmentView, StoreView, UnitView
from kvpool.model.snapshot import Snapshot
from kvpool.plan.freshness import is_fresh_store
from kvpool.plan.grounds import Ground
from kvpool.plan.keeper_names import generation_kept, is_keeper, keeps


@dataclass(frozen=True, slots=True)
class UnitReading:
    """One decided unit and what is known of it; bytes."""

    node: str
    unit: UnitSpec
    view: UnitView | None
    """What the agent freshly says of this very generation; None when it says nothing of it."""
    reported: UnitView | None
    """What the agent freshly says of the unit, whatever the generation."""
    stale: bool
    """The node's last report is too old: nothing is known."""
    used_bytes: int | None
    """Holding objects; None when unknown."""
    observed_at: float | None
    """When the oldest figure in here was taken (monotonic seconds)."""
    unplaced: str = ""
    """Why the scheduler has no place for the unit's keeper; empty when it has."""

    @property
    def admitted_bytes(self) -> int:
        """Decided, and not without a place."""
        return self.bound_bytes if self.unplaced else self.unit.size_bytes

    @property
    def bound_bytes(self) -> int:
        """Allocated, prefaulted, verified and mounted."""
        if self.view is None or self.view.phase is not UnitPhase.BOUND:
            return 0
        return min(self.view.size_bytes, self.view.resident_bytes)

    @property
    def is_bound(self) -> bool:
        """Whether the agent has applied what was decided."""
        return self.view is not None and self.bound_bytes >= self.unit.size_bytes == self.view.size_bytes


@dataclass(frozen=True, slots=True)
class ForeignSegment:
    """A segment of a store that is none of ours, and the node it is on (empty when unknown)."""

    pool: ObjectKey
    segment: SegmentView
    node: str
    asked_at: float


@dataclass(frozen=True, slots=True)
class Readings:
    """All figures of one moment."""

    units: tuple[UnitReading, ...]
    foreign: tuple[ForeignSegment, ...]

    def of_pool(self, key: ObjectKey) -> tuple[UnitReading, ...]:
        """Return the readings of a pool's units that are not being given back."""
        return tuple(r for r in self.units if r.unit.pool == str(key) and r.unit.release == "None")

    def foreign_in(self, key: ObjectKey) -> tuple[ForeignSegment, ...]:
        """Return the segments of others in a pool's store."""
        return tuple(found for found in self.foreign if found.pool == key)

    def foreign_on(self, nodes: Iterable[str]) -> tuple[ForeignSegment, ...]:
        """Return the segments of others on some nodes; one that several pools see counts once."""
        chosen = frozenset(nodes)
        by_name = {found.segment.name: found for found in self.foreign if found.node in chosen}
        return tuple(by_name[name] for name in sorted(by_name))

    def on_nodes(self, nodes: Iterable[str], tier: str) -> tuple[UnitReading, ...]:
        """Return the readings of one tier's units on some nodes."""
        chosen = frozenset(nodes)
        return tuple(r for r in self.units if r.node in chosen and r.unit.tier == tier)


def read(snapshot: Snapshot, grounds: Mapping[str, Ground], now: Instant) -> Readings:
    """Read every decided unit, and every segment of the stores that answered lately."""
    answers = {
        str(key): (store, {segment.name: segment for segment in store.segments})
        for key, store in snapshot.stores.items()
        if is_fresh_store(store, now)
    }
    waiting = [pod for pod in snapshot.pods.values() if pod.unschedulable and is_keeper(pod)]
    units = tuple(
        replace(_read_unit(ground, unit, answers.get(unit.pool)), unplaced=_unplaced(ground, unit, waiting))
        for ground in grounds.values()
        for unit in ground.units
    )
    return Readings(units, _foreign(snapshot, now))


def _read_unit(
    ground: Ground, unit: UnitSpec, answer: tuple[StoreView, Mapping[str, SegmentView]] | None
) -> UnitReading:
    reported = ground.view(unit)
    view = reported if reported is not None and reported.generation == unit.generation else None
    if ground.agent is None or view is None:
        observed_at = ground.agent.reported_at if ground.agent else None
        return UnitReading(ground.name, unit, None, reported, ground.agent is None, None, observed_at)
    used, observed_at = view.used_bytes, ground.agent.reported_at
    if answer is not None and view.segment in answer[1]:
        store, segments = answer
        used, observed_at = segments[view.segment].used_bytes, min(observed_at, store.asked_at)
    return UnitReading(ground.name, unit, view, reported, False, used, observed_at)


def _unplaced(ground: Ground, unit: UnitSpec, waiting: Iterable[PodFact]) -> str:
    """What the scheduler says of the keeper of the unit's decided generation, if it waits for a place."""
    words = (
        pod.unschedulable
        for pod in waiting
        if not pod.node and keeps(pod, unit, ground.name) and generation_kept(pod) == unit.generation
    )
    return next(words, "")


def total_used(readings: Iterable[UnitReading]) -> tuple[int, int]:
    """Return bytes in use by bound units, and how many bound units do not say; a segment counts once."""
    by_segment: dict[str, int | None] = {}
    for reading in readings:
        if reading.view is not None and reading.bound_bytes:
            name = reading.view.segment or f"{reading.node}/{reading.unit.name}"
            by_segment.setdefault(name, reading.used_bytes)
    known = [used for used in by_segment.values() if used is not None]
    return sum(known), len(by_segment) - len(known)


def _foreign(snapshot: Snapshot, now: Instant) -> tuple[ForeignSegment, ...]:
    ours = own_segments(snapshot)
    hosts = _hosts(snapshot)
    return tuple(
        ForeignSegment(key, segment, hosts.get(segment.host, ""), store.asked_at)
        for key, store in sorted(snapshot.stores.items())
        if is_fresh_store(store, now)
        for segment in sorted(store.segments, key=lambda segment: segment.name)
        if segment.name not in ours
    )


def own_segments(snapshot: Snapshot) -> frozenset[str]:
    """Return the names of our segments: as agents say, however old, and as was last written of them."""
    said = {view.segment for agent in snapshot.agents.values() for view in agent.units}
    written = {unit.segment for kvnode in snapshot.kvnodes.values() for unit in kvnode.status.units}
    return frozenset((said | written) - {""})


def _hosts(snapshot: Snapshot) -> dict[str, str]:
    """Address to node, of the nodes and of the pods on them."""
    hosts = {
        pod.address: pod.node
        for _, pod in sorted(snapshot.pods.items())
        if pod.address and pod.node and not is_keeper(pod)
    }
    return hosts | {fact.address: name for name, fact in sorted(snapshot.nodes.items()) if fact.address}
