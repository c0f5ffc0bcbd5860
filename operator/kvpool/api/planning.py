"""What the planner reckons with: a pool's model and sessions, a group's lengths and promises."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from kvpool.api.common import Name, ShortText
from kvpool.api.duration import PositiveDuration
from kvpool.api.quantity import PositiveSize
from kvpool.api.schema import NOT_SUPPORTED_YET, ListAtomic, ListMap, Model, PreserveUnknown, cel
from kvpool.api.tierbudget import BudgetTierName

Tokens = Annotated[int, Field(ge=0, le=2**31 - 1)]
SomeTokens = Annotated[int, Field(ge=1, le=2**31 - 1)]
Percent = Annotated[int, Field(ge=0, le=100)]
PresetName = Annotated[str, Field(min_length=1, max_length=63)]


class LayerGroup(Model):
    """Layers whose KV is held alike."""

    name: Name
    """Name of the group."""
    share: Annotated[int, Field(ge=1, le=100)]
    """Percent of the model's KV bytes."""
    derivable_from: Name | None = None
    """The group whose index tells early enough which rows these layers read; only then may they leave HBM."""
    working_set: SomeTokens | None = None
    """Tokens of each sequence that stay in HBM when the group leaves it."""


class RecurrentState(Model):
    """The state of fixed size that a hybrid model keeps for each sequence."""

    checkpoint_size: PositiveSize
    """Bytes of one checkpoint."""


@cel(
    "has(self.preset) != has(self.kvBytesPerToken)",
    "give exactly one of preset and kvBytesPerToken",
)
@cel(
    "!has(self.layerGroups) || self.layerGroups.map(group, group.share).sum() <= 100",
    message_expression="'the shares of layerGroups add up to %d percent'"
    ".format([self.layerGroups.map(group, group.share).sum()])",
    field_path=".layerGroups",
)
class PlannedModel(Model):
    """The model whose KV the pool holds."""

    preset: PresetName | None = None
    """A model that kvpool knows, such as Qwen3-32B."""
    kv_bytes_per_token: Annotated[int, Field(ge=1, le=2**40)] | None = None
    """Bytes of KV that one token adds, over all layers and ranks; instead of a preset."""
    block_tokens: Annotated[int, Field(ge=1, le=65536)] = 16
    """Tokens of one block of KV."""
    layer_groups: Annotated[tuple[LayerGroup, ...], ListMap("name"), Field(max_length=16)] = ()
    """Layers that may be held apart from the others."""
    recurrent: RecurrentState | None = None
    """For hybrid models."""
    config_file: Annotated[dict[str, Any], PreserveUnknown(), NOT_SUPPORTED_YET] | None = None
    """Not supported yet."""
    from_engine: Annotated[dict[str, Any], PreserveUnknown(), NOT_SUPPORTED_YET] | None = None
    """Not supported yet."""


class PlannedSessions(Model):
    """The sessions that are to fit; parked between turns."""

    context_tokens: SomeTokens = 32768
    """Tokens of a session that most stay below: a high quantile, not the mean."""
    turn_tokens: SomeTokens = 1024
    """Tokens that one turn adds."""
    return_after: PositiveDuration = "60s"
    """Time between two turns of a session."""
    ttft: PositiveDuration | None = None
    """Longest wait for the first token of a turn; a tier from which loading takes longer does not count."""


class PlannedHost(Model):
    """The accelerators beside the pool's memory, and the links between."""

    accelerator: PresetName = "H200"
    """A card that kvpool knows."""
    accelerators: Annotated[int, Field(ge=1, le=1024)] = 1
    """How many of them load from the memory of one node."""
    host_link: PresetName = "PCIe5-x16"
    """The link of one accelerator to the host; a link that kvpool knows."""
    cxl_link: PresetName = "CXL2-x16"
    """The link of the expanders of one node, for tier CXL."""
    drives: Annotated[int, Field(ge=1, le=256)] = 1
    """Drives of one node, for tier SSD."""
    drive_link: PresetName = "NVMe-Gen4"
    """One of these drives."""
    drive_writes_per_day: (
        Annotated[str, Field(max_length=16, pattern=r"^[0-9]{1,4}(\.[0-9]{1,4})?$")] | None
    ) = None
    """How often a day each drive may be overwritten until the end of its warranty, such as 0.3; absent:
    as often as one likes."""


class PlacementPolicy(StrEnum):
    """Which object leaves a tier first."""

    RECENCY = "Recency"
    FREQUENCY = "Frequency"
    AGED = "Aged"
    EWMA = "Ewma"
    CLASS_WISE = "ClassWise"


class PlannedPlacement(Model):
    """How objects are laid over the tiers; the engine or the store enforces it, if anyone does."""

    policy: PlacementPolicy = PlacementPolicy.AGED
    """Which object leaves a tier first."""
    half_life: PositiveDuration = "10m"
    """For Aged: after so long an access counts half."""
    exclusive: bool = False
    """Whether an object is in one tier only; without, the faster tier holds copies."""


class ObjectClass(Model):
    """One class of objects and the tier that it belongs to."""

    name: Name
    """Name of the class, such as system-prompt."""
    tier: BudgetTierName | None = None
    """Where its objects are held."""
    newest_tier: BudgetTierName | None = None
    """Where the newest object of a live session is held."""
    interval: Literal["Adaptive"] | None = None
    """For recurrent checkpoints: Adaptive lets the planner choose how many tokens apart they are."""
    pin: Literal["Hard"] | None = None
    """Hard: its objects are never evicted."""
    tiers: Annotated[tuple[BudgetTierName, ...], ListAtomic(), Field(max_length=3)] = ()
    """For pinned objects: the tiers that they are pinned in."""


class PoolPlanning(Model):
    """What the planner reckons with for a pool."""

    model: PlannedModel
    """The model whose KV the pool holds."""
    sessions: PlannedSessions = PlannedSessions()
    """The sessions that are to fit."""
    host: PlannedHost = PlannedHost()
    """The accelerators that load from the pool."""
    placement: PlannedPlacement = PlannedPlacement()
    """How objects are laid over the tiers."""
    object_classes: Annotated[tuple[ObjectClass, ...], ListMap("name"), Field(max_length=16)] = ()
    """Classes of objects with tiers of their own."""


class SessionLimit(StrEnum):
    """What keeps more sessions from fitting."""

    CAPACITY = "Capacity"
    BANDWIDTH = "Bandwidth"
    LATENCY = "Latency"
    ENDURANCE = "Endurance"


class SessionStatus(Model):
    """What the planner says fits into the admitted bytes."""

    capacity: Annotated[int, Field(ge=0)] = 0
    """Sessions that fit."""
    limited_by: SessionLimit | None = None
    """The limit that binds."""
    message: ShortText = ""
    """By how much, for people."""


class ModelStatus(Model):
    """What was derived of the model."""

    kv_bytes_per_token: Annotated[int, Field(ge=0)] = 0
    """Bytes of KV that one token adds."""
    session_bytes: Annotated[int, Field(ge=0)] = 0
    """Bytes of one parked session."""


class PlannedEngine(Model):
    """One engine instance of a role."""

    accelerator: PresetName = "H200"
    """A card that kvpool knows."""
    accelerators: Annotated[int, Field(ge=1, le=1024)] = 1
    """Cards of one instance: its tensor-parallel ranks."""


class PlannedRequests(Model):
    """The requests of a group, as their mean."""

    prompt_tokens: SomeTokens
    """Tokens of a prompt, cached ones included."""
    output_tokens: SomeTokens
    """Tokens of an answer."""
    hit_percent: Annotated[int, Field(ge=0, le=99)] = 0
    """Percent of a prompt's tokens whose KV is found in the pool."""


class GroupPlanning(Model):
    """What the planner reckons with for a group."""

    requests: PlannedRequests
    """The requests that are to be served."""
    prefill: PlannedEngine = PlannedEngine()
    """One prefill instance."""
    decode: PlannedEngine = PlannedEngine()
    """One decode instance."""
    transfer_link: PresetName = "InfiniBand-400G"
    """The link that a decode instance takes KV from prefill instances over; a link that kvpool knows."""
    attention_ffn: Annotated[dict[str, Any], PreserveUnknown(), NOT_SUPPORTED_YET] | None = Field(
        default=None, alias="attentionFFN"
    )
    """Not supported yet."""
    admission: Annotated[dict[str, Any], PreserveUnknown(), NOT_SUPPORTED_YET] | None = None
    """Not supported yet."""


class SloClass(Model):
    """What one class of requests is promised."""

    name: Name
    """Name of the class, such as batch."""
    ttft: PositiveDuration
    """Time to the first token."""
    tpot: PositiveDuration
    """Time for each token after it."""
    weight: Annotated[int, Field(ge=1, le=100)] = 100
    """Percent that a request of the class counts."""


class Slo(Model):
    """What requests are promised; the planner reckons with it, engines and routers hold it."""

    ttft: PositiveDuration = "3s"
    """Time to the first token."""
    tpot: PositiveDuration = "60ms"
    """Time for each token after it."""
    classes: Annotated[tuple[SloClass, ...], ListMap("name"), Field(max_length=16)] = ()
    """Classes that are promised something else."""
