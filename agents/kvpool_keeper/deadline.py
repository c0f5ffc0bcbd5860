"""Whether a segment may stay in the store, after the node's lease as the agent last wrote it.

The keeper carries the deadline itself, so that it holds although the agent is dead; before it acts on it, it
asks the guard group itself. Nothing here does I/O but `hear_peers`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kvpool.api.supernode import LeasePolicy
from kvpool.rules.lease import LeaseTerms, NodeLease, PeerWord, sees_outage, stand
from kvpool_keeper.contract import KeeperSpec, LeaseFile
from kvpool_keeper.probe import ask_peers

NANOSECONDS = 1_000_000_000
MILLISECONDS = 1000
ASK_BEFORE_SECONDS = 1.0
"""How long before the deadline the guard group is first asked."""


@dataclass(frozen=True)
class GroupWords:
    """What the keeper itself heard of the guard group. Times are CLOCK_BOOTTIME seconds."""

    words: dict[str, PeerWord] = field(default_factory=dict)
    outage_seen_at_seconds: float | None = None

    def heard(self, lease: LeaseFile, words: dict[str, PeerWord], now_boottime_ns: int) -> GroupWords:
        """Return the knowledge after hearing `words`; an outage counts only once the lease is lost."""
        now_seconds = now_boottime_ns / NANOSECONDS
        seen_at = self.outage_seen_at_seconds
        if now_boottime_ns < lease.deadline_boottime_ns:
            seen_at = None
        elif sees_outage(now_seconds, group=_group(lease), own_node=lease.node, words=words):
            seen_at = now_seconds
        return GroupWords(words, seen_at)


def may_be_mounted(
    spec: KeeperSpec, lease: LeaseFile | None, now_boottime_ns: int, boot_id: str, heard: GroupWords
) -> bool:
    """Whether the unit's segment may be in the store now.

    Only a spec with `unmount_at_deadline` ever says no: everything else stays mounted and readable. A lease
    of another boot, or none at all, is one that ran out.
    """
    if not spec.unmount_at_deadline:
        return True
    if lease is None or lease.boot_id != boot_id or lease.deadline_boottime_ns == 0:
        return False
    terms = LeaseTerms(
        lease.ttl_ms / MILLISECONDS,
        lease.max_skew_ms / MILLISECONDS,
        LeasePolicy.STRICT if lease.strict else LeasePolicy.PEER_AWARE,
    )
    return stand(
        NodeLease(lease.deadline_boottime_ns / NANOSECONDS),
        terms,
        now_boottime_ns / NANOSECONDS,
        group_size=len(_group(lease)),
        outage_seen_at_seconds=heard.outage_seen_at_seconds,
    ).serves


def _group(lease: LeaseFile) -> frozenset[str]:
    return frozenset({lease.node, *(peer.node for peer in lease.peers)})


def must_ask_peers(spec: KeeperSpec, lease: LeaseFile | None, now_boottime_ns: int) -> bool:
    """Whether the guard group's words matter now: the deadline is near or past, and peers may save it."""
    if not spec.unmount_at_deadline or lease is None or lease.strict or lease.deadline_boottime_ns == 0:
        return False
    return now_boottime_ns >= lease.deadline_boottime_ns - ASK_BEFORE_SECONDS * NANOSECONDS


async def hear_peers(lease: LeaseFile, now_boottime_ns: int) -> dict[str, PeerWord]:
    """Ask the whole guard group; the words count from `now_boottime_ns`, when they were asked for."""
    probes = await ask_peers({peer.node: peer.address for peer in lease.peers})
    asked_at_seconds = now_boottime_ns / NANOSECONDS
    return {
        node: PeerWord(probe.state, asked_at_seconds)
        for node, probe in probes.items()
        if probe.state is not None
    }
