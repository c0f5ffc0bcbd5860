"""TierBudget: supply. How much memory of a class of nodes may hold KV cache, and how it is bound."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from kvpool.api.common import LabelSelector, Mode, ObjectMeta
from kvpool.api.conditions import Conditions
from kvpool.api.moment import Moment
from kvpool.api.quantity import PositiveSize, Size, WholeBytes
from kvpool.api.schema import Column, Later, ListMap, ListSet, Model, cel, resource

BudgetTierName = Literal["DRAM", "CXL", "SSD"]


class Backend(StrEnum):
    """How a unit's bytes are held."""

    TMPFS = "tmpfs"
    FILE = "file"


class NumaPolicy(StrEnum):
    """Over which NUMA nodes a tier's units are laid."""

    SPREAD = "Spread"
    """Evenly over every NUMA node that has CPUs."""
    LOCAL = "Local"
    """On the NUMA node with the most free bytes."""
    NODES = "Nodes"
    """Evenly over `numaNodes`."""


_BACKEND = "(has(self.backend) ? self.backend : (self.name == 'SSD' ? 'file' : 'tmpfs'))"
_SIZES_ARE_WHOLE = "[self.perNode, self.reserve, self.volumeLimit].all(size, isQuantity(size))"


@cel(
    "self.lowWatermark < self.highWatermark",
    message_expression="'lowWatermark %d must be below highWatermark %d'"
    ".format([self.lowWatermark, self.highWatermark])",
    field_path=".lowWatermark",
)
@cel(
    f"(self.name == 'SSD') == ({_BACKEND} == 'file')",
    message_expression=f"'backend %s cannot hold tier %s: SSD is held by file, DRAM and CXL by tmpfs'"
    f".format([{_BACKEND}, self.name])",
    field_path=".backend",
)
@cel(
    f"{_BACKEND} != 'file' || has(self.path)",
    "backend file needs a path: the folder that holds the units' files",
    reason="FieldValueRequired",
    field_path=".path",
)
@cel(
    f"{_BACKEND} == 'file' || (!has(self.path) && !has(self.volumeLimit))",
    "path and volumeLimit belong to backend file",
    reason="FieldValueForbidden",
)
@cel(
    f"!has(self.volumeLimit) || !{_SIZES_ARE_WHOLE} || "
    "quantity(self.perNode).add(quantity(self.reserve)).compareTo(quantity(self.volumeLimit)) <= 0",
    message_expression="'perNode %s and reserve %s together exceed volumeLimit %s'"
    ".format([self.perNode, self.reserve, self.volumeLimit])",
    field_path=".volumeLimit",
)
@cel(
    "self.name != 'SSD' || self.numaPolicy == 'Spread'",
    message_expression="'numaPolicy %s has no meaning for SSD'.format([self.numaPolicy])",
    field_path=".numaPolicy",
)
@cel(
    "(self.numaPolicy == 'Nodes') == (has(self.numaNodes) && size(self.numaNodes) > 0)",
    message_expression="'numaPolicy Nodes and numaNodes go together: the policy is %s'"
    ".format([self.numaPolicy])",
    field_path=".numaNodes",
)
class BudgetTier(Model):
    """One medium of the nodes, and how much of it may hold KV cache."""

    name: BudgetTierName
    """DRAM, CXL or SSD. HBM belongs to engines: it is accounted, never budgeted."""
    per_node: PositiveSize
    """Bytes of each matched node that may hold KV cache."""
    reserve: Size = "0"
    """Bytes of each node that are never given to KV cache, whatever else is free."""
    high_watermark: Annotated[int, Field(ge=1, le=100)] = 90
    """Percent of the bound bytes in use above which `AboveHighWatermark` is set."""
    low_watermark: Annotated[int, Field(ge=0, le=99)] = 80
    """Percent of the bound bytes in use below which `AboveHighWatermark` is cleared."""
    backend: Annotated[Backend | None, Later("hugetlb", "devdax", "systemRam")] = None
    """tmpfs (default for DRAM and CXL) or file (default for SSD)."""
    numa_policy: NumaPolicy = NumaPolicy.SPREAD
    """Spread, Local or Nodes. SSD has no NUMA placement."""
    numa_nodes: Annotated[
        tuple[Annotated[int, Field(ge=0, le=1023)], ...], ListSet(), Field(max_length=64)
    ] = ()
    """The NUMA nodes of policy Nodes; for CXL, the memory-only nodes of the expanders."""
    path: Annotated[str, Field(max_length=1024, pattern=r"^/[^\x00]*$")] | None = None
    """For backend file: the folder, on a mounted file system, that holds the units' files."""
    volume_limit: Size | None = None
    """For backend file: the size the volume may grow to; perNode + reserve may not exceed it."""


class TierBudgetSpec(Model):
    """Supply of a class of nodes."""

    mode: Mode = Mode.OBSERVE
    """Observe looks only, Recommend says what it would do, Enforce acts."""
    node_selector: LabelSelector = LabelSelector()
    """Which nodes; empty means every node."""
    tiers: Annotated[tuple[BudgetTier, ...], ListMap("name"), Field(min_length=1, max_length=3)]
    """One entry for each medium."""


class TierFigures(Model):
    """One tier's bytes: declared, admitted, bound, used; each figure as old as `observedAt`."""

    name: Annotated[str, Field(max_length=16)]
    """HBM, DRAM, CXL or SSD."""
    declared: WholeBytes = "0"
    """Asked for by people."""
    admitted: WholeBytes = "0"
    """Found room for, against the physical capacity after reserves."""
    bound: WholeBytes = "0"
    """Allocated, prefaulted, verified and mounted."""
    used: WholeBytes = "0"
    """Holding objects, as the store says."""
    foreign: WholeBytes = "0"
    """Held by others (engines, other tools) in the same store or medium."""
    unknown: WholeBytes = "0"
    """On nodes whose last report is too old to believe."""
    observed_at: Moment | None = None
    """When the oldest report behind these figures was taken."""


TierFiguresList = Annotated[tuple[TierFigures, ...], ListMap("name"), Field(max_length=8)]


class BudgetNodes(Model):
    """How many nodes a budget matches, and in what state their agents are."""

    matched: int = 0
    """Nodes that the selector matches."""
    ready: int = 0
    """Of these, nodes whose agent is connected."""
    stale: int = 0
    """Of these, nodes whose last report is too old to believe."""


class TierBudgetStatus(Model):
    """What the budget's nodes really hold."""

    observed_generation: int = 0
    """The generation of the spec that these figures belong to."""
    nodes: BudgetNodes = BudgetNodes()
    """The nodes of the budget."""
    tiers: TierFiguresList = ()
    """Bytes in each tier, over all nodes of the budget."""
    conditions: Conditions = ()
    """What is true of the budget."""


@resource(
    "TierBudget",
    "tierbudgets",
    "tierbudget",
    "Cluster",
    ("tb",),
    (
        Column("Mode", "string", ".spec.mode"),
        Column("Matched", "integer", ".status.nodes.matched"),
        Column("Ready", "integer", ".status.nodes.ready"),
        Column("Status", "string", ".status.conditions[?(@.type=='Ready')].reason", 1),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
)
class TierBudget(Model):
    """Supply: how much DRAM, CXL and SSD of a class of nodes may hold KV cache, and how it is bound."""

    api_version: str = "kvpool.dev/v1alpha1"
    kind: str = "TierBudget"
    metadata: ObjectMeta
    spec: TierBudgetSpec
    status: TierBudgetStatus = TierBudgetStatus()
