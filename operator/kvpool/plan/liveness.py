"""Whether a host is alive: what a lost lease means, and when it means nothing.

An agent's silence alone moves nothing. A host is dead when its lease ran out *and* two peers on other boards
cannot reach it (or its Node is not ready), while at most half of its guard group lost their leases with it.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kvpool.model.decisions import Reason
from kvpool.model.instant import Instant
from kvpool.model.observations import AgentView, NodeFact
from kvpool.model.snapshot import Snapshot
from kvpool.plan.domains import board_of, domain_unknown, lease_terms, supernode_of
from kvpool.plan.sizes import listed
from kvpool.rules.lease import (
    SMALLEST_JUDGED_GROUP,
    WITNESS_VALIDITY_SECONDS,
    LeaseTerms,
    believed_again_at,
    is_mass_loss,
    lease_expired,
    operator_deadline,
)

WITNESSES: Final = 2
"""Peers on other boards that must have failed to reach the host."""

LOOK_AGAIN_SECONDS: Final = 0.5
"""How soon an expired lease is judged anew while its witnesses are still being heard."""


class HostState(StrEnum):
    """What is known of a host."""

    ALIVE = "Alive"
    SILENT = "Silent"
    """Its agent is not heard, and that proves nothing."""
    DEAD = "Dead"
    UNKNOWN = "Unknown"
    """This leader has not heard of it yet."""


@dataclass(frozen=True, slots=True)
class HostFinding:
    """What is known of one host now. Times are monotonic seconds."""

    state: HostState
    reason: Reason
    since: float | None = None
    """Last sign of life, for a host that is silent or dead."""
    changes_at: float | None = None
    """When the answer may change by time alone."""


def host_findings(snapshot: Snapshot, now: Instant) -> Mapping[str, HostFinding]:
    """Return the finding about every kvpool node."""
    groups = _guard_groups(snapshot)
    lost = {
        node
        for node in snapshot.kvnodes
        if _lost_lease(snapshot, node, now) or _came_back(snapshot, node, now)
    }
    return {node: _finding(snapshot, node, groups[node], lost, now) for node in sorted(snapshot.kvnodes)}


def witness_validity_seconds(terms: LeaseTerms) -> float:
    """How long a peer's word about a host counts: peers speak with every renewal, each third of a lease."""
    return max(WITNESS_VALIDITY_SECONDS, terms.ttl_seconds / 2)


def _guard_groups(snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """Each kvpool node's guard group: its Supernode's nodes, else all kvpool nodes."""
    members: defaultdict[str, set[str]] = defaultdict(set)
    owner: dict[str, str] = {}
    for node in snapshot.kvnodes:
        supernode = supernode_of(snapshot, node)
        owner[node] = supernode.metadata.name if supernode is not None else ""
        members[owner[node]].add(node)
    everyone = frozenset(snapshot.kvnodes)
    frozen = {name: frozenset(nodes) for name, nodes in members.items()}
    return {node: frozen[name] if name else everyone for node, name in owner.items()}


def _quiet_from(snapshot: Snapshot) -> float:
    """Since when this leader leads and the API answers: no lease is older than that to us."""
    return max(snapshot.leadership.since, snapshot.leadership.api_back_since)


def _terms(snapshot: Snapshot, node: str) -> LeaseTerms:
    """The longer of what was granted and what would be granted now."""
    wanted = lease_terms(snapshot, node)
    agent = snapshot.agents.get(node)
    if agent is None or agent.lease.granted_at is None:
        return wanted
    return LeaseTerms(
        max(wanted.ttl_seconds, agent.lease.duration_seconds),
        max(wanted.max_skew_seconds, agent.lease.max_skew_seconds),
        wanted.policy,
    )


def _granted_at(snapshot: Snapshot, node: str) -> float | None:
    agent = snapshot.agents.get(node)
    return agent.lease.granted_at if agent is not None else None


def _lost_lease(snapshot: Snapshot, node: str, now: Instant) -> bool:
    return lease_expired(
        now.monotonic_seconds,
        _terms(snapshot, node),
        grant_sent_at_seconds=_granted_at(snapshot, node),
        leading_since_seconds=_quiet_from(snapshot),
    )


def _came_back(snapshot: Snapshot, node: str, now: Instant) -> bool:
    """Whether the agent said Hello so lately that its lease may have been lost until just now.

    Hellos of the first lease after a change of leader are expected and say nothing.
    """
    agent = snapshot.agents.get(node)
    terms = _terms(snapshot, node)
    return (
        agent is not None
        and agent.hello_at > operator_deadline(_quiet_from(snapshot), terms)
        and now.monotonic_seconds < _believed_at(agent.hello_at, terms)
    )


def _believed_at(moment: float, terms: LeaseTerms) -> float:
    """From when on single expiries count again after leases may have been lost in number until `moment`."""
    return max(
        believed_again_at(moment, terms),
        moment + terms.ttl_seconds + witness_validity_seconds(terms),
        operator_deadline(moment, terms),
    )


def _finding(
    snapshot: Snapshot, node: str, group: frozenset[str], lost: set[str], now: Instant
) -> HostFinding:
    agent = snapshot.agents.get(node)
    terms = _terms(snapshot, node)
    if not _lost_lease(snapshot, node, now):
        return _within_lease(snapshot, agent, terms, now)
    last_sign = _granted_at(snapshot, node) or _quiet_from(snapshot)
    if agent is not None and agent.leaving_until is not None and now.monotonic_seconds < agent.leaving_until:
        reason = Reason("Leaving", f"its agent said it would be away for {_until(agent.leaving_until, now)}")
        return HostFinding(HostState.SILENT, reason, last_sign, agent.leaving_until)
    unknown = domain_unknown(snapshot, node)
    if unknown is not None:
        return HostFinding(HostState.SILENT, unknown, last_sign)
    if len(group) < SMALLEST_JUDGED_GROUP:
        text = f"its lease ran out, but in a guard group of {len(group)} only a new boot id proves anything"
        return HostFinding(HostState.SILENT, Reason("GuardGroupTooSmall", text), last_sign)
    believed_at = _believed_at(_quiet_from(snapshot), terms)
    if now.monotonic_seconds < believed_at:
        text = f"its lease ran out, but expiries are believed only in {_until(believed_at, now)}: "
        text += "the leader changed or the API server was away"
        return HostFinding(HostState.SILENT, Reason("QuietAfterOutage", text), last_sign, believed_at)
    if is_mass_loss(lost, group):
        text = f"{len(group & lost)} of {len(group)} nodes of its guard group lost their leases together: "
        text += "that is an outage of the control plane, not of hosts"
        again = now.monotonic_seconds + LOOK_AGAIN_SECONDS
        return HostFinding(HostState.SILENT, Reason("MassExpiry", text), last_sign, again)
    return _judged(snapshot, node, group, last_sign, now)


def _within_lease(
    snapshot: Snapshot, agent: AgentView | None, terms: LeaseTerms, now: Instant
) -> HostFinding:
    if agent is None:
        ends = operator_deadline(_quiet_from(snapshot), terms)
        text = "its agent has not said Hello to this leader yet"
        return HostFinding(HostState.UNKNOWN, Reason("NotHeardYet", text), changes_at=ends)
    granted = agent.lease.granted_at
    ends = operator_deadline(max(_quiet_from(snapshot), granted or 0.0), terms)
    if agent.connected:
        return HostFinding(HostState.ALIVE, Reason("LeaseHeld", "it holds its lease"), changes_at=ends)
    text = f"its agent is not connected; its lease runs for another {_until(ends, now)}"
    return HostFinding(HostState.SILENT, Reason("AgentSilent", text), granted, ends)


def _judged(
    snapshot: Snapshot, node: str, group: frozenset[str], last_sign: float, now: Instant
) -> HostFinding:
    silent_seconds = now.monotonic_seconds - last_sign
    unreached, reached = _witnesses(snapshot, node, group, now)
    fact = snapshot.nodes.get(node)
    if _not_ready(fact):
        text = f"its lease ran out ({silent_seconds:.1f} s without renewal) and its Node is not ready"
        return HostFinding(HostState.DEAD, Reason("HostDead", text), last_sign)
    if len(unreached) >= WITNESSES and not reached:
        text = f"its lease ran out ({silent_seconds:.1f} s without renewal) and {listed(unreached)} "
        text += "on other boards cannot reach the host"
        return HostFinding(HostState.DEAD, Reason("HostDead", text), last_sign)
    again = now.monotonic_seconds + LOOK_AGAIN_SECONDS
    if reached:
        text = f"its lease ran out, but {listed(reached)} can reach the host: only its agent is silent"
        return HostFinding(HostState.SILENT, Reason("HostReachable", text), last_sign, again)
    text = f"its lease ran out, but {len(unreached)} peers on other boards say it cannot be reached, "
    text += f"{WITNESSES} are needed, and its Node is not known to be unready"
    return HostFinding(HostState.SILENT, Reason("WitnessesLacking", text), last_sign, again)


def _witnesses(
    snapshot: Snapshot, node: str, group: frozenset[str], now: Instant
) -> tuple[list[str], list[str]]:
    """Peers on other boards that freshly could not reach the host, and all peers that freshly could."""
    board = board_of(snapshot, node)
    unreached, reached = [], []
    for peer in sorted(group - {node}):
        agent = snapshot.agents.get(peer)
        if agent is None or not agent.connected or _lost_lease(snapshot, peer, now):
            continue
        oldest = now.monotonic_seconds - witness_validity_seconds(_terms(snapshot, peer))
        words = [word for word in agent.peers if word.peer == node and word.at >= oldest]
        if any(word.reached for word in words):
            reached.append(peer)
        elif words and board_of(snapshot, peer) != board:
            unreached.append(peer)
    return unreached, reached


def _not_ready(fact: NodeFact | None) -> bool:
    """Whether the Node is known not to be ready. A Node without the condition says nothing.

    `ready` is None with `ready_since` for a condition that is Unknown: the kubelet stopped reporting.
    """
    return fact is not None and (fact.ready is False or (fact.ready is None and fact.ready_since is not None))


def _until(moment: float, now: Instant) -> str:
    return f"{max(0.0, moment - now.monotonic_seconds):.1f} s"
