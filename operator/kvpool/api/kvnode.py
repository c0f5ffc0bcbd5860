"""KVNode: one per node, written by the operator. Spec is decided; status is what the agent reports."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from kvpool.api.common import ObjectMeta, ShortText
from kvpool.api.conditions import Conditions
from kvpool.api.epoch import OperatorEpoch, SlotEpoch
from kvpool.api.kvpool import OnRestart, ReclaimPolicy
from kvpool.api.moment import Moment
from kvpool.api.quantity import WholeBytes
from kvpool.api.schema import Column, ListAtomic, ListMap, Model, cel, resource
from kvpool.api.supernode import DeviceId, EvidenceClass
from kvpool.api.tierbudget import Backend, BudgetTierName

NamespacedName = Annotated[
    str,
    Field(
        min_length=3,
        max_length=507,
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
    ),
]
Counter = Annotated[int, Field(ge=0)]


class UnitStore(Model):
    """The Mooncake master that a unit's segment joins, as last known; it outlives the pool's object."""

    master: Annotated[str, Field(min_length=1, max_length=253)]
    """address:port of the master's RPC."""
    admin: Annotated[str, Field(max_length=253)] = ""
    """address:port of the master's admin HTTP surface."""
    metadata_server: Annotated[str, Field(max_length=512)] = "P2PHANDSHAKE"
    """P2PHANDSHAKE, or a metadata server."""
    protocol: Annotated[str, Field(max_length=16)] = "tcp"
    """tcp or rdma."""
    devices: Annotated[str, Field(max_length=1024)] = ""
    """RDMA devices, comma separated."""


@cel(
    "self.generation >= oldSelf.generation",
    message_expression="'generation must not fall from %d to %d'"
    ".format([oldSelf.generation, self.generation])",
    field_path=".generation",
)
@cel(
    "self.backend != 'file' || self.path != ''",
    "a unit of backend file needs a path",
    reason="FieldValueRequired",
    field_path=".path",
)
class UnitSpec(Model):
    """One piece of capacity to bind on this node."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """`<namespace>.<pool>.<tier>.n<numa node>`: stable over generations."""
    pool: NamespacedName
    """`namespace/name` of the KVPool."""
    pool_uid: Annotated[str, Field(max_length=64)] = ""
    """UID of the KVPool."""
    tier: BudgetTierName
    """DRAM, CXL or SSD."""
    size_bytes: Annotated[int, Field(ge=1)]
    """Bytes to bind."""
    numa_node: Annotated[int, Field(ge=-1, le=1023)] = -1
    """-1 when the tier has no NUMA placement."""
    backend: Backend
    """tmpfs or file."""
    path: Annotated[str, Field(max_length=1024)] = ""
    """Folder of backend file."""
    generation: Annotated[int, Field(ge=1)] = 1
    """Raised when the unit has to be made anew (boot lost, size changed)."""
    reserve_bytes: Counter = 0
    """Bytes of the medium that are to stay free beside the unit."""
    store: UnitStore | None = None
    """The store that mounts the unit; absent for a pool without one."""
    on_restart: OnRestart = OnRestart.ADOPT
    """What becomes of an SSD unit's file when its keeper or node comes back."""
    reclaim_policy: ReclaimPolicy = ReclaimPolicy.RETAIN
    """What becomes of the unit when the pool is deleted."""
    release: Literal["None", "Drain", "Now"] = "None"
    """Drain and Now ask the agent to give the unit back; it leaves the spec when the agent says Released."""


@cel(
    "self.epoch > oldSelf.epoch || (self.epoch == oldSelf.epoch && self.slot == oldSelf.slot)",
    message_expression="'the claim of %s under epoch %d does not yield to %s under epoch %d: "
    "the epoch must grow'"
    ".format([oldSelf.slot, oldSelf.epoch, self.slot, self.epoch])",
    field_path=".epoch",
)
class Claim(Model):
    """A device's owner. Who is listed here owns the device; nothing else decides it."""

    device: DeviceId
    """The device's PCI address or index."""
    uuid: Annotated[str, Field(max_length=128)] = ""
    """The device's UUID when it was claimed."""
    slot: NamespacedName
    """`namespace/name` of the EngineSlot that owns the device."""
    remap: Annotated[str, Field(max_length=253)] = ""
    """Name of the Remap that claimed it."""
    epoch: SlotEpoch
    """The slot's epoch under which the claim was made."""


class Quarantined(Model):
    """A device that may not be a spare."""

    device: DeviceId
    """The device's PCI address or index."""
    uuid: Annotated[str, Field(max_length=128)] = ""
    """The device's UUID when it was quarantined."""
    reason: ShortText
    """Why."""
    incident: Annotated[str, Field(max_length=64)] = ""
    """Identifier of the incident: that of the move which left the device."""
    since: Moment
    """When it was last known not to be clean; renewed while that lasts."""


@cel(
    "self.operatorEpoch >= oldSelf.operatorEpoch",
    message_expression="'operatorEpoch must not fall from %d to %d'"
    ".format([oldSelf.operatorEpoch, self.operatorEpoch])",
    field_path=".operatorEpoch",
)
@cel(
    "self.revision >= oldSelf.revision",
    message_expression="'revision must not fall from %d to %d'.format([oldSelf.revision, self.revision])",
    field_path=".revision",
)
class KVNodeSpec(Model):
    """Decided by the operator, and not rebuildable from the node."""

    operator_epoch: OperatorEpoch = 0
    """Epoch of the leader that wrote this; it never falls."""
    revision: Counter = 0
    """Of the plan made from this spec; grows with every change of units."""
    units: Annotated[tuple[UnitSpec, ...], ListMap("name"), Field(max_length=64)] = ()
    """What to bind on the node."""
    claims: Annotated[tuple[Claim, ...], ListMap("device"), Field(max_length=64)] = ()
    """Who owns which device."""
    quarantine: Annotated[tuple[Quarantined, ...], ListMap("device"), Field(max_length=64)] = ()
    """Devices that may not be spares."""


class SourceStatus(Model):
    """A medium of the node that units can be bound from."""

    key: Annotated[str, Field(max_length=253)]
    """Stable name, such as `dram/n0` or `file/ext4:/mnt/kv`."""
    tier: BudgetTierName
    """DRAM, CXL or SSD."""
    backend: Backend
    """How its bytes are held."""
    numa_node: Annotated[int, Field(ge=-1, le=1023)] = -1
    """-1 when the source has no NUMA node."""
    capacity: WholeBytes
    """All of its bytes."""
    free: WholeBytes
    """Bytes that are not in use."""


class UnitPhase(StrEnum):
    """How far a unit has come on the node."""

    PENDING = "Pending"
    PREPARING = "Preparing"
    ALLOCATING = "Allocating"
    BOUND = "Bound"
    DRAINING = "Draining"
    RELEASED = "Released"
    LOST = "Lost"
    DEGRADED = "Degraded"
    FAILED = "Failed"


class Finding(Model):
    """Something verify found wrong."""

    reason: Annotated[str, Field(max_length=64)]
    """One word: what is wrong."""
    message: Annotated[str, Field(max_length=512)] = ""
    """The figures, for people."""


class Placement(Model):
    """Bytes of a unit on one NUMA node, as the kernel says."""

    numa_node: int
    """The NUMA node."""
    size_bytes: Counter
    """Bytes of the unit there."""


class UnitStatus(Model):
    """One unit as the agent sees it."""

    name: Annotated[str, Field(max_length=253)]
    """Name of the unit."""
    generation: Counter
    """Generation of the unit that this is about."""
    phase: UnitPhase
    """How far the unit has come."""
    size_bytes: Counter = 0
    """Bytes allocated."""
    resident_bytes: Counter = 0
    """Backed by pages or blocks, read from the kernel."""
    used_bytes: Counter | None = None
    """Holding objects, as the store says; absent when unknown."""
    placement: Annotated[tuple[Placement, ...], ListMap("numaNode"), Field(max_length=64)] = ()
    """Bytes by NUMA node, as the kernel says."""
    placement_verified: bool = False
    """Whether the kernel was asked where the pages lie."""
    segment: Annotated[str, Field(max_length=253)] = ""
    """The unit's segment name in the store."""
    findings: Annotated[tuple[Finding, ...], ListAtomic(), Field(max_length=8)] = ()
    """What verify found wrong."""
    message: Annotated[str, Field(max_length=512)] = ""
    """What holds the unit up, for people."""


class DeviceVerdict(StrEnum):
    """What the evidence says of a device."""

    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    FAULTY = "Faulty"
    UNKNOWN = "Unknown"


class DeviceEvidence(Model):
    """One source's finding about a device."""

    source: Annotated[str, Field(max_length=63)]
    """Who reports."""
    code: Annotated[str, Field(max_length=63)]
    """The source's code."""
    evidence_class: Annotated[EvidenceClass, Field(alias="class")]
    """How grave it is."""
    count: Counter = 1
    """How often it was seen."""
    first_seen: Moment
    """When it was first seen."""
    last_seen: Moment
    """When it was last seen."""


class DeviceStatus(Model):
    """One accelerator as the agent sees it."""

    id: DeviceId
    """The device's PCI address or index."""
    uuid: Annotated[str, Field(max_length=128)] = ""
    """The device's UUID."""
    verdict: DeviceVerdict
    """Healthy, Degraded, Faulty or Unknown."""
    holder: Annotated[str, Field(max_length=507)] = ""
    """UID of the pod that holds the device; `namespace/name` where only its name is known; `unknown`."""
    evidence: Annotated[tuple[DeviceEvidence, ...], ListMap("source", "code"), Field(max_length=16)] = ()
    """What was found."""


class KVNodeStatus(Model):
    """Rebuildable from the agent's Hello; written at most every 30 s unless a phase or condition changes."""

    boot_id: Annotated[str, Field(alias="bootID", max_length=64)] = ""
    """The kernel's boot id: it changes when the node boots anew."""
    incarnation: Counter = 0
    """Counts the starts of the agent."""
    agent_version: Annotated[str, Field(max_length=64)] = ""
    """Version of the agent."""
    applied_revision: Counter = 0
    """The newest plan that the agent has carried out."""
    last_report: Moment | None = None
    """When the agent last reported."""
    sources: Annotated[tuple[SourceStatus, ...], ListMap("key"), Field(max_length=64)] = ()
    """What units could be bound from."""
    units: Annotated[tuple[UnitStatus, ...], ListMap("name"), Field(max_length=64)] = ()
    """The units as the agent sees them."""
    devices: Annotated[tuple[DeviceStatus, ...], ListMap("id"), Field(max_length=64)] = ()
    """The accelerators as the agent sees them."""
    conditions: Conditions = ()
    """What is true of the node."""


@resource(
    "KVNode",
    "kvnodes",
    "kvnode",
    "Cluster",
    ("kvn",),
    (
        Column("Connected", "string", ".status.conditions[?(@.type=='AgentConnected')].status"),
        Column("Healthy", "string", ".status.conditions[?(@.type=='AgentHealthy')].status"),
        Column("Lease", "string", ".status.conditions[?(@.type=='LeaseHeld')].status"),
        Column("Revision", "integer", ".spec.revision", 1),
        Column("Applied", "integer", ".status.appliedRevision", 1),
        Column("Agent", "string", ".status.agentVersion", 1),
        Column("Last-Report", "date", ".status.lastReport"),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
)
class KVNode(Model):
    """One node: what the operator decided for it, and what its agent reports. Written by the operator."""

    api_version: str = "kvpool.dev/v1alpha1"
    kind: str = "KVNode"
    metadata: ObjectMeta
    spec: KVNodeSpec = KVNodeSpec()
    status: KVNodeStatus = KVNodeStatus()
