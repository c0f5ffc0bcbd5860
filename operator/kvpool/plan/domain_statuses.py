"""The statuses of groups and Supernodes: written when what they say changed, and told of in events."""

from collections.abc import Iterable

from kvpool.api.conditions import Condition
from kvpool.api.pdgroup import PDGroupStatus
from kvpool.api.supernode import SupernodeStatus
from kvpool.model.decisions import Announce, Plan, WriteStatus
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.groups import group_status
from kvpool.plan.supernodes import supernode_status
from kvpool.plan.transitions import announce


def domain_statuses(snapshot: Snapshot, now: Instant) -> Plan:
    """Decide the status of every living PDGroup and Supernode. Pure."""
    draft = _Draft()
    for key, group in sorted(snapshot.groups.items()):
        if group.metadata.deletion_timestamp is None:
            status = group_status(snapshot, group, now)
            draft.add(WriteStatus("PDGroup", key, status), group.status, group.status.conditions)
    for name, supernode in sorted(snapshot.supernodes.items()):
        if supernode.metadata.deletion_timestamp is None:
            write = WriteStatus("Supernode", ObjectKey("", name), supernode_status(snapshot, supernode, now))
            draft.add(write, supernode.status, supernode.status.conditions)
    return Plan(actions=tuple(draft.writes), events=tuple(draft.events))


class _Draft:
    """Collects writes that change something, and their events."""

    def __init__(self) -> None:
        self.writes: list[WriteStatus] = []
        self.events: list[Announce] = []

    def add(
        self, write: WriteStatus, old: PDGroupStatus | SupernodeStatus, before: Iterable[Condition]
    ) -> None:
        if write.status != old:
            self.writes.append(write)
            self.events += announce(write.kind, write.key, before, write.status.conditions)
