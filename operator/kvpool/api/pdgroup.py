"""PDGroup: prefill and decode roles, the engines behind them, and where their routing weights go."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from kvpool.api.common import (
    LabelKey,
    LabelSelector,
    LabelValue,
    LocalRef,
    Mode,
    Name,
    ObjectMeta,
    Role,
    ShortText,
)
from kvpool.api.conditions import Conditions
from kvpool.api.duration import Duration
from kvpool.api.kvpool import Port
from kvpool.api.schema import Column, ListAtomic, ListMap, Model, resource


class Attach(StrEnum):
    """How an engine comes to sit on a seat."""

    OBSERVE = "Observe"
    """Seats follow pods; kvpool moves nothing."""
    RECREATE = "Recreate"
    """The old pod is evicted; its replacement is steered to the spare."""
    STANDBY = "Standby"
    """A warm engine on the spare takes the seat over the agent's local API."""


class WorkloadRef(Model):
    """The workload that runs a role's pods; its pods are found through its scale sub-resource."""

    api_version: Annotated[str, Field(max_length=253)] = "apps/v1"
    kind: Annotated[str, Field(min_length=1, max_length=63)]
    name: Name


class Standby(Model):
    """Warm engines that wait on spares."""

    pod_selector: LabelSelector
    readiness: Literal["Device", "WeightsLoaded", "EngineReady"] = "EngineReady"
    """How warm a standby engine must be before its place counts as a spare."""


class RoleSpec(Model):
    """One role's engines."""

    workload_ref: WorkloadRef | None = None
    """The workload; or give podSelector."""
    pod_selector: LabelSelector | None = None
    """The engines' pods, when there is no workload."""
    port: Port = 8000
    """The engines' HTTP port."""
    instances: Annotated[int, Field(ge=0, le=4096)] | None = None
    """How many slots; by default as many as there are engine pods."""
    devices_per_pod: Annotated[int, Field(ge=1, le=64)] = 1
    """Accelerators that one engine pod holds."""
    attach: Attach = Attach.OBSERVE
    standby: Standby | None = None
    failure_unit: Literal["Instance"] = "Instance"


class Ratio(Model):
    """Bounds on prefill instances per decode instance, as fractions; outside them a condition says so."""

    min: Annotated[str, Field(max_length=16, pattern=r"^[0-9]+/[0-9]+$")] | None = None
    max: Annotated[str, Field(max_length=16, pattern=r"^[0-9]+/[0-9]+$")] | None = None


class SlowStart(Model):
    """How a newly bound slot's weight rises."""

    steps: Annotated[
        tuple[Annotated[int, Field(ge=1, le=100)], ...], ListAtomic(), Field(min_length=1, max_length=10)
    ] = (10, 25, 50, 100)
    """Percent of the full weight at each step; the last is 100."""
    step_time: Duration = "15s"


class ParentRef(Model):
    """The Gateway that a route hangs on."""

    name: Name
    namespace: Name | None = None
    section_name: Annotated[str, Field(max_length=253)] | None = None


class HTTPRouteOutput(Model):
    """A Gateway API route of kvpool's own."""

    parent_ref: ParentRef
    backends: Literal["PerMember"] = "PerMember"
    """PerMember: one Service and EndpointSlice for each slot, each with its weight."""
    hostnames: Annotated[
        tuple[Annotated[str, Field(max_length=253)], ...], ListAtomic(), Field(max_length=16)
    ] = ()
    path_prefix: Annotated[str, Field(max_length=1024, pattern="^/")] = "/"


class PodLabelOutput(Model):
    """A label on the pods of serving slots; routers that select on it see only those."""

    key: LabelKey
    value: LabelValue = "true"


class EndpointSliceOutput(Model):
    """A slice of kvpool's own for a Service without a selector."""

    service_name: Name


class OutputType(StrEnum):
    """Where weights can go."""

    HTTP_ROUTE = "HTTPRoute"
    POD_LABEL = "PodLabel"
    ENDPOINT_SLICE = "EndpointSlice"


class Output(Model):
    """One place that weights go to: the member named by `type` is set, the others are not."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    type: OutputType
    role: Role = Role.DECODE
    weights: Literal["BestEffort", "Required"] = "BestEffort"
    """Required is refused for outputs that know only in and out."""
    http_route: HTTPRouteOutput | None = None
    pod_label: PodLabelOutput | None = None
    endpoint_slice: EndpointSliceOutput | None = None


class Routing(Model):
    """One weight for each slot, and the outputs that carry it."""

    policy: Literal["Uniform"] = "Uniform"
    slow_start: SlowStart = SlowStart()
    failure_mode: Literal["FailClose", "FailOpen"] = "FailClose"
    """When no slot may serve: FailClose writes all weights 0, FailOpen keeps the last ones."""
    on_delete: Literal["FreezeLast", "Remove"] = "FreezeLast"
    outputs: Annotated[tuple[Output, ...], ListMap("name"), Field(max_length=8)] = ()


class PDGroupSpec(Model):
    """Prefill and decode engines that serve one model together."""

    mode: Mode = Mode.OBSERVE
    """Observe looks only, Recommend says what it would do, Enforce acts."""
    pool_ref: LocalRef
    """The KVPool whose memory the engines use."""
    supernode_ref: LocalRef | None = None
    """The Supernode whose spares and failover policy apply."""
    prefill: RoleSpec | None = None
    decode: RoleSpec | None = None
    ratio: Ratio | None = None
    routing: Routing = Routing()


class Member(Model):
    """One slot's weight, as asked and as in force."""

    name: Annotated[str, Field(max_length=253)]
    role: Role
    weight: int = 0
    effective_weight: int = 0
    reason: ShortText = ""


class OutputStatus(Model):
    """Which revision an output carries, and how that is known."""

    name: Annotated[str, Field(max_length=63)]
    revision: int = 0
    acknowledged: Literal["Observed", "Assumed", "Pending"] = "Pending"
    """Observed: read back from the router. Assumed: a stated floor passed. Pending: not yet."""
    at: Annotated[str, Field(max_length=40)] | None = None
    expressible: bool = True
    """Whether the output can carry a weight, or only in and out."""


class RoutingStatus(Model):
    """The newest weights and where they are in force."""

    revision: int = 0
    outputs: Annotated[tuple[OutputStatus, ...], ListMap("name"), Field(max_length=8)] = ()


class RatioStatus(Model):
    """Prefill to decode instances that serve now."""

    current: Annotated[str, Field(max_length=16)] = ""


class PDGroupStatus(Model):
    """Which slots serve, with which weights."""

    observed_generation: int = 0
    slots: int = 0
    serving: int = 0
    members: Annotated[tuple[Member, ...], ListMap("name"), Field(max_length=128)] = ()
    routing: RoutingStatus = RoutingStatus()
    ratio: RatioStatus = RatioStatus()
    conditions: Conditions = ()


@resource(
    "PDGroup",
    "pdgroups",
    "pdgroup",
    "Namespaced",
    ("pdg",),
    (
        Column("Mode", "string", ".spec.mode"),
        Column("Slots", "integer", ".status.slots"),
        Column("Serving", "integer", ".status.serving"),
        Column("Revision", "integer", ".status.routing.revision", 1),
        Column("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
)
class PDGroup(Model):
    """Prefill and decode roles, the engines behind them, and where their routing weights go."""

    api_version: str = "kvpool.dev/v1alpha1"
    kind: str = "PDGroup"
    metadata: ObjectMeta
    spec: PDGroupSpec
    status: PDGroupStatus = PDGroupStatus()
