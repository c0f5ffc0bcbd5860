"""PDGroup: prefill and decode roles, the engines behind them, and where their routing weights go."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from kvpool.api.common import (
    LabelKey,
    LabelValue,
    LocalRef,
    Mode,
    Name,
    NonEmptySelector,
    ObjectMeta,
    Role,
    ShortText,
)
from kvpool.api.conditions import Conditions
from kvpool.api.duration import PositiveDuration
from kvpool.api.kvpool import Port
from kvpool.api.moment import Moment
from kvpool.api.planning import GroupPlanning, Slo
from kvpool.api.schema import Cel, Column, Later, ListAtomic, ListMap, Model, cel, resource


class Attach(StrEnum):
    """How an engine comes to sit on a seat."""

    OBSERVE = "Observe"
    """Seats follow pods; kvpool moves nothing."""
    STANDBY = "Standby"
    """A warm engine on the spare takes the seat over the agent's local API."""


@cel(
    "has(self.apiVersion) || self.kind in ['Deployment', 'StatefulSet', 'ReplicaSet', 'LeaderWorkerSet']",
    message_expression="'the apiVersion of kind %s is not known: give it'.format([self.kind])",
    reason="FieldValueRequired",
)
class WorkloadRef(Model):
    """The workload that runs a role's pods; its pods are found through its scale sub-resource."""

    api_version: Annotated[str, Field(max_length=253)] | None = None
    """Group and version of the workload; known for Deployment, StatefulSet, ReplicaSet, LeaderWorkerSet."""
    kind: Annotated[str, Field(min_length=1, max_length=63)]
    """Kind of the workload; it must have a scale sub-resource."""
    name: Name
    """Name of the workload."""


class Standby(Model):
    """Warm engines that wait on spares."""

    pod_selector: NonEmptySelector
    """The pods of the standby engines."""
    readiness: Literal["Device", "WeightsLoaded", "EngineReady"] = "EngineReady"
    """How warm a standby engine must be before its place counts as a spare."""


@cel("has(self.workloadRef) != has(self.podSelector)", "give exactly one of workloadRef and podSelector")
@cel(
    "(self.attach == 'Standby') == has(self.standby)",
    message_expression="'attach Standby and standby go together: attach is %s'.format([self.attach])",
    field_path=".standby",
)
class RoleSpec(Model):
    """One role's engines."""

    workload_ref: WorkloadRef | None = None
    """The workload; or give podSelector."""
    pod_selector: NonEmptySelector | None = None
    """The engines' pods, when there is no workload."""
    port: Port = 8000
    """The engines' HTTP port."""
    instances: Annotated[int, Field(ge=0, le=4096)] | None = None
    """How many slots; by default as many as there are engine pods."""
    devices_per_pod: Annotated[int, Field(ge=1, le=64)] = 1
    """Accelerators that one engine pod holds."""
    attach: Annotated[Attach, Later("Recreate")] = Attach.OBSERVE
    """Observe: seats follow pods. Standby: a warm engine on the spare takes the seat."""
    standby: Standby | None = None
    """Which warm engines wait on spares, for attach Standby."""
    failure_unit: Annotated[Literal["Instance"], Later("Device")] = "Instance"
    """What is lost with one device: the whole instance."""


_FRACTION = r"^[0-9]{1,6}/[0-9]{1,6}$"

Fraction = Annotated[
    str,
    Field(max_length=16, pattern=_FRACTION),
    Cel(
        f"!self.matches('{_FRACTION}') || self.split('/').all(part, int(part) > 0)",
        message_expression="'%s is no ratio: both numbers must be above 0, as in 1/2'.format([self])",
    ),
]


@cel(
    "!has(self.min) || !has(self.max) || "
    f"![self.min, self.max].all(bound, bound.matches('{_FRACTION}')) || "
    "int(self.min.split('/')[0]) * int(self.max.split('/')[1]) <= "
    "int(self.max.split('/')[0]) * int(self.min.split('/')[1])",
    message_expression="'min %s is above max %s'.format([self.min, self.max])",
    field_path=".min",
)
class Ratio(Model):
    """Bounds on prefill instances per decode instance, as fractions; outside them a condition says so."""

    min: Fraction | None = None
    """Fewest prefill per decode instances, such as 1/2."""
    max: Fraction | None = None
    """Most prefill per decode instances, such as 3/1."""


class SlowStart(Model):
    """How the weight of a slot rises that was newly bound, or whose engine started anew."""

    steps: Annotated[
        tuple[Annotated[int, Field(ge=1, le=100)], ...],
        ListAtomic(),
        Field(min_length=1, max_length=10),
        Cel("self.isSorted() && self[size(self) - 1] == 100", "steps must rise and end at 100"),
    ] = (10, 25, 50, 100)
    """Percent of the full weight at each step; the last is 100."""
    step_time: PositiveDuration = "15s"
    """How long each step lasts."""


class ParentRef(Model):
    """The Gateway that a route hangs on."""

    name: Name
    """Name of the Gateway."""
    namespace: Name | None = None
    """Namespace of the Gateway; by default the group's."""
    section_name: Annotated[str, Field(max_length=253)] | None = None
    """Listener of the Gateway; by default every listener that fits."""


class HTTPRouteOutput(Model):
    """A Gateway API route of kvpool's own."""

    parent_ref: ParentRef
    """The Gateway that the route hangs on."""
    backends: Annotated[Literal["PerMember"], Later("PerGroup")] = "PerMember"
    """PerMember: one Service and EndpointSlice for each slot, each with its weight."""
    hostnames: Annotated[
        tuple[Annotated[str, Field(max_length=253)], ...], ListAtomic(), Field(max_length=16)
    ] = ()
    """Host names that the route answers for; none for all."""
    path_prefix: Annotated[str, Field(max_length=1024, pattern="^/")] = "/"
    """Paths that the route takes."""


class PodLabelOutput(Model):
    """A label on the pods of serving slots; routers that select on it see only those."""

    key: LabelKey
    """The label that the router selects on."""
    value: LabelValue = "true"
    """Its value while the slot serves; the label is taken away when it does not."""


class EndpointSliceOutput(Model):
    """A slice of kvpool's own for a Service without a selector."""

    service_name: Name
    """The Service without a selector whose endpoints kvpool writes."""


class OutputType(StrEnum):
    """Where weights can go."""

    HTTP_ROUTE = "HTTPRoute"
    POD_LABEL = "PodLabel"
    ENDPOINT_SLICE = "EndpointSlice"


_MEMBER_OF_TYPE = {"HTTPRoute": "httpRoute", "PodLabel": "podLabel", "EndpointSlice": "endpointSlice"}


@cel(
    " && ".join(f"(self.type == '{kind}') == has(self.{member})" for kind, member in _MEMBER_OF_TYPE.items()),
    message_expression="'type %s takes its own member and no other: "
    + ", ".join(f"{member} for {kind}" for kind, member in _MEMBER_OF_TYPE.items())
    + "'.format([self.type])",
)
@cel(
    "self.weights != 'Required' || self.type == 'HTTPRoute'",
    message_expression="'type %s cannot carry weights, only in and out: weights Required needs HTTPRoute'"
    ".format([self.type])",
    field_path=".weights",
)
class Output(Model):
    """One place that weights go to: the member named by `type` is set, the others are not."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    """Name of the output within the group."""
    type: Annotated[OutputType, Later("PodReadinessGate", "EndpointPicker", "RouterFile", "SGLangGateway")]
    """HTTPRoute, PodLabel or EndpointSlice."""
    role: Role = Role.DECODE
    """Which role's slots go there: Decode (default) or Prefill."""
    weights: Literal["BestEffort", "Required"] = "BestEffort"
    """Required is refused for outputs that know only in and out."""
    http_route: HTTPRouteOutput | None = None
    """For type HTTPRoute."""
    pod_label: PodLabelOutput | None = None
    """For type PodLabel."""
    endpoint_slice: EndpointSliceOutput | None = None
    """For type EndpointSlice."""


class RoutingPolicy(StrEnum):
    """How weights are computed."""

    UNIFORM = "Uniform"
    """Every healthy slot gets the same."""
    COMPLETION_TIME = "CompletionTime"
    """By the speed of the slot's engine and the KV memory that it has left."""


class Guards(Model):
    """When weights are the same for all, whatever the policy."""

    small_pool: Annotated[int, Field(ge=0, le=4096)] = 3
    """Up to so many attached slots of a role all get the same: there is nothing to gain."""


class Routing(Model):
    """One weight for each slot, and the outputs that carry it."""

    policy: Annotated[RoutingPolicy, Later("LeastOutstanding", "Static")] = RoutingPolicy.UNIFORM
    """Uniform gives every healthy slot the same; CompletionTime less to those with little KV memory left."""
    guards: Guards = Guards()
    """When CompletionTime gives all the same."""
    slow_start: SlowStart = SlowStart()
    """How the weight of a slot rises that was newly bound, or whose engine started anew."""
    failure_mode: Literal["FailClose", "FailOpen"] = "FailClose"
    """When no slot may serve: FailClose writes all weights 0, FailOpen keeps the last ones."""
    on_delete: Literal["FreezeLast", "Remove"] = "FreezeLast"
    """What deleting the group does to its outputs: FreezeLast leaves the last weights, Remove takes them
    away."""
    outputs: Annotated[tuple[Output, ...], ListMap("name"), Field(max_length=8)] = ()
    """Where the weights go; none by default."""


_BOTH_NAME_A_WORKLOAD = (
    "has(self.prefill) && has(self.decode) && has(self.prefill.workloadRef) && has(self.decode.workloadRef)"
)
_BOTH_SELECT_BY_LABELS = "has(self.prefill) && has(self.decode) && " + " && ".join(
    f"has(self.{role}.podSelector) && has(self.{role}.podSelector.matchLabels) && "
    f"!has(self.{role}.podSelector.matchExpressions)"
    for role in ("prefill", "decode")
)


@cel(
    "has(self.prefill) || has(self.decode)",
    "give prefill, decode or both: a group without engines routes nothing",
    reason="FieldValueRequired",
)
@cel(
    f"!({_BOTH_NAME_A_WORKLOAD}) || self.prefill.workloadRef.kind != self.decode.workloadRef.kind || "
    "self.prefill.workloadRef.name != self.decode.workloadRef.name",
    message_expression="'prefill and decode name the same workload %s: a pod has one role'"
    ".format([self.decode.workloadRef.name])",
    field_path=".decode.workloadRef",
)
@cel(
    f"!({_BOTH_SELECT_BY_LABELS}) || "
    "self.prefill.podSelector.matchLabels != self.decode.podSelector.matchLabels",
    "prefill and decode select the same pods: a pod has one role",
    field_path=".decode.podSelector",
)
class PDGroupSpec(Model):
    """Prefill and decode engines that serve one model together."""

    mode: Mode = Mode.OBSERVE
    """Observe looks only, Recommend says what it would do, Enforce acts."""
    pool_ref: LocalRef
    """The KVPool whose memory the engines use."""
    supernode_ref: LocalRef | None = None
    """The Supernode whose spares and failover policy apply."""
    prefill: RoleSpec | None = None
    """The prefill engines."""
    decode: RoleSpec | None = None
    """The decode engines."""
    ratio: Ratio | None = None
    """Bounds on prefill instances per decode instance."""
    slo: Slo = Slo()
    """What requests are promised."""
    planning: GroupPlanning | None = None
    """What the planner reckons with: requests and engines; without, no ratio is recommended."""
    routing: Routing = Routing()
    """Weights and where they go."""


class Member(Model):
    """One slot's weight, as asked and as in force."""

    name: Annotated[str, Field(max_length=253)]
    """Name of the slot."""
    role: Role
    """Prefill or Decode."""
    weight: int = 0
    """The weight asked for."""
    effective_weight: int = 0
    """The weight in force, as far as is known."""
    reason: ShortText = ""
    """Why the weight is what it is."""


class OutputStatus(Model):
    """Which revision an output carries, and how that is known."""

    name: Annotated[str, Field(max_length=63)]
    """Name of the output."""
    revision: int = 0
    """The newest revision that the output carries."""
    acknowledged: Literal["Observed", "Assumed", "Pending"] = "Pending"
    """Observed: read back from the router. Assumed: a stated floor passed. Pending: not yet."""
    at: Moment | None = None
    """When that was acknowledged."""
    expressible: bool = True
    """Whether the output can carry a weight, or only in and out."""


class RoutingStatus(Model):
    """The newest weights and where they are in force."""

    revision: int = 0
    """Number of the newest weights."""
    outputs: Annotated[tuple[OutputStatus, ...], ListMap("name"), Field(max_length=8)] = ()
    """What each output carries."""


class RatioStatus(Model):
    """Prefill to decode instances that serve now, and that should."""

    current: Annotated[str, Field(max_length=16)] = ""
    """Serving prefill to serving decode instances, such as 2/4."""
    recommended: Annotated[str, Field(max_length=16)] = ""
    """Prefill to decode instances that serve most requests with as many instances, such as 3/2."""
    limited_by: Annotated[str, Field(max_length=64)] = ""
    """What keeps the recommended ratio from serving more."""
    message: ShortText = ""
    """The figures behind the recommendation, for people."""


class PDGroupStatus(Model):
    """Which slots serve, with which weights."""

    observed_generation: int = 0
    """The generation of the spec that this belongs to."""
    slots: int = 0
    """How many slots the group has."""
    serving: int = 0
    """How many of them serve."""
    members: Annotated[tuple[Member, ...], ListMap("name"), Field(max_length=128)] = ()
    """The slots and their weights; at most 128 are listed."""
    routing: RoutingStatus = RoutingStatus()
    """The newest weights and where they are in force."""
    ratio: RatioStatus = RatioStatus()
    """Prefill to decode instances."""
    conditions: Conditions = ()
    """What is true of the group."""


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
@cel(
    "size(self.metadata.name) <= 40 && !self.metadata.name.contains('.')",
    message_expression="'the name %s must have at most 40 characters and no dot: "
    "slots and Services are named after it'"
    ".format([self.metadata.name])",
)
class PDGroup(Model):
    """Prefill and decode roles, the engines behind them, and where their routing weights go."""

    api_version: str = "kvpool.dev/v1alpha1"
    kind: str = "PDGroup"
    metadata: ObjectMeta
    spec: PDGroupSpec
    status: PDGroupStatus = PDGroupStatus()
