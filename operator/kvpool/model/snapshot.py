"""The frozen picture that every decision is made from."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kvpool.api import EngineSlot, KVNode, KVPool, PDGroup, Remap, Supernode, TierBudget
from kvpool.api.common import LabelSelector, Mode
from kvpool.api.remap import StageName
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import AgentView, NodeFact, OutputAck, PodFact, StoreView


@dataclass(frozen=True, slots=True)
class Leadership:
    """Whose decisions these are."""

    operator_epoch: int
    since: float
    """Monotonic seconds at which this leadership began."""
    api_back_since: float
    """Monotonic seconds since which the API has answered without a gap longer than a lease."""
    next_sequence: int = 1
    """The next slot epoch is `operator_epoch * 2**20 + next_sequence`."""


@dataclass(frozen=True, slots=True)
class Uninstall:
    """Somebody's word that everything is to be given back; and the ConfigMap that says so, as it was read."""

    namespace: str
    resource_version: str
    retired: tuple[str, ...] = ()
    """Nodes, sorted, whose agent is on record to keep nothing any more."""


@dataclass(frozen=True)
class Snapshot:
    """Objects for decisions, streams for observations; nothing here changes."""

    # Without `slots=True`: what follows from the fields alone is worked out once and kept.

    leadership: Leadership
    mode_cap: Mode = Mode.OBSERVE
    paused: bool = False
    """The whole cluster is paused; single objects carry the annotation themselves."""
    uninstall: Uninstall | None = None
    """None: kvpool is to stay."""
    budgets: Mapping[str, TierBudget] = field(default_factory=dict)
    pools: Mapping[ObjectKey, KVPool] = field(default_factory=dict)
    groups: Mapping[ObjectKey, PDGroup] = field(default_factory=dict)
    supernodes: Mapping[str, Supernode] = field(default_factory=dict)
    kvnodes: Mapping[str, KVNode] = field(default_factory=dict)
    slots: Mapping[ObjectKey, EngineSlot] = field(default_factory=dict)
    remaps: Mapping[ObjectKey, Remap] = field(default_factory=dict)
    nodes: Mapping[str, NodeFact] = field(default_factory=dict)
    pods: Mapping[ObjectKey, PodFact] = field(default_factory=dict)
    agents: Mapping[str, AgentView] = field(default_factory=dict)
    stores: Mapping[ObjectKey, StoreView] = field(default_factory=dict)
    acks: tuple[OutputAck, ...] = ()
    output_errors: Mapping[tuple[ObjectKey, str], str] = field(default_factory=dict)
    """Group and output to why the output does not carry what it should, for those that do not."""
    marks: Mapping[ObjectKey, Mapping[StageName, float]] = field(default_factory=dict)
    """For each open Remap, when each stage was first seen to be over; this leadership's memory only."""
    unreadable: frozenset[tuple[str, ObjectKey]] = frozenset()
    """Kind and key (namespace empty for cluster-scoped kinds) of objects that are there and cannot be read,
    like one of a newer version. They are in none of the mappings above, and yet not gone."""
    workload_selectors: Mapping[str, LabelSelector | None] = field(default_factory=dict)
    """`namespace/Kind/name` of a workload to its scale selector; None: it has no scale that states one."""

    @cached_property
    def slots_by_group(self) -> Mapping[ObjectKey, tuple[EngineSlot, ...]]:
        """The slots of each group by name; groups without a slot are not in it."""
        found: defaultdict[ObjectKey, list[EngineSlot]] = defaultdict(list)
        for key, slot in sorted(self.slots.items()):
            found[ObjectKey(key.namespace, slot.spec.pd_group)].append(slot)
        return {group: tuple(slots) for group, slots in found.items()}

    def may_exist(self, kind: str, key: ObjectKey) -> bool:
        """Whether an object that is in none of the mappings is there all the same, only not readable."""
        return (kind, key) in self.unreadable
