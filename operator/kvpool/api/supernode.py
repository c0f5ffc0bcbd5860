"""Supernode: a scale-up domain with its failure domains, spares and failover policy."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kvpool.api.common import LabelKey, LabelSelector, Mode, Name, ObjectMeta, ShortText
from kvpool.api.conditions import Conditions
from kvpool.api.duration import DURATION_PATTERN, Duration, PositiveDuration
from kvpool.api.schema import Cel, Column, Later, ListAtomic, ListMap, ListSet, Model, cel, resource

DeviceId = Annotated[str, Field(min_length=1, max_length=128)]


class EvidenceClass(StrEnum):
    """How grave a finding about a device is."""

    INFO = "Info"
    WARN = "Warn"
    SOFT = "Soft"
    """Counts: `n` times within `window` make the device suspect enough to move off it."""
    FATAL = "Fatal"
    """One is enough: the device cannot serve."""
    LOST = "Lost"
    """The device is gone."""


class EvidenceRule(Model):
    """How one code of one source is read; without a rule, as its provider reads it."""

    source: Annotated[str, Field(min_length=1, max_length=63)]
    """Who reports, such as `nvml`."""
    code: Annotated[str, Field(min_length=1, max_length=63)]
    """The source's code, such as an XID number."""
    evidence_class: Annotated[EvidenceClass, Field(alias="class")]
    """Info, Warn, Soft, Fatal or Lost."""
    n: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often within `window` before it counts."""
    window: PositiveDuration = "10m"
    """The time over which findings are counted."""


class Evidence(Model):
    """From findings to a verdict."""

    table: Annotated[tuple[EvidenceRule, ...], ListMap("source", "code"), Field(max_length=256)] = ()
    """How codes are read, beside what kvpool knows itself."""
    confirm_after: Duration = "60s"
    """How long soft evidence must stand before a device is moved off; fatal evidence acts at once."""
    healthy_delay: Duration = "5m"
    """How long a device must be clean before it may be a spare again."""


class VoluntaryBudget(Model):
    """Moves off devices that still work."""

    max_in_flight: Annotated[int, Field(ge=0, le=1024)] = 1
    """How many may run at once."""


class RestorativeBudget(Model):
    """Moves off devices that are dead."""

    max_in_flight: Annotated[int, Field(ge=1, le=4096)] = 64
    """How many may run at once."""


class MoveBudgets(Model):
    """How many moves may run at once, by kind; Initial binds are not counted."""

    voluntary: VoluntaryBudget = VoluntaryBudget()
    """Moves off devices that still work."""
    restorative: RestorativeBudget = RestorativeBudget()
    """Moves off devices that are dead."""


class LeasePolicy(StrEnum):
    """What a node does that lost its lease."""

    PEER_AWARE = "PeerAware"
    """Goes on serving while most of its guard group lost theirs too: that is a control-plane outage."""
    STRICT = "Strict"
    """Stops serving at the deadline, always; an outage of the operator then stops the pool."""


@cel(
    f"![self.duration, self.maxSkew].all(given, given.matches('{DURATION_PATTERN}')) || "
    "duration(self.maxSkew) < duration(self.duration)",
    message_expression="'maxSkew %s must be below duration %s: the lease would be over before it starts'"
    ".format([self.maxSkew, self.duration])",
    field_path=".maxSkew",
)
class LeaseSpec(Model):
    """How long a node may act without hearing from the operator."""

    duration: Duration = "10s"
    """How long a node may act after its last renewal."""
    max_skew: Duration = "1s"
    """How far clocks may run apart within one lease."""
    policy: LeasePolicy = LeasePolicy.PEER_AWARE
    """PeerAware or Strict: what a node does that lost its lease."""


class FenceLevel(StrEnum):
    """How surely the old holder of a slot is out, weakest first."""

    CONTENT_ONLY = "ContentOnly"
    PROCESS = "Process"

    @property
    def rank(self) -> int:
        """0 for ContentOnly, 1 for Process."""
        return (FenceLevel.CONTENT_ONLY, FenceLevel.PROCESS).index(self)


class Fence(Model):
    """The least that must be proven before a slot is bound elsewhere."""

    require: Annotated[FenceLevel, Later("Network", "Fabric", "Power")] = FenceLevel.CONTENT_ONLY
    """ContentOnly (block keys are content hashes, stale reads are harmless) or Process (keeper or agent
    stopped the segment or the engine)."""


class Failover(Model):
    """When and how slots move off failing devices."""

    evidence: Evidence = Evidence()
    """From findings to a verdict."""
    budgets: MoveBudgets = MoveBudgets()
    """How many moves may run at once."""
    lease: LeaseSpec = LeaseSpec()
    """How long a node may act without hearing from the operator."""
    fence: Fence = Fence()
    """The least that must be proven before a slot is bound elsewhere."""


class Spares(Model):
    """Free, verified devices kept for failures."""

    floor: Annotated[int, Field(ge=0, le=1024)] = 1
    """Voluntary moves leave at least so many spare devices."""
    allow_remote: bool = False
    """Whether a spare of another Supernode may be used."""


class Maintenance(Model):
    """A node, or some of its devices, to be emptied and kept empty."""

    node: Name
    """The node."""
    devices: Annotated[tuple[DeviceId, ...], ListSet(), Field(max_length=64)] = ()
    """None means the whole node."""
    reason: ShortText = ""
    """Why, for people."""


class SupernodeSpec(Model):
    """A scale-up domain."""

    mode: Mode = Mode.OBSERVE
    """Observe looks only, Recommend says what it would do, Enforce acts."""
    node_selector: LabelSelector
    """The member nodes."""
    domains: Annotated[
        tuple[LabelKey, ...],
        ListAtomic(),
        Field(max_length=8),
        Cel(
            "self.all(domain, self.exists_one(other, other == domain))",
            "a label stands twice: the domains are nested, innermost first",
        ),
    ] = (
        "kvpool.dev/board",
        "kvpool.dev/rack",
    )
    """Node labels of the failure domains, innermost first."""
    spares: Spares = Spares()
    """Free, verified devices kept for failures."""
    maintenance: Annotated[tuple[Maintenance, ...], ListMap("node"), Field(max_length=256)] = ()
    """What is to be emptied; what is listed is never a spare."""
    failover: Failover = Failover()
    """When and how slots move off failing devices."""


class SupernodeDevices(Model):
    """Devices by what they do now."""

    active: int = 0
    """Devices that hold a seat."""
    spare: int = 0
    """Free, verified devices."""
    faulty: int = 0
    """Devices that may not be used."""
    unknown: int = 0
    """Devices whose node has not reported lately."""


class SpareCounts(Model):
    """Spare devices."""

    ready: int = 0
    """Free, verified devices."""
    reserved: int = 0
    """Devices claimed by a move that runs."""
    floor: int = 0
    """Spares that voluntary moves must leave."""


class SupernodeStatus(Model):
    """Devices and spares of the domain."""

    observed_generation: int = 0
    """The generation of the spec that this belongs to."""
    nodes: int = 0
    """How many nodes the domain has."""
    devices: SupernodeDevices = SupernodeDevices()
    """Devices by what they do now."""
    spares: SpareCounts = SpareCounts()
    """Spare devices."""
    conditions: Conditions = ()
    """What is true of the domain."""


@resource(
    "Supernode",
    "supernodes",
    "supernode",
    "Cluster",
    ("sn",),
    (
        Column("Mode", "string", ".spec.mode"),
        Column("Nodes", "integer", ".status.nodes"),
        Column("Active", "integer", ".status.devices.active"),
        Column("Spares", "integer", ".status.spares.ready"),
        Column("Faulty", "integer", ".status.devices.faulty"),
        Column("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
)
class Supernode(Model):
    """A scale-up domain: member nodes, failure domains, spares, failover policy and maintenance."""

    api_version: str = "kvpool.dev/v1alpha1"
    kind: str = "Supernode"
    metadata: ObjectMeta
    spec: SupernodeSpec
    status: SupernodeStatus = SupernodeStatus()
