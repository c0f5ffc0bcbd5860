"""EngineSlot: the place of one engine instance, what routers and peers address. Written by the operator."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kvpool.api.common import Name, ObjectMeta, Role
from kvpool.api.conditions import Conditions
from kvpool.api.epoch import OperatorEpoch, SlotEpoch
from kvpool.api.kvnode import Counter
from kvpool.api.moment import Moment
from kvpool.api.schema import Column, ListMap, ListSet, Model, cel, resource
from kvpool.api.supernode import DeviceId, FenceLevel


class Seat(Model):
    """One pod's place: devices of one node."""

    index: Annotated[int, Field(ge=0, le=63)]
    """The pod's place in the instance, from 0."""
    node: Name
    """The node."""
    devices: Annotated[tuple[DeviceId, ...], ListSet(), Field(min_length=1, max_length=64)]
    """The node's devices that the seat holds."""


class FenceProof(StrEnum):
    """Why the old holder is known to be out."""

    NEVER_HELD = "NeverHeld"
    """Initial bind: nobody held the slot."""
    RELEASE_ACK = "ReleaseAck"
    """The old node's agent confirmed that it stopped the engine."""
    GUARD_EXPIRY = "GuardExpiry"
    """The old node's lease ran out, and its guard stops it by itself."""
    BOOT_ID_CHANGED = "BootIDChanged"
    """The old node booted anew: nothing of the old epoch runs."""


class FencedBy(Model):
    """How the epoch before this one was ended."""

    epoch: SlotEpoch
    """The epoch that was ended."""
    level: FenceLevel
    """How surely the old holder is out."""
    proof: FenceProof
    """How that is known."""
    at: Moment
    """Since when."""


@cel(
    "self.operatorEpoch >= oldSelf.operatorEpoch",
    message_expression="'operatorEpoch must not fall from %d to %d'"
    ".format([oldSelf.operatorEpoch, self.operatorEpoch])",
    field_path=".operatorEpoch",
)
@cel(
    "self.epoch >= oldSelf.epoch",
    message_expression="'epoch must not fall from %d to %d'.format([oldSelf.epoch, self.epoch])",
    field_path=".epoch",
)
@cel(
    "self.epoch > oldSelf.epoch || "
    "(has(self.seats) ? self.seats : []) == (has(oldSelf.seats) ? oldSelf.seats : [])",
    message_expression="'seats change only under a higher epoch, and it stays %d'.format([self.epoch])",
    field_path=".seats",
)
@cel(
    "self.pdGroup == oldSelf.pdGroup && self.role == oldSelf.role && self.instance == oldSelf.instance",
    "pdGroup, role and instance are immutable",
    reason="FieldValueForbidden",
)
@cel(
    "!has(self.fencedBy) || self.fencedBy.epoch < self.epoch",
    message_expression="'fencedBy.epoch %d must be below epoch %d: it is the epoch that was ended'"
    ".format([self.fencedBy.epoch, self.epoch])",
    field_path=".fencedBy",
)
class EngineSlotSpec(Model):
    """Who holds the slot. A change of seats raises the epoch."""

    operator_epoch: OperatorEpoch = 0
    """Epoch of the leader that wrote this; it never falls."""
    pd_group: Name
    """Name of the PDGroup."""
    role: Role
    """Prefill or Decode."""
    instance: Annotated[int, Field(ge=0, le=4095)]
    """The instance's number within its role, from 0."""
    seats: Annotated[tuple[Seat, ...], ListMap("index"), Field(max_length=64)] = ()
    """Empty while nothing is bound."""
    epoch: SlotEpoch = 0
    """Raised whenever the seats change; an older epoch may not serve."""
    fenced_by: FencedBy | None = None
    """How the epoch before this one was ended."""


class Attached(Model):
    """The engine that sits on the slot."""

    pod_uid: Annotated[str, Field(alias="podUID", max_length=64)] = ""
    """UID of the engine's pod."""
    pod_name: Annotated[str, Field(max_length=507)] = ""
    """`namespace/name` of the engine's pod."""
    endpoint: Annotated[str, Field(max_length=253)] = ""
    """address:port."""
    epoch: SlotEpoch
    """The epoch under which the engine attached."""


class EngineSlotStatus(Model):
    """Derived facts about the slot."""

    attached: Attached | None = None
    """The engine that sits on the slot."""
    weight_asked: Counter = 0
    """The weight that routers are to give the slot."""
    weight_acknowledged: Counter = 0
    """The weight that routers are known to give it."""
    conditions: Conditions = ()
    """What is true of the slot."""


@resource(
    "EngineSlot",
    "engineslots",
    "engineslot",
    "Namespaced",
    ("slot",),
    (
        Column("Group", "string", ".spec.pdGroup"),
        Column("Role", "string", ".spec.role"),
        Column("Node", "string", ".spec.seats[0].node"),
        Column("Epoch", "integer", ".spec.epoch"),
        Column("Weight", "integer", ".status.weightAcknowledged"),
        Column("Serving", "string", ".status.conditions[?(@.type=='Serving')].status"),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
)
class EngineSlot(Model):
    """The place of one engine instance: its seats, epoch and weight. Written by the operator."""

    api_version: str = "kvpool.dev/v1alpha1"
    kind: str = "EngineSlot"
    metadata: ObjectMeta
    spec: EngineSlotSpec
    status: EngineSlotStatus = EngineSlotStatus()
