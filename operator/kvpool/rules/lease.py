"""The node's lease: who may serve until when, so that a node always stops before another takes over.

The node counts its lease from *sending* a Renew, the operator from *sending* the Grant that answers it. A
Grant is sent after its Renew, so the node's deadline is never later than the operator's; `max_skew_seconds`
covers clocks that run at different speeds and the time a stop takes.

All times are seconds on one clock of the caller that does not jump and counts suspended time
(CLOCK_BOOTTIME on a node). Nothing here reads a clock.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from kvpool.api.supernode import LeasePolicy

WITNESS_VALIDITY_SECONDS = 3.0
"""How long a peer's word about its own lease counts."""

SMALLEST_JUDGED_GROUP = 3
"""In a smaller guard group nobody can tell a dead host from a cut line: expiry proves nothing there."""

MOST_OPEN_RENEWS = 16
"""Renews that may wait for their Grant; older ones are forgotten, a Grant for them extends nothing."""


@dataclass(frozen=True)
class LeaseTerms:
    """What the operator grants; see Supernode.spec.failover.lease."""

    ttl_seconds: float
    max_skew_seconds: float
    policy: LeasePolicy = LeasePolicy.PEER_AWARE


@dataclass(frozen=True)
class NodeLease:
    """The node's side of its lease.

    `deadline_seconds` is None before the first Grant. `open_renews` are (seq, sent at), oldest first.
    """

    deadline_seconds: float | None = None
    open_renews: tuple[tuple[int, float], ...] = ()

    def renew_sent(self, seq: int, now_seconds: float) -> "NodeLease":
        """Return the lease after sending Renew `seq`."""
        return replace(self, open_renews=(*self.open_renews, (seq, now_seconds))[-MOST_OPEN_RENEWS:])

    def granted(self, seq: int, ttl_seconds: float) -> "NodeLease":
        """Return the lease after the Grant that answers Renew `seq`.

        An unknown `seq` (answered before, too old, or of another stream) changes nothing. The deadline never
        moves back: a shorter ttl holds from the next Renew on, once the longer promise has run out.
        """
        sent_at = dict(self.open_renews).get(seq)
        if sent_at is None:
            return self
        deadline = sent_at + ttl_seconds
        if self.deadline_seconds is not None:
            deadline = max(deadline, self.deadline_seconds)
        return NodeLease(deadline, tuple(renew for renew in self.open_renews if renew[0] > seq))

    def stream_ended(self) -> "NodeLease":
        """Return the lease after its stream ended: seqs start anew, the deadline stands."""
        return replace(self, open_renews=())

    def held(self, now_seconds: float) -> bool:
        """Whether the lease still runs at `now_seconds`; the deadline itself is too late."""
        return self.deadline_seconds is not None and now_seconds < self.deadline_seconds


class PeerState(StrEnum):
    """What a member of the guard group says of its own lease; see `own_word`."""

    HELD = "Held"
    LOST = "Lost"


@dataclass(frozen=True)
class PeerWord:
    """A peer's word on its own lease. `heard_at_seconds` is when the question was sent."""

    state: PeerState
    heard_at_seconds: float


class Stand(StrEnum):
    """What a node may do now."""

    HELD = "Held"
    """The lease runs: serve, and start what the plan asks for."""
    SERVING_ON = "ServingOn"
    """The lease is lost, with most of the group's: keep serving what serves, start nothing."""
    STOP = "Stop"
    """The lease is lost and this node may be the only one: stop what is under the lease."""

    @property
    def serves(self) -> bool:
        """Whether what serves now may go on."""
        return self is not Stand.STOP


def own_word(lease: NodeLease, now_seconds: float, *, renewing: bool) -> PeerState:
    """Return what a node tells its peers: Lost from the moment its stream ended, not only from its deadline.

    `renewing` is whether the node has a stream on which it was granted something. Leases end up to one
    renewal apart. Were only the deadline counted, the first node whose lease ends in an outage would find no
    peer without lease, and stop. A node says Hello before it is granted anything on a new stream, so the
    operator knows of everybody that may have said Lost.
    """
    return PeerState.HELD if renewing and lease.held(now_seconds) else PeerState.LOST


def sees_outage(
    now_seconds: float, *, group: frozenset[str], own_node: str, words: Mapping[str, PeerWord]
) -> bool:
    """Whether a node without lease finds that more than half of the full group, itself included, says Lost.

    `group` are the node names of the whole guard group, `words` the newest words of peers by node name. A
    peer that was not reached has no word, and counts as one that holds its lease.
    """
    lost = {own_node} | {
        node
        for node, word in words.items()
        if word.state is PeerState.LOST
        and now_seconds - WITNESS_VALIDITY_SECONDS < word.heard_at_seconds <= now_seconds
    }
    return is_mass_loss(lost, group)


def stand(
    lease: NodeLease,
    terms: LeaseTerms,
    now_seconds: float,
    *,
    group_size: int,
    outage_seen_at_seconds: float | None,
) -> Stand:
    """Decide what the node may do at `now_seconds`.

    `outage_seen_at_seconds` is when `sees_outage` was last true while the lease was lost, None for never
    since it was. Under PeerAware a node without lease serves on during an outage, and for most of one lease
    after it, in which it has to find the operator again: the operator believes no expiry before
    `believed_again_at`, which is later. In a group of fewer than three it always serves on, because there
    the operator concludes nothing from an expired lease. Strict stops at the deadline, whatever peers say.
    """
    if lease.held(now_seconds):
        return Stand.HELD
    if terms.policy is LeasePolicy.STRICT:
        return Stand.STOP
    if group_size < SMALLEST_JUDGED_GROUP:
        return Stand.SERVING_ON
    if outage_seen_at_seconds is None:
        return Stand.STOP
    grace_ends = outage_seen_at_seconds + terms.ttl_seconds - terms.max_skew_seconds
    return Stand.SERVING_ON if now_seconds < grace_ends else Stand.STOP


def is_mass_loss(lost: Iterable[str], group: frozenset[str]) -> bool:
    """Whether more than half of the full `group` is among `lost`: an outage of the operator, not of nodes.

    Node and operator ask the same question, each with what it knows; an empty group has no mass loss.
    """
    return 2 * len(group.intersection(lost)) > len(group)


def operator_deadline(grant_sent_at_seconds: float, terms: LeaseTerms) -> float:
    """Return from when on the operator may believe that the node stopped, on the operator's clock."""
    return grant_sent_at_seconds + terms.ttl_seconds + terms.max_skew_seconds


def lease_expired(
    now_seconds: float,
    terms: LeaseTerms,
    *,
    grant_sent_at_seconds: float | None,
    leading_since_seconds: float,
) -> bool:
    """Whether the operator sees the node's lease as run out.

    A node that this leader never granted (`grant_sent_at_seconds` None) may hold a grant of its predecessor,
    so the age never counts from before `leading_since_seconds`: the start of this leadership, or the end of
    the last outage of the API server if that was later.
    """
    newest = leading_since_seconds
    if grant_sent_at_seconds is not None:
        newest = max(newest, grant_sent_at_seconds)
    return now_seconds >= operator_deadline(newest, terms)


def believed_again_at(mass_loss_seen_at_seconds: float, terms: LeaseTerms) -> float:
    """Return from when on single expiries count again after the last moment of a mass loss.

    Nodes serve on by words up to WITNESS_VALIDITY_SECONDS old, and then for one ttl less the skew.
    """
    return mass_loss_seen_at_seconds + terms.ttl_seconds + WITNESS_VALIDITY_SECONDS
