"""Which Supernode a node belongs to, whom it is guarded with, and how far two nodes are apart."""

from kvpool.api.duration import parse_duration
from kvpool.api.pdgroup import PDGroup
from kvpool.api.supernode import Failover, Maintenance, Supernode
from kvpool.model.snapshot import Snapshot
from kvpool.rules.lease import LeaseTerms

_DEFAULT_DOMAINS = ("kvpool.dev/board", "kvpool.dev/rack")
_DEFAULT_FAILOVER = Failover()


def supernode_of(snapshot: Snapshot, node: str) -> Supernode | None:
    """Return the node's Supernode, the first by name when several select it; None when none does."""
    fact = snapshot.nodes.get(node)
    if fact is None:
        return None
    for name in sorted(snapshot.supernodes):
        if snapshot.supernodes[name].spec.node_selector.matches(fact.labels):
            return snapshot.supernodes[name]
    return None


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


def guard_group(snapshot: Snapshot, node: str) -> frozenset[str]:
    """Return the nodes that watch each other's hosts: the Supernode's, else all kvpool nodes."""
    supernode = supernode_of(snapshot, node)
    return frozenset(snapshot.kvnodes) if supernode is None else members_of(snapshot, supernode)


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
