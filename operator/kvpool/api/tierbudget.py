"""TierBudget: supply. How much memory of a class of nodes may hold KV cache, and how it is bound."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from kvpool.api.common import LabelSelector, Mode, ObjectMeta
from kvpool.api.conditions import Conditions
from kvpool.api.quantity import Quantity
from kvpool.api.schema import Column, ListMap, ListSet, Model, resource

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


class BudgetTier(Model):
    """One medium of the nodes, and how much of it may hold KV cache."""

    name: BudgetTierName
    """DRAM, CXL or SSD. HBM belongs to engines: it is accounted, never budgeted."""
    per_node: Quantity
    """Bytes of each matched node that may hold KV cache."""
    reserve: Quantity = "0"
    """Bytes of each node that are never given to KV cache, whatever else is free."""
    high_watermark: Annotated[int, Field(ge=1, le=100)] = 90
    """Percent of the bound bytes in use above which `AboveHighWatermark` is set."""
    low_watermark: Annotated[int, Field(ge=0, le=99)] = 80
    """Percent of the bound bytes in use below which `AboveHighWatermark` is cleared."""
    backend: Backend | None = None
    """tmpfs (default for DRAM and CXL) or file (default for SSD)."""
    numa_policy: NumaPolicy = NumaPolicy.SPREAD
    """Spread, Local or Nodes. SSD has no NUMA placement."""
    numa_nodes: Annotated[
        tuple[Annotated[int, Field(ge=0, le=1023)], ...], ListSet(), Field(max_length=64)
    ] = ()
    """The NUMA nodes of policy Nodes; for CXL, the memory-only nodes of the expanders."""
    path: Annotated[str, Field(max_length=1024, pattern=r"^/[^\x00]*$")] | None = None
    """For backend file: the folder, on a mounted file system, that holds the units' files."""
    volume_limit: Quantity | None = None
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
    declared: Quantity = "0"
    """Asked for by people."""
    admitted: Quantity = "0"
    """Found room for, against the physical capacity after reserves."""
    bound: Quantity = "0"
    """Allocated, prefaulted, verified and mounted."""
    used: Quantity = "0"
    """Holding objects, as the store says."""
    foreign: Quantity = "0"
    """Held by others (engines, other tools) in the same store or medium."""
    unknown: Quantity = "0"
    """On nodes whose last report is too old to believe."""
    observed_at: Annotated[str, Field(max_length=40)] | None = None
    """When the oldest report behind these figures was taken."""


TierFiguresList = Annotated[tuple[TierFigures, ...], ListMap("name"), Field(max_length=8)]


class BudgetNodes(Model):
    """How many nodes a budget matches, and in what state their agents are."""

    matched: int = 0
    ready: int = 0
    stale: int = 0


class TierBudgetStatus(Model):
    """What the budget's nodes really hold."""

    observed_generation: int = 0
    nodes: BudgetNodes = BudgetNodes()
    tiers: TierFiguresList = ()
    conditions: Conditions = ()


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
