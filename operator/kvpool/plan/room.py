"""What is still free on each node: of its budgets, of its media, and of its schedulable memory."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kvpool.api.kvnode import UnitSpec
from kvpool.model.observations import PodFact, SourceView
from kvpool.model.snapshot import Snapshot
from kvpool.plan.budgets import Ruling, Rulings
from kvpool.plan.grounds import Ground, holds_path, media_of, reserves_of
from kvpool.plan.keeper_names import ENDED, is_keeper, keeper_bytes, keeps

UNITS_MOST: Final = 64
"""Units that one KVNode can list."""


@dataclass(slots=True)
class Room:
    """Bytes free, by node and medium; negative when more is held than there is room for.

    Units that are decided count as held, whether or not they are bound yet.
    """

    budget: dict[tuple[str, str], int] = field(default_factory=dict)
    """Node and tier."""
    medium: dict[tuple[str, str], int] = field(default_factory=dict)
    """Node and source key."""
    memory: dict[str, int] = field(default_factory=dict)
    """Node: Kubernetes allocatable less what pods request."""

    places: dict[str, int] = field(default_factory=dict)
    """Node: how many more units its KVNode can list."""

    def copy(self) -> "Room":
        """Return a room to try things in."""
        return Room(dict(self.budget), dict(self.medium), dict(self.memory), dict(self.places))

    def become(self, other: "Room") -> None:
        """Take over what was tried in a copy."""
        self.budget, self.medium = other.budget, other.medium
        self.memory, self.places = other.memory, other.places

    def take(
        self, node: str, tier: str, source: str, size_bytes: int, memory_bytes: int, *, new: bool
    ) -> None:
        """Hold bytes of a budget, a medium and the node's schedulable memory, and a place when it is new."""
        self.budget[node, tier] -= size_bytes
        self.medium[node, source] -= size_bytes
        self.memory[node] -= memory_bytes
        self.places[node] -= new


def measure(snapshot: Snapshot, grounds: Mapping[str, Ground], rulings: Rulings) -> Room:
    """Measure what is free on every node whose agent's report is fresh."""
    room = Room()
    requests = _requests(snapshot.pods.values(), grounds)
    for name, ground in grounds.items():
        if ground.agent is None or ground.fact is None:
            continue
        keepers = sum(keeper_bytes(unit.backend, unit.size_bytes) for unit in ground.units)
        room.memory[name] = ground.fact.allocatable_memory_bytes - requests.get(name, 0) - keepers
        room.places[name] = UNITS_MOST - len(ground.units)
        for tier in ("DRAM", "CXL", "SSD"):
            ruling = rulings.of(name, tier)
            if ruling is not None:
                _measure_tier(room, ground, ruling)
    return room


def _measure_tier(room: Room, ground: Ground, ruling: Ruling) -> None:
    units = [unit for unit in ground.units if unit.tier == ruling.tier]
    room.budget[ground.name, ruling.tier] = ruling.per_node_bytes - sum(unit.size_bytes for unit in units)
    reserves = reserves_of(ground, ruling)
    for source in media_of(ground, ruling):
        ours = [unit for unit in units if _lies_on(unit, source)]
        free = source.capacity_bytes - reserves[source.key] - _others(ground, source, ours)
        room.medium[ground.name, source.key] = free - sum(unit.size_bytes for unit in ours)


def _lies_on(unit: UnitSpec, source: SourceView) -> bool:
    return unit.numa_node == source.numa_node and holds_path(source, unit.path)


def _others(ground: Ground, source: SourceView, ours: Iterable[UnitSpec]) -> int:
    """Bytes of a medium that are neither free nor resident in our units."""
    resident = sum(view.resident_bytes for unit in ours for view in ground.views(unit.name))
    return max(0, source.capacity_bytes - source.free_bytes - resident)


def _requests(pods: Iterable[PodFact], grounds: Mapping[str, Ground]) -> dict[str, int]:
    """Memory requested on each node; keepers of decided units are not here, they count by their units."""
    requests: dict[str, int] = {}
    for pod in pods:
        if not pod.node or pod.phase in ENDED:
            continue
        ground = grounds.get(pod.node)
        if is_keeper(pod) and ground is not None and any(keeps(pod, unit, pod.node) for unit in ground.units):
            continue
        requests[pod.node] = requests.get(pod.node, 0) + pod.memory_request_bytes
    return requests
