"""From evidence about a device to a verdict, and whether its slot is to move off it.

Fatal and lost evidence acts at once. Soft evidence has to be seen often enough within its window and to stand
for `confirmAfter`. Warnings, information and a provider that cannot be asked never move anything.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kvpool.api.duration import parse_duration
from kvpool.api.kvnode import DeviceVerdict
from kvpool.api.supernode import Evidence, EvidenceClass, EvidenceRule
from kvpool.model.decisions import Reason
from kvpool.model.ids import DeviceRef
from kvpool.model.instant import Instant
from kvpool.model.observations import AgentView, DeviceView, EvidenceView
from kvpool.model.snapshot import Snapshot
from kvpool.plan.domains import policy_of, supernode_of
from kvpool.plan.freshness import is_fresh, silence_text

COMMON_CAUSE_DEVICES: Final = 3
COMMON_CAUSE_SECONDS: Final = 30.0
"""So many devices that begin to show one soft code within this time point at software, not at devices."""

SOFT_TIMES: Final = 3
SOFT_WINDOW: Final = "10m"
"""How a soft code counts that only its provider knows."""

_GRAVE: Final = (EvidenceClass.FATAL, EvidenceClass.LOST)


@dataclass(frozen=True, slots=True)
class DeviceFinding:
    """What the evidence says of one device now. Times are monotonic seconds."""

    verdict: DeviceVerdict
    reason: Reason
    since: float | None = None
    """First sighting of what decided the verdict."""
    move_wanted: bool = False
    """Soft evidence stood long enough, and nothing points at a common cause."""
    changes_at: float | None = None
    """When the answer changes by time alone."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """Soft evidence that was seen often enough."""

    view: EvidenceView
    seen: int
    rule: EvidenceRule


def device_findings(snapshot: Snapshot, now: Instant) -> Mapping[DeviceRef, DeviceFinding]:
    """Return the finding about every device that an agent of this leadership named."""
    onsets = _onsets(snapshot, now)
    return {
        DeviceRef(node, device.id): finding_of(
            device,
            agent,
            policy_of(supernode_of(snapshot, node)).evidence,
            onsets.get(_scope(snapshot, node), {}),
            now,
        )
        for node, agent in sorted(snapshot.agents.items())
        for device in agent.devices
    }


Onsets = Mapping[tuple[str, str], Iterable[float]]
"""(source, code) of soft evidence to the first sighting on each device that shows it."""


def finding_of(
    device: DeviceView, agent: AgentView, policy: Evidence, onsets: Onsets, now: Instant
) -> DeviceFinding:
    """Return the finding about one device under one policy."""
    grave = [view for view in device.evidence if class_of(view, policy) in _GRAVE]
    if grave:
        first = min(grave, key=lambda view: (view.first_seen, view.source, view.code))
        grade = class_of(first, policy).value
        message = f"{first.source} reported {first.code} ({grade})"
        return DeviceFinding(DeviceVerdict.FAULTY, Reason(f"{grade}Evidence", message), first.first_seen)
    if not agent.connected or not is_fresh(agent, now):
        return DeviceFinding(DeviceVerdict.UNKNOWN, Reason("AgentSilent", silence_text(agent, now)))
    if not device.observed:
        return DeviceFinding(
            DeviceVerdict.UNKNOWN, Reason("NotObserved", "its provider could not be asked: nothing is known")
        )
    standing = [found for view in device.evidence if (found := _standing(view, policy, now)) is not None]
    if standing:
        return _soft_finding(min(standing, key=lambda found: found.view.first_seen), policy, onsets, now)
    return DeviceFinding(DeviceVerdict.HEALTHY, Reason("NoEvidence", "nothing speaks against it"))


def class_of(view: EvidenceView, policy: Evidence) -> EvidenceClass:
    """Return how grave a finding is: by the Supernode's table, else as its provider declares it."""
    rule = _rule(view, policy)
    return rule.evidence_class if rule is not None else view.declared_class


def _rule(view: EvidenceView, policy: Evidence) -> EvidenceRule | None:
    return next((rule for rule in policy.table if (rule.source, rule.code) == (view.source, view.code)), None)


def _standing(view: EvidenceView, policy: Evidence, now: Instant) -> _Standing | None:
    if class_of(view, policy) is not EvidenceClass.SOFT:
        return None
    rule = _rule(view, policy) or EvidenceRule(
        source=view.source,
        code=view.code,
        evidence_class=EvidenceClass.SOFT,
        n=SOFT_TIMES,
        window=SOFT_WINDOW,
    )
    since = now.monotonic_seconds - parse_duration(rule.window)
    seen = sum(1 for at in view.recent if at >= since)
    if view.first_seen >= since:
        # Only the newest sightings are listed one by one; here all of them lie within the window.
        seen = max(seen, view.count)
    return _Standing(view, seen, rule) if seen >= rule.n else None


def _soft_finding(standing: _Standing, policy: Evidence, onsets: Onsets, now: Instant) -> DeviceFinding:
    view = standing.view
    confirmed_at = view.first_seen + parse_duration(policy.confirm_after)
    text = (
        f"{view.source} reported {view.code} (Soft) {standing.seen} times within {standing.rule.window}, "
        f"{standing.rule.n} count"
    )
    sharing = sum(
        1
        for onset in onsets.get((view.source, view.code), ())
        if abs(onset - view.first_seen) <= COMMON_CAUSE_SECONDS
    )
    if sharing >= COMMON_CAUSE_DEVICES:
        text += f"; {sharing} devices began to within {COMMON_CAUSE_SECONDS:.0f} s: held as a common cause"
        return DeviceFinding(DeviceVerdict.DEGRADED, Reason("CommonCauseHold", text), view.first_seen)
    if now.monotonic_seconds < confirmed_at:
        text += f"; moved off when it still stands after {policy.confirm_after}"
        return DeviceFinding(
            DeviceVerdict.DEGRADED, Reason("SoftEvidence", text), view.first_seen, changes_at=confirmed_at
        )
    return DeviceFinding(
        DeviceVerdict.DEGRADED, Reason("SoftEvidenceConfirmed", text), view.first_seen, move_wanted=True
    )


def _onsets(snapshot: Snapshot, now: Instant) -> Mapping[str, Onsets]:
    """For each scope (Supernode name, or empty), the first sightings of soft evidence that stands."""
    found: defaultdict[str, defaultdict[tuple[str, str], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for node, agent in snapshot.agents.items():
        policy = policy_of(supernode_of(snapshot, node)).evidence
        scope = found[_scope(snapshot, node)]
        for device in agent.devices:
            for view in device.evidence:
                if _standing(view, policy, now) is not None:
                    scope[view.source, view.code].append(view.first_seen)
    return found


def _scope(snapshot: Snapshot, node: str) -> str:
    supernode = supernode_of(snapshot, node)
    return supernode.metadata.name if supernode is not None else ""
