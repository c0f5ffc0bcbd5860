"""KVPool: demand. Bytes wanted in each tier, and the store that uses them."""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from kvpool.api.common import LabelSelector, Mode, Name, ObjectMeta, ShortText
from kvpool.api.conditions import Conditions
from kvpool.api.moment import Moment
from kvpool.api.planning import ModelStatus, PoolPlanning, SessionStatus
from kvpool.api.quantity import PositiveSize, Quantity
from kvpool.api.schema import (
    NOT_SUPPORTED_YET,
    Column,
    Later,
    ListAtomic,
    ListMap,
    Model,
    PreserveUnknown,
    cel,
    resource,
)
from kvpool.api.tierbudget import BudgetTierName, TierFiguresList

MOST_FOREIGN_ENTRIES: Final = 64
"""Nodes that a pool's status names as holding memory of others."""

Port = Annotated[int, Field(ge=1, le=65535)]


class OnRestart(StrEnum):
    """What becomes of an SSD unit's file when its keeper or node comes back."""

    ADOPT = "Adopt"
    RELEASE = "Release"


class StopPolicy(StrEnum):
    """Hold admits nothing new and shrinks nothing that is in use."""

    NONE = "None"
    HOLD = "Hold"


class ReclaimPolicy(StrEnum):
    """What deleting the pool does to its memory."""

    RETAIN = "Retain"
    """Units stay bound and keep serving."""
    DRAIN = "Drain"
    """Segments are unmounted with grace, then the memory is released."""
    RELEASE = "Release"
    """Memory is released at once; contents are lost."""


@cel(
    "self.name == 'SSD' || self.onRestart == 'Adopt'",
    message_expression="'onRestart Release is for SSD, not for %s'.format([self.name])",
    field_path=".onRestart",
)
class PoolTier(Model):
    """Bytes wanted in one tier, over all nodes together."""

    name: BudgetTierName
    """DRAM, CXL or SSD."""
    size: PositiveSize
    """Total bytes wanted."""
    on_restart: OnRestart = OnRestart.ADOPT
    """Adopt keeps an SSD unit's file over a restart; Release makes a new one."""


class ServiceRef(Model):
    """A Service of the pool's namespace."""

    name: Name
    """Name of the Service."""


@cel(
    "has(self.serviceRef) != has(self.address)",
    "give exactly one of serviceRef and address",
)
class MooncakeMaster(Model):
    """Where the Mooncake master answers: by Service or by address."""

    service_ref: ServiceRef | None = None
    """The Service in front of the master."""
    address: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """Host name or IP of the master, when there is no Service."""
    rpc_port: Port = 50051
    """The master's RPC port."""
    admin_port: Port = 9003
    """The master's metrics and admin port."""


@cel(
    "self.protocol == 'rdma' || !has(self.devices) || size(self.devices) == 0",
    message_expression="'devices are for protocol rdma, not for %s'.format([self.protocol])",
    field_path=".devices",
)
class MooncakeTransport(Model):
    """How segments are reached."""

    protocol: Literal["tcp", "rdma"] = "tcp"
    """tcp or rdma."""
    devices: Annotated[tuple[ShortText, ...], ListAtomic(), Field(max_length=32)] = ()
    """RDMA device names; none for tcp."""


class MooncakeStore(Model):
    """An existing Mooncake store that kvpool adds segments to."""

    master: MooncakeMaster
    """Where the master answers."""
    metadata_server: Annotated[str, Field(max_length=512)] = "P2PHANDSHAKE"
    """Where clients find each other: P2PHANDSHAKE, or the address of a metadata server."""
    transport: MooncakeTransport = MooncakeTransport()
    """How segments are reached."""
    engine_segments: Literal["Count"] = "Count"
    """Count shows memory that engines brought themselves as `foreign`."""


class NoStore(Model):
    """Memory is bound and kept, and no store is told."""


@cel(
    "[has(self.mooncake), has(self.lmcache), has(self.none)].filter(given, given).size() == 1",
    message_expression="'give exactly one store (mooncake, lmcache or none), not %d'"
    ".format([[has(self.mooncake), has(self.lmcache), has(self.none)].filter(given, given).size()])",
)
class Store(Model):
    """Exactly one store."""

    mooncake: MooncakeStore | None = None
    """An existing Mooncake store that kvpool adds segments to."""
    none: NoStore | None = None
    """Memory is bound and kept, and no store is told."""
    lmcache: Annotated[dict[str, Any], PreserveUnknown(), NOT_SUPPORTED_YET] | None = None
    """Not supported yet."""


@cel(
    "!(has(self.supernodes) && has(self.nodeSelector))",
    "give supernodes or nodeSelector, not both",
    reason="FieldValueForbidden",
    field_path=".nodeSelector",
)
class KVPoolSpec(Model):
    """What a pool asks for."""

    mode: Mode = Mode.OBSERVE
    """Observe looks only, Recommend says what it would do, Enforce acts."""
    supernodes: LabelSelector | None = None
    """Only nodes of the Supernodes with these labels."""
    node_selector: LabelSelector | None = None
    """Only nodes with these labels; by default every node that the budgets match."""
    tiers: Annotated[tuple[PoolTier, ...], ListMap("name"), Field(max_length=3)] = ()
    """Bytes wanted; none to look only."""
    store: Store
    """The store that uses the memory."""
    stop_policy: Annotated[StopPolicy, Later("HoldAndDrain")] = StopPolicy.NONE
    """Hold admits nothing new and shrinks nothing that is in use."""
    reclaim_policy: ReclaimPolicy = ReclaimPolicy.RETAIN
    """What deleting the pool does to its memory."""
    cohort: Annotated[str, Field(max_length=253), NOT_SUPPORTED_YET] | None = None
    """Not supported yet."""
    tenants: (
        Annotated[
            tuple[Annotated[dict[str, Any], PreserveUnknown()], ...],
            ListAtomic(),
            Field(max_length=64),
            NOT_SUPPORTED_YET,
        ]
        | None
    ) = None
    """Not supported yet."""
    lend: Annotated[dict[str, Any], PreserveUnknown(), NOT_SUPPORTED_YET] | None = None
    """Not supported yet."""
    ranks: Annotated[dict[str, Any], PreserveUnknown(), NOT_SUPPORTED_YET] | None = None
    """Not supported yet."""
    planning: PoolPlanning | None = None
    """What the planner reckons with: model, sessions, accelerators, placement."""


class PoolNodes(Model):
    """How many nodes hold all, some or unknown parts of their share."""

    bound: int = 0
    """Nodes that hold all of their share."""
    short: int = 0
    """Nodes that hold less than their share."""
    stale: int = 0
    """Nodes whose last report is too old to believe."""


class Enforcement(Model):
    """Who enforces a field."""

    field: ShortText
    """Path of the field, such as `spec.tiers`."""
    by: Literal["kvpool", "Store", "Engine", "PlannerOnly"]
    """kvpool, Store, Engine, or PlannerOnly: nobody enforces it, the planner reckons with it."""


class ForeignBytes(Model):
    """Memory of one node that others (engines, other tools) brought to the pool's store."""

    node: Annotated[str, Field(max_length=253)]
    """Name of the node; empty for what is on none of the cluster's nodes."""
    tier: BudgetTierName
    """The medium; segments of others count as DRAM."""
    size: Quantity
    """Bytes that they brought."""
    segments: Annotated[int, Field(ge=1)]
    """In how many segments of the store."""
    observed_at: Moment
    """When the store said so."""


class KVPoolStatus(Model):
    """What the pool really has."""

    observed_generation: int = 0
    """The generation of the spec that these figures belong to."""
    tiers: TierFiguresList = ()
    """Bytes in each tier."""
    foreign: Annotated[
        tuple[ForeignBytes, ...], ListMap("node", "tier"), Field(max_length=MOST_FOREIGN_ENTRIES)
    ] = ()
    """Who else brought memory, the most first; the sum of all of it is `tiers[].foreign`."""
    nodes: PoolNodes = PoolNodes()
    """How far the nodes hold their shares."""
    sessions: SessionStatus | None = None
    """Sessions that fit into what is admitted; absent without `spec.planning`."""
    model: ModelStatus | None = None
    """What was derived of the model in `spec.planning`."""
    enforcement: Annotated[tuple[Enforcement, ...], ListMap("field"), Field(max_length=32)] = ()
    """Who enforces what was asked for; nothing is accepted and silently ignored."""
    conditions: Conditions = ()
    """What is true of the pool."""


@resource(
    "KVPool",
    "kvpools",
    "kvpool",
    "Namespaced",
    ("kvp",),
    (
        Column("Mode", "string", ".spec.mode"),
        Column("Bound", "string", ".status.conditions[?(@.type=='Bound')].message"),
        Column("Used", "string", ".status.conditions[?(@.type=='Ready')].message"),
        Column("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Admitted", "string", ".status.conditions[?(@.type=='Admitted')].message", 1),
        Column("Sessions", "integer", ".status.sessions.capacity", 1),
        Column("Limit", "string", ".status.sessions.limitedBy", 1),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
)
@cel(
    "size(self.metadata.name) <= 63",
    message_expression="'the name has %d characters, the most is 63: labels carry it'"
    ".format([size(self.metadata.name)])",
)
class KVPool(Model):
    """Demand: bytes of KV cache wanted in each tier, and the store that uses them."""

    api_version: str = "kvpool.dev/v1alpha1"
    kind: str = "KVPool"
    metadata: ObjectMeta
    spec: KVPoolSpec
    status: KVPoolStatus = KVPoolStatus()
