"""Which Supernode a node belongs to, whom it is guarded with, and how far two nodes are apart."""

from typing import Final

from kvpool.api.duration import parse_duration
from kvpool.api.pdgroup import PDGroup
from kvpool.api.supernode import Failover, Maintenance, Supernode
from kvpool.model.decisions import Reason
from kvpool.model.snapshot import Snapshot
from kvpool.plan.sizes import listed
from kvpool.rules.lease import LeaseTerms

_DEFAULT_DOMAINS = ("kvpool.dev/board", "kvpool.dev/rack")
_DEFAULT_FAILOVER = Failover()

CODE_UNREADABLE: Final = "SupernodeUnreadable"


def supernode_of(snapshot: Snapshot, node: str) -> Supernode | None:
    """Return the node's Supernode, the first by name when several select it; None when none does."""
    fact = snapshot.nodes.get(node)
    if fact is None:
        return None
    for name in sorted(snapshot.supernodes):
        if snapshot.supernodes[name].spec.node_selector.matches(fact.labels):
            return snapshot.supernodes[name]
    return None


def domain_unknown(snapshot: Snapshot, node: str) -> Reason | None:
    """Say why nobody knows which Supernode rules a node; None when one that can be read does, or none can.

    A Supernode that is there and cannot be read may select the node: its policy, spares and maintenance list
    are unknown then, which is not the same as the defaults.
    """
    unread = _unreadable(snapshot)
    if not unread or supernode_of(snapshot, node) is not None:
        return None
    text = f"Supernode {listed(unread)} cannot be read and may rule {node}: nothing is decided on its policy"
    return Reason(CODE_UNREADABLE, text)


def group_domain_unknown(snapshot: Snapshot, group: PDGroup) -> Reason | None:
    """Say why the policy of the Supernode that a group names is unknown; None when it is not."""
    reference = group.spec.supernode_ref
    if reference is None or reference.name not in _unreadable(snapshot):
        return None
    text = f"spec.supernodeRef names Supernode {reference.name}, which cannot be read: nothing new is decided"
    return Reason(CODE_UNREADABLE, f"{text} until it can be")


def _unreadable(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(key.name for kind, key in snapshot.unreadable if kind == "Supernode")


def supernode_of_group(snapshot: Snapshot, group: PDGroup) -> Supernode | None:
    """Return the Supernode that a group names; None when it names none, or one that does not exist."""
    reference = group.spec.supernode_ref
    return snapshot.supernodes.get(reference.name) if reference else None


def members_of(snapshot: Snapshot, supernode: Supernode) -> frozenset[str]:
    """Return the kvpool nodes that belong to a Supernode."""
    return frozenset(
        node
        for node in snapshot.kvnodes
        if (owner := supernode_of(snapshot, node)) and owner.metadata.name == supernode.metadata.name
    )


def policy_of(supernode: Supernode | None) -> Failover:
    """Return the failover policy; the defaults where there is no Supernode."""
    return supernode.spec.failover if supernode is not None else _DEFAULT_FAILOVER


def lease_terms(snapshot: Snapshot, node: str) -> LeaseTerms:
    """Return the lease that the node is granted."""
    lease = policy_of(supernode_of(snapshot, node)).lease
    return LeaseTerms(parse_duration(lease.duration), parse_duration(lease.max_skew), lease.policy)


def board_of(snapshot: Snapshot, node: str) -> str:
    """Return the node's innermost failure domain; a node without the label is a board of its own."""
    supernode = supernode_of(snapshot, node)
    domains = supernode.spec.domains if supernode is not None else _DEFAULT_DOMAINS
    value = label_of(snapshot, node, domains[0]) if domains else ""
    return value or f"node {node}"


def distance(snapshot: Snapshot, supernode: Supernode | None, one: str, other: str) -> int:
    """Return how far apart two nodes are: 0 the same, then one for each failure domain outwards.

    Nodes that share no domain of the Supernode but belong to it come after all of its domains; nodes of
    another Supernode come last.
    """
    if one == other:
        return 0
    domains = supernode.spec.domains if supernode is not None else _DEFAULT_DOMAINS
    for level, key in enumerate(domains):
        value = label_of(snapshot, one, key)
        if value and value == label_of(snapshot, other, key):
            return 1 + level
    same = supernode_of(snapshot, one) is supernode_of(snapshot, other)
    return len(domains) + (1 if same else 2)


def label_of(snapshot: Snapshot, node: str, key: str) -> str:
    """Return a Node's label; empty when it has none."""
    fact = snapshot.nodes.get(node)
    return fact.labels.get(key, "") if fact is not None else ""


def maintenance_of(supernode: Supernode | None, node: str, device: str) -> Maintenance | None:
    """Return the entry that asks for this device to be emptied."""
    for entry in supernode.spec.maintenance if supernode is not None else ():
        if entry.node == node and (not entry.devices or device in entry.devices):
            return entry
    return None
