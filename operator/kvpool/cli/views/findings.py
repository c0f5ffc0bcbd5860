"""What a person should look at: conditions that say something is wrong, unread objects, a missing leader."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kvpool.api import KVNode, Remap
from kvpool.api.conditions import ConditionType
from kvpool.api.kvnode import DeviceVerdict
from kvpool.api.remap import RemapPhase
from kvpool.cli.operator_state import OperatorState
from kvpool.cli.views.figures import age_seconds
from kvpool.cli.views.own import OwnObject, object_name
from kvpool.model.instant import Instant
from kvpool.world.project import Malformed

_WRONG: Final[Mapping[str, str]] = {
    ConditionType.READY: "False",
    ConditionType.STORE_CONTENTS_LOST: "True",
    ConditionType.STORE_REACHABLE: "False",
    ConditionType.BUDGET_NOT_APPLIED: "True",
    ConditionType.NUMA_SKEW: "True",
    ConditionType.PLACEMENT_DRIFT: "True",
    ConditionType.OBSERVER_SUSPECT: "True",
    ConditionType.ABOVE_HIGH_WATERMARK: "True",
    ConditionType.RATIO_CONSTRAINT_VIOLATED: "True",
    ConditionType.WEIGHT_NOT_EXPRESSIBLE: "True",
    ConditionType.FENCE_NOT_ENFORCEABLE: "True",
    ConditionType.SPARES_LOW: "True",
    ConditionType.BLOCKED: "True",
    ConditionType.SERVING: "False",
    ConditionType.AGENT_CONNECTED: "False",
    ConditionType.AGENT_HEALTHY: "False",
    ConditionType.LEASE_HELD: "False",
}
"""Condition type to the status that is a finding. What is withheld or paused is wanted, so it is none."""

_RENEWED_WITHIN_SECONDS: Final = 30.0
"""A Lease that was renewed longer ago, is nobody's, whatever its holder's clock says."""


def findings(
    objects: Iterable[OwnObject], malformed: Sequence[Malformed], operator: OperatorState, now: Instant
) -> list[str]:
    """All findings, the operator's first."""
    found = [text for text in (leader_finding(operator, now),) if text is not None]
    found += [str(item) for item in malformed]
    for item in objects:
        found += object_findings(item)
    return found


def object_findings(item: OwnObject) -> list[str]:
    """What is wrong with one object; one line for each reason."""
    name = object_name(item)
    found: dict[str, str] = {}
    for condition in item.status.conditions:
        if _WRONG.get(condition.type) == condition.status:
            text = f"{name}: {condition.type} is {condition.status} ({condition.reason})"
            found.setdefault(condition.reason, f"{text}: {condition.message}" if condition.message else text)
    if isinstance(item, Remap) and item.status.phase in (RemapPhase.BLOCKED, RemapPhase.FAILED):
        text = f"{name}: phase is {item.status.phase} {item.status.blocked_reason}".rstrip()
        found.setdefault("phase", text)
    return [*found.values(), *(_faulty_devices(item, name) if isinstance(item, KVNode) else ())]


def _faulty_devices(kvnode: KVNode, name: str) -> Iterable[str]:
    for device in kvnode.status.devices:
        if device.verdict is DeviceVerdict.FAULTY:
            seen = ", ".join(f"{one.source} {one.code} ({one.evidence_class})" for one in device.evidence)
            yield f"{name}: device {device.id} is Faulty: {seen or 'no evidence is written down'}"


def leader_finding(operator: OperatorState, now: Instant) -> str | None:
    """Say that no operator leads; None when one does."""
    lease = operator.lease
    if lease is None or not lease.holder:
        text = f"no operator leads in namespace {operator.namespace}: nothing below is kept up to date"
        return f"{text} (or it runs elsewhere: --operator-namespace)"
    age = age_seconds(lease.renewed, now)
    if age is None or age > _RENEWED_WITHIN_SECONDS:
        since = "at an unreadable time" if age is None else f"{age:.0f} s ago"
        return f"the operator {lease.holder} renewed its Lease {since}: nothing below is kept up to date"
    return None
