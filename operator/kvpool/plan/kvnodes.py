"""Which KVNodes exist, and what their status says: the agent's report, written rarely."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from kvpool.api.conditions import ConditionType, Verdict, merge_conditions
from kvpool.api.kvnode import (
    DeviceEvidence,
    DeviceStatus,
    DeviceVerdict,
    Finding,
    KVNode,
    KVNodeStatus,
    Placement,
    SourceStatus,
    UnitStatus,
)
from kvpool.api.quantity import format_quantity
from kvpool.api.supernode import Evidence
from kvpool.api.tierbudget import Backend
from kvpool.model.decisions import CreateKVNode, DeleteKVNode, Reason, WriteStatus
from kvpool.model.ids import DeviceRef, ObjectKey
from kvpool.model.instant import Instant, moment_text
from kvpool.model.observations import AgentView, DeviceView, SourceView, UnitView
from kvpool.model.snapshot import Snapshot
from kvpool.plan.agent_health import agent_healthy
from kvpool.plan.domains import policy_of, supernode_of
from kvpool.plan.evidence import DeviceFinding, class_of, device_findings
from kvpool.plan.freshness import HEARING_SECONDS

STATUS_SECONDS: Final = 30.0
"""The least time between two writes of a KVNode's status while no phase and no condition changes."""

_TIERS: Final = frozenset({"DRAM", "CXL", "SSD"})
_BACKENDS: Final = frozenset(backend.value for backend in Backend)
_ENTRIES_MOST: Final = 64
_EVIDENCE_MOST: Final = 16
_FINDINGS_MOST: Final = 8
_MATCHING: Final = frozenset({"TierBudget", "Supernode", "Node"})
"""Kinds that decide whether a node is one of ours."""


def plan_kvnodes(snapshot: Snapshot) -> tuple[CreateKVNode | DeleteKVNode, ...]:
    """One KVNode for each Node that a budget or a Supernode matches; others go once they hold nothing."""
    wanted = _wanted(snapshot)
    made = [
        CreateKVNode(name, Reason("NodeMatched", f"{why} matches node {name}"))
        for name, why in sorted(wanted.items())
        if name not in snapshot.kvnodes and not snapshot.may_exist("KVNode", ObjectKey("", name))
    ]
    if any(kind in _MATCHING for kind, _ in snapshot.unreadable):
        return tuple(made)  # what cannot be read may match the node
    gone = [
        DeleteKVNode(
            name,
            kvnode.metadata.uid,
            kvnode.metadata.resource_version,
            Reason(
                "NothingMatches", f"no budget and no Supernode matches node {name}, and nothing is held there"
            ),
        )
        for name, kvnode in sorted(snapshot.kvnodes.items())
        if name not in wanted and _holds_nothing(kvnode, node_exists=name in snapshot.nodes)
    ]
    return (*made, *gone)


def _wanted(snapshot: Snapshot) -> dict[str, str]:
    """Matched nodes, and what matches them."""
    selectors = [
        (f"TierBudget {name}", budget.spec.node_selector)
        for name, budget in sorted(snapshot.budgets.items())
        if budget.metadata.deletion_timestamp is None
    ]
    selectors += [
        (f"Supernode {name}", supernode.spec.node_selector)
        for name, supernode in sorted(snapshot.supernodes.items())
        if supernode.metadata.deletion_timestamp is None
    ]
    wanted: dict[str, str] = {}
    for what, selector in selectors:
        for name, fact in snapshot.nodes.items():
            if name not in wanted and selector.matches(fact.labels):
                wanted[name] = what
    return wanted


def _holds_nothing(kvnode: KVNode, *, node_exists: bool) -> bool:
    """A quarantine outlives a change of labels, not the node."""
    if kvnode.metadata.deletion_timestamp is not None or kvnode.spec.claims or kvnode.spec.units:
        return False
    return not (kvnode.spec.quarantine and node_exists)


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What is to become of one KVNode's status."""

    node: str
    write: WriteStatus | None
    """None: nothing is due."""
    look_again_at: float
    """When something may be due by time alone (monotonic seconds)."""
    unreadable: Reason | None = None
    """Why the agent's report cannot be written."""


def kvnode_statuses(snapshot: Snapshot, now: Instant) -> Iterator[NodeStatus]:
    """Look at every KVNode's status; a report that cannot be written holds up only its own node."""
    findings = device_findings(snapshot, now)
    for name, kvnode in sorted(snapshot.kvnodes.items()):
        agent = snapshot.agents.get(name)
        heard_by = snapshot.leadership.since + HEARING_SECONDS
        if agent is None and now.monotonic_seconds < heard_by:
            yield NodeStatus(name, None, heard_by)  # a new leader knows nothing yet, and says nothing
            continue
        policy = policy_of(supernode_of(snapshot, name)).evidence
        try:
            status = _status(kvnode, agent, policy, findings, now)
        except ValidationError as error:
            reason = Reason(
                "ReportUnreadable", f"the report of node {name} cannot be written: {_first(error)}"
            )
            yield NodeStatus(name, None, now.monotonic_seconds + STATUS_SECONDS, reason)
            continue
        yield _when_due(name, kvnode, status, agent, now)


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"


def _when_due(
    name: str, kvnode: KVNode, status: KVNodeStatus, agent: AgentView | None, now: Instant
) -> NodeStatus:
    due_at = _due_at(kvnode.status, status, now)
    ends = _lease_ends(agent, now)
    if due_at > now.monotonic_seconds:
        return NodeStatus(name, None, min([due_at, *ends]))
    write = WriteStatus("KVNode", ObjectKey("", name), status)
    return NodeStatus(name, write, min([now.monotonic_seconds + STATUS_SECONDS, *ends]))


def _lease_ends(agent: AgentView | None, now: Instant) -> list[float]:
    ends = agent.lease.expires_at if agent is not None else None
    return [ends] if ends is not None and ends > now.monotonic_seconds else []


def _due_at(old: KVNodeStatus, new: KVNodeStatus, now: Instant) -> float:
    """At once when a phase, a condition or an identity changed, else 30 s after the last one written."""
    if _steady(old) != _steady(new) or (old.last_report is None) != (new.last_report is None):
        return now.monotonic_seconds
    if old == new or old.last_report is None:
        return now.monotonic_seconds + STATUS_SECONDS
    reported = now.monotonic_of(old.last_report)
    # A moment ahead of now comes from another clock, or from before ours was set back.
    return reported + STATUS_SECONDS if reported <= now.monotonic_seconds else now.monotonic_seconds


def _steady(status: KVNodeStatus) -> object:
    """What may not wait: everything but figures, texts, and the generation that a condition was seen with.

    No condition of a node's status depends on its spec.
    """
    return (
        status.boot_id,
        status.incarnation,
        status.agent_version,
        tuple(source.key for source in status.sources),
        tuple(
            (unit.name, unit.generation, unit.phase, unit.segment, tuple(f.reason for f in unit.findings))
            for unit in status.units
        ),
        tuple((device.id, device.verdict, device.holder) for device in status.devices),
        tuple((c.type, c.status, c.reason) for c in status.conditions),
    )


def _status(
    kvnode: KVNode,
    agent: AgentView | None,
    policy: Evidence,
    findings: Mapping[DeviceRef, DeviceFinding],
    now: Instant,
) -> KVNodeStatus:
    conditions = merge_conditions(
        kvnode.status.conditions,
        (_connected(agent), agent_healthy(agent, now), _lease(agent, now)),
        kvnode.metadata.generation,
        now.text(),
    )
    if agent is None:  # what was last written stays the newest that is known
        return kvnode.status.model_copy(update={"conditions": conditions})
    return KVNodeStatus(
        boot_id=agent.boot_id,
        incarnation=agent.incarnation,
        agent_version=agent.agent_version,
        applied_revision=agent.applied_revision,
        last_report=moment_text(now.wall_at(agent.reported_at)),
        sources=tuple(_source(view) for view in _by_key(agent)[:_ENTRIES_MOST] if _is_known(view)),
        units=tuple(_unit(view) for view in _newest_units(kvnode, agent)[:_ENTRIES_MOST]),
        devices=tuple(
            _device(view, policy, findings.get(DeviceRef(agent.node, view.id)), now)
            for view in sorted(agent.devices, key=lambda view: view.id)[:_ENTRIES_MOST]
        ),
        conditions=conditions,
    )


def _connected(agent: AgentView | None) -> Verdict:
    if agent is None:
        text = "its agent has not said Hello to this leader"
        return Verdict(ConditionType.AGENT_CONNECTED, False, "NeverHeard", text)
    if agent.connected:
        text = f"agent {agent.agent_version} is connected"
        return Verdict(ConditionType.AGENT_CONNECTED, True, "Connected", text)
    return Verdict(ConditionType.AGENT_CONNECTED, False, "Disconnected", "its agent's stream ended")


def _lease(agent: AgentView | None, now: Instant) -> Verdict:
    ends = agent.lease.expires_at if agent is not None else None
    if ends is None:
        return Verdict(ConditionType.LEASE_HELD, False, "NeverGranted", "this leader granted no lease yet")
    if ends > now.monotonic_seconds:
        return Verdict(ConditionType.LEASE_HELD, True, "Granted", "its lease runs")
    return Verdict(ConditionType.LEASE_HELD, False, "Expired", "its lease ran out")


def _newest_units(kvnode: KVNode, agent: AgentView) -> list[UnitView]:
    """One view of each unit, in name order: of its decided generation, else of the newest."""
    decided = {(unit.name, unit.generation) for unit in kvnode.spec.units}
    ranked = sorted(agent.units, key=lambda view: ((view.name, view.generation) in decided, view.generation))
    by_name = {view.name: view for view in ranked}
    return [by_name[name] for name in sorted(by_name)]


def _by_key(agent: AgentView) -> list[SourceView]:
    return sorted(agent.sources, key=lambda view: view.key)


def _is_known(view: SourceView) -> bool:
    """Whether a newer agent's medium can be written in this version's words."""
    return view.tier in _TIERS and view.backend in _BACKENDS


def _source(view: SourceView) -> SourceStatus:
    return SourceStatus.model_validate(
        {
            "key": view.key,
            "tier": view.tier,
            "backend": view.backend,
            "numa_node": view.numa_node,
            "capacity": format_quantity(view.capacity_bytes),
            "free": format_quantity(view.free_bytes),
        }
    )


def _unit(view: UnitView) -> UnitStatus:
    return UnitStatus(
        name=view.name,
        generation=view.generation,
        phase=view.phase,
        size_bytes=view.size_bytes,
        resident_bytes=view.resident_bytes,
        used_bytes=view.used_bytes,
        placement=tuple(
            Placement(numa_node=numa_node, size_bytes=size)
            for numa_node, size in sorted(view.placement.items())
        ),
        placement_verified=view.placement_verified,
        segment=view.segment,
        findings=tuple(
            Finding(reason=reason[:64], message=message[:512])
            for reason, message in view.findings[:_FINDINGS_MOST]
        ),
        message=view.message[:512],
    )


def _device(view: DeviceView, policy: Evidence, finding: DeviceFinding | None, now: Instant) -> DeviceStatus:
    return DeviceStatus(
        id=view.id,
        uuid=view.uuid,
        verdict=finding.verdict if finding is not None else DeviceVerdict.UNKNOWN,
        holder=view.holder,
        evidence=tuple(
            DeviceEvidence(
                source=evidence.source,
                code=evidence.code,
                evidence_class=class_of(evidence, policy),
                count=evidence.count,
                first_seen=moment_text(now.wall_at(evidence.first_seen)),
                last_seen=moment_text(now.wall_at(evidence.last_seen)),
            )
            for evidence in view.evidence[:_EVIDENCE_MOST]
        ),
    )
