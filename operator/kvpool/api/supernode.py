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
    """How one code of one source is read; an unknown code is Warn."""

    source: Annotated[str, Field(min_length=1, max_length=63)]
    code: Annotated[str, Field(min_length=1, max_length=63)]
    evidence_class: Annotated[EvidenceClass, Field(alias="class")]
    n: Annotated[int, Field(ge=1, le=1000)] = 1
    window: PositiveDuration = "10m"


class Evidence(Model):
    """From findings to a verdict."""

    table: Annotated[tuple[EvidenceRule, ...], ListMap("source", "code"), Field(max_length=256)] = ()
    confirm_after: Duration = "60s"
    """How long soft evidence must stand before a device is moved off; fatal evidence acts at once."""
    healthy_delay: Duration = "5m"
    """How long a device must be clean before it may be a spare again."""


class VoluntaryBudget(Model):
    """Moves off devices that still work."""

    max_in_flight: Annotated[int, Field(ge=0, le=1024)] = 1


class RestorativeBudget(Model):
    """Moves off devices that are dead."""

    max_in_flight: Annotated[int, Field(ge=1, le=4096)] = 64


class MoveBudgets(Model):
    """How many moves may run at once, by kind; Initial binds are not counted."""

    voluntary: VoluntaryBudget = VoluntaryBudget()
    restorative: RestorativeBudget = RestorativeBudget()


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
    max_skew: Duration = "1s"
    policy: LeasePolicy = LeasePolicy.PEER_AWARE


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


class Failover(Model):
    """When and how slots move off failing devices."""

    evidence: Evidence = Evidence()
    budgets: MoveBudgets = MoveBudgets()
    lease: LeaseSpec = LeaseSpec()
    fence: Fence = Fence()


class Spares(Model):
    """Free, verified devices kept for failures."""

    floor: Annotated[int, Field(ge=0, le=1024)] = 1
    """Voluntary moves leave at least so many spare devices."""
    allow_remote: bool = False
    """Whether a spare of another Supernode may be used."""


class Maintenance(Model):
    """A node, or some of its devices, to be emptied and kept empty."""

    node: Name
    devices: Annotated[tuple[DeviceId, ...], ListSet(), Field(max_length=64)] = ()
    """None means the whole node."""
    reason: ShortText = ""


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
    maintenance: Annotated[tuple[Maintenance, ...], ListMap("node"), Field(max_length=256)] = ()
    """What is to be emptied; what is listed is never a spare."""
    failover: Failover = Failover()


class SupernodeDevices(Model):
    """Devices by what they do now."""

    active: int = 0
    spare: int = 0
    faulty: int = 0
    unknown: int = 0


class SpareCounts(Model):
    """Spare devices."""

    ready: int = 0
    reserved: int = 0
    floor: int = 0


class SupernodeStatus(Model):
    """Devices and spares of the domain."""

    observed_generation: int = 0
    nodes: int = 0
    devices: SupernodeDevices = SupernodeDevices()
    spares: SpareCounts = SpareCounts()
    conditions: Conditions = ()


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
