"""What the planner reckons with: a pool's model and sessions, a group's lengths and promises."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from kvpool.api.common import ShortText
from kvpool.api.duration import PositiveDuration
from kvpool.api.schema import NOT_SUPPORTED_YET, ListAtomic, Model, PreserveUnknown, cel

SomeTokens = Annotated[int, Field(ge=1, le=2**31 - 1)]
NotYet = Annotated[dict[str, Any], PreserveUnknown(), NOT_SUPPORTED_YET] | None
NotYetList = (
    Annotated[
        tuple[Annotated[dict[str, Any], PreserveUnknown()], ...],
        ListAtomic(),
        Field(max_length=16),
        NOT_SUPPORTED_YET,
    ]
    | None
)
PresetName = Annotated[str, Field(min_length=1, max_length=63)]


@cel(
    "has(self.preset) != has(self.kvBytesPerToken)",
    "give exactly one of preset and kvBytesPerToken",
)
class PlannedModel(Model):
    """The model whose KV the pool holds."""

    preset: PresetName | None = None
    """A model that kvpool knows, such as Qwen3-32B."""
    kv_bytes_per_token: Annotated[int, Field(ge=1, le=2**40)] | None = None
    """Bytes of KV that one token adds, over all layers and ranks; instead of a preset."""
    layer_groups: NotYetList = None
    """Not supported yet."""
    recurrent: NotYet = None
    """Not supported yet."""
    config_file: NotYet = None
    """Not supported yet."""
    from_engine: NotYet = None
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
    as often as one likes. Drives are taken to be as large as what was admitted on them."""


class PlannedPlacement(Model):
    """How objects are laid over the tiers; the engine or the store enforces it, if anyone does."""

    policy: Annotated[str, Field(max_length=32), NOT_SUPPORTED_YET] | None = None
    """Not supported yet."""
    half_life: Annotated[str, Field(max_length=32), NOT_SUPPORTED_YET] | None = None
    """Not supported yet."""
    exclusive: bool = False
    """Whether an object is in one tier only; without, the faster tier holds copies."""


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
    object_classes: NotYetList = None
    """Not supported yet."""


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
    attention_ffn: NotYet = Field(default=None, alias="attentionFFN")
    """Not supported yet."""
    admission: NotYet = None
    """Not supported yet."""


class Slo(Model):
    """What requests are promised; the planner reckons with it, engines and routers hold it."""

    ttft: PositiveDuration = "3s"
    """Time to the first token."""
    tpot: PositiveDuration = "60ms"
    """Time for each token after it."""
    classes: NotYetList = None
    """Not supported yet."""
