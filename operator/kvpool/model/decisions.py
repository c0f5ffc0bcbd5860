"""What the planner decides, as data with reasons. Executed by `kvpool.control`, by the simulator, or printed.

Decisions that decide ownership carry the resourceVersion they were made on: the write fails when it moved.
"""

from dataclasses import dataclass, field
from typing import Literal

from kvpool.api.engineslot import EngineSlotSpec, EngineSlotStatus
from kvpool.api.kvnode import Claim, KVNodeStatus, Quarantined, UnitSpec
from kvpool.api.kvpool import KVPoolStatus
from kvpool.api.pdgroup import PDGroupStatus
from kvpool.api.remap import RemapSpec, RemapStatus, StageName
from kvpool.api.supernode import SupernodeStatus
from kvpool.api.tierbudget import TierBudgetStatus
from kvpool.model.ids import ObjectKey


@dataclass(frozen=True, slots=True)
class Reason:
    """Why: a CamelCase code for machines and a sentence, with figures, for people."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class SetUnits:
    """Replace the units of one KVNode; raises its plan revision."""

    node: str
    resource_version: str
    units: tuple[UnitSpec, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class CreateKVNode:
    """Create the KVNode of a Node that a budget or a Supernode matches."""

    node: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class DeleteKVNode:
    """Delete a KVNode that nothing matches any more and that holds no claims and no units."""

    node: str
    uid: str
    resource_version: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class KeeperSpec:
    """The pod that holds one unit; its name carries the generation."""

    name: str
    node: str
    pool: ObjectKey
    pool_uid: str
    unit: UnitSpec
    memory_bytes: int
    """Requests and limits: the unit (for memory tiers) and the keeper's own overhead."""


@dataclass(frozen=True, slots=True)
class CreateKeeper:
    """Create a keeper pod."""

    keeper: KeeperSpec
    reason: Reason


@dataclass(frozen=True, slots=True)
class DeleteKeeper:
    """Delete a keeper pod whose unit was released or superseded."""

    pod: ObjectKey
    uid: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class CreateSlot:
    """Create an EngineSlot, unbound, with the fence finalizer."""

    key: ObjectKey
    spec: EngineSlotSpec
    group_uid: str
    """Owner; empty when the slot outlives its group (`onDelete: FreezeLast`)."""
    reason: Reason


@dataclass(frozen=True, slots=True)
class OwnSlot:
    """Let a slot go with its group, or outlive it, as the group's `onDelete` says now."""

    key: ObjectKey
    resource_version: str
    group: str
    group_uid: str
    """Owner from now on; empty when the slot outlives its group."""
    reason: Reason


@dataclass(frozen=True, slots=True)
class DeleteSlot:
    """Ask for the deletion of a slot that its group no longer wants; the finalizer waits for the fence."""

    key: ObjectKey
    uid: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class ForgetSlot:
    """Take the fence finalizer off a deleting EngineSlot: its seats are fenced and its claims are gone."""

    key: ObjectKey
    uid: str
    resource_version: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class OpenRemap:
    """Create a Remap. A name collision means that another leader opened it first."""

    key: ObjectKey
    spec: RemapSpec
    slot_uid: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class ClaimDevices:
    """Compare-and-swap claims into a KVNode: this decides who owns the devices."""

    node: str
    resource_version: str
    claims: tuple[Claim, ...]
    remap: ObjectKey
    reason: Reason


@dataclass(frozen=True, slots=True)
class BindSlot:
    """Compare-and-swap a slot's seats, epoch and fence proof: this decides who holds the slot."""

    key: ObjectKey
    resource_version: str
    spec: EngineSlotSpec
    remap: ObjectKey
    reason: Reason


@dataclass(frozen=True, slots=True)
class ReleaseClaims:
    """Take claims off a KVNode, and put devices into quarantine; batched, never urgent."""

    node: str
    resource_version: str
    devices: tuple[str, ...]
    quarantine: tuple[Quarantined, ...]
    lift_quarantine: tuple[str, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class CancelRemap:
    """End a Remap before its slot was bound."""

    key: ObjectKey
    status: RemapStatus
    reason: Reason


@dataclass(frozen=True, slots=True)
class DeleteRemap:
    """Take a Remap that is long over out of a slot's history."""

    key: ObjectKey
    uid: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class WriteSlotStatus:
    """Slot status; written when attachment, acknowledged weight or a condition changed."""

    key: ObjectKey
    status: EngineSlotStatus


@dataclass(frozen=True, slots=True)
class WriteRemapStatus:
    """Remap status: final, or blocked."""

    key: ObjectKey
    status: RemapStatus


@dataclass(frozen=True, slots=True)
class SlotWeight:
    """One slot's weight and why."""

    slot: ObjectKey
    weight: int
    endpoint: str
    """address:port; empty when nothing is attached."""
    pod_uid: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Weights:
    """All weights of one group and role at one time; a change of content makes a new revision."""

    group: ObjectKey
    role: Literal["Prefill", "Decode"]
    members: tuple[SlotWeight, ...]


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """A people's object's (or a KVNode's) whole status."""

    kind: Literal["TierBudget", "KVPool", "PDGroup", "Supernode", "KVNode"]
    key: ObjectKey
    status: TierBudgetStatus | KVPoolStatus | PDGroupStatus | SupernodeStatus | KVNodeStatus


@dataclass(frozen=True, slots=True)
class Announce:
    """An event for people about one object; emitted after the writes of its plan succeeded."""

    kind: str
    key: ObjectKey
    event_type: Literal["Normal", "Warning"]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Withheld:
    """What would have been done, and what held it back (mode, pause, budget)."""

    kind: str
    key: ObjectKey
    action: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class TellRetired:
    """Write into the ConfigMap of the uninstall which nodes' agents keep nothing any more."""

    namespace: str
    resource_version: str
    nodes: tuple[str, ...]


Action = (
    SetUnits
    | CreateKVNode
    | DeleteKVNode
    | CreateKeeper
    | DeleteKeeper
    | CreateSlot
    | OwnSlot
    | DeleteSlot
    | ForgetSlot
    | OpenRemap
    | ClaimDevices
    | BindSlot
    | ReleaseClaims
    | CancelRemap
    | DeleteRemap
    | TellRetired
    | WriteSlotStatus
    | WriteRemapStatus
    | WriteStatus
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A stage of a Remap was first seen to be over at this moment (monotonic seconds)."""

    remap: ObjectKey
    stage: StageName
    at: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What one planning step decides.

    `requeue_at` names the next moment (monotonic seconds) at which the answer changes by time alone.
    """

    actions: tuple[Action, ...] = ()
    weights: tuple[Weights, ...] = ()
    marks: tuple[Mark, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    events: tuple[Announce, ...] = ()
    requeue_at: float | None = None
    explanations: tuple[tuple[str, Reason], ...] = field(default=())
    """Object text to reason, also for holding still: what `kubectl kvpool explain` prints."""
