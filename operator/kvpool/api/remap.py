"""Remap: one move of one slot, from the first evidence to its end. Written by the operator."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kvpool.api.common import Name, ObjectMeta, ShortText
from kvpool.api.conditions import Conditions
from kvpool.api.engineslot import FenceProof, Seat
from kvpool.api.epoch import OperatorEpoch, SlotEpoch
from kvpool.api.moment import Moment
from kvpool.api.schema import Cel, Column, ListMap, Model, cel, resource
from kvpool.api.supernode import FenceLevel

Seats = Annotated[tuple[Seat, ...], ListMap("index"), Field(max_length=64)]


class LeftBoot(Model):
    """The boot under which a node held the epoch being left."""

    node: Name
    """The node."""
    boot_id: Annotated[str, Field(alias="bootID", min_length=1, max_length=64)]
    """The kernel's boot id when the move was opened."""


class RemapKind(StrEnum):
    """Why a slot moves."""

    INITIAL = "Initial"
    VOLUNTARY = "Voluntary"
    RESTORATIVE = "Restorative"


_KEPT = ("operatorEpoch", "slot", "to", "fromEpoch", "epoch", "kind", "cause", "incident", "firstEvidenceAt")
_KEPT_LISTS = ("from", "fromBoots")


@cel(
    " && ".join(
        [
            *(f"self.{field} == oldSelf.{field}" for field in _KEPT),
            *(
                f"(has(self.{field}) ? self.{field} : []) == (has(oldSelf.{field}) ? oldSelf.{field} : [])"
                for field in _KEPT_LISTS
            ),
        ]
    ),
    "spec is immutable but for cancel: a move that is not wanted is cancelled, another is a new Remap",
    reason="FieldValueForbidden",
)
@cel(
    "self.cancel || !oldSelf.cancel",
    "cancel cannot be taken back",
    reason="FieldValueForbidden",
    field_path=".cancel",
)
@cel(
    "self.epoch > self.fromEpoch",
    message_expression="'epoch %d must be above fromEpoch %d'.format([self.epoch, self.fromEpoch])",
    field_path=".epoch",
)
@cel(
    "(self.kind == 'Initial') == (!has(self.from) || size(self.from) == 0)",
    message_expression="'only an Initial move leaves no seats: kind is %s'.format([self.kind])",
    field_path=".from",
)
class RemapSpec(Model):
    """The decision; immutable but for `cancel`."""

    operator_epoch: OperatorEpoch
    """Epoch of the leader that decided the move."""
    slot: Name
    """Name of the EngineSlot."""
    from_: Annotated[Seats, Field(alias="from")] = ()
    """Seats being left; empty for Initial."""
    from_boots: Annotated[tuple[LeftBoot, ...], ListMap("node"), Field(max_length=64)] = ()
    """Boots of the nodes that hold the epoch being left: in another boot nothing of it runs."""
    to: Annotated[Seats, Field(min_length=1)]
    """Seats being taken."""
    from_epoch: SlotEpoch = 0
    """The slot's epoch being left."""
    epoch: SlotEpoch
    """The slot's epoch once bound."""
    kind: RemapKind
    """Initial, Voluntary or Restorative."""
    cause: ShortText
    """Why, for people."""
    incident: Annotated[str, Field(max_length=64)] = ""
    """Identifier of the incident behind the move: moves and quarantines of one cause share it. Empty for a
    first place, and for a seat that follows its pod."""
    first_evidence_at: Moment
    """Stage times are counted from here."""
    cancel: bool = False
    """Set to stop the move; it cannot be taken back."""


class StageName(StrEnum):
    """The stages of a move, in order."""

    DETECT = "detect"
    CORDON = "cordon"
    CLAIM = "claim"
    FENCE = "fence"
    BIND = "bind"
    ENGINE_READY = "engineReady"
    SERVING = "serving"


class Stage(Model):
    """When one stage ended."""

    name: StageName
    """Name of the stage."""
    started_at: Moment | None = None
    """When it began."""
    ended_at: Moment
    """When it ended."""
    seconds: Annotated[str, Field(max_length=16)] = ""
    """Since the first evidence, such as `0.41s`."""
    detail: ShortText = ""
    """What happened, for people."""


class RemapFence(Model):
    """How the old holder was fenced."""

    level: FenceLevel
    """How surely the old holder is out."""
    proof: FenceProof
    """How that is known."""


class RemapPhase(StrEnum):
    """Where the move stands; derived, written for people once it is over or blocked."""

    RUNNING = "Running"
    BLOCKED = "Blocked"
    SUCCEEDED = "Succeeded"
    CANCELLED = "Cancelled"
    FAILED = "Failed"

    @property
    def is_final(self) -> bool:
        """Whether nothing more happens."""
        return self in (RemapPhase.SUCCEEDED, RemapPhase.CANCELLED, RemapPhase.FAILED)


class RemapStatus(Model):
    """How the move went."""

    phase: Annotated[
        RemapPhase,
        Cel(
            "self == oldSelf || oldSelf in ['Running', 'Blocked']",
            message_expression="'%s is final and does not become %s'.format([oldSelf, self])",
        ),
    ] = RemapPhase.RUNNING
    """Where the move stands; the last three are final."""
    stages: Annotated[tuple[Stage, ...], ListMap("name"), Field(max_length=16)] = ()
    """When each stage ended."""
    fence: RemapFence | None = None
    """How the old holder was fenced."""
    blocked_reason: Annotated[str, Field(max_length=64)] = ""
    """One word: what holds the move up."""
    finished_at: Moment | None = None
    """When the move was over."""
    conditions: Conditions = ()
    """What is true of the move."""


@resource(
    "Remap",
    "remaps",
    "remap",
    "Namespaced",
    (),
    (
        Column("Slot", "string", ".spec.slot"),
        Column("Kind", "string", ".spec.kind"),
        Column("From", "string", ".spec.from[0].node"),
        Column("To", "string", ".spec.to[0].node"),
        Column("Phase", "string", ".status.phase"),
        Column("Serving", "string", ".status.stages[?(@.name=='serving')].seconds"),
        Column("Cause", "string", ".spec.cause", 1),
        Column("Fence", "string", ".status.fence.level", 1),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
)
class Remap(Model):
    """One move of one slot; its name is `<slot>-<epoch being left>-<attempt>`. Written by the operator."""

    api_version: str = "kvpool.dev/v1alpha1"
    kind: str = "Remap"
    metadata: ObjectMeta
    spec: RemapSpec
    status: RemapStatus = RemapStatus()
