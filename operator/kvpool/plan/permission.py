"""Whether moves of a group may be decided: its mode, its Supernode's, the cap, and pauses."""

from collections.abc import Iterable

from kvpool.api.engineslot import Seat
from kvpool.api.pdgroup import PDGroup
from kvpool.api.remap import RemapKind
from kvpool.api.supernode import Supernode
from kvpool.model.decisions import Reason
from kvpool.model.snapshot import Snapshot
from kvpool.plan.domains import domain_unknown
from kvpool.plan.modes import Standing, standing_of


def group_standing(snapshot: Snapshot, group: PDGroup) -> Standing:
    """Return how far kvpool may go for a group."""
    meta = group.metadata
    return standing_of(f"PDGroup {meta.namespace}/{meta.name}", meta, group.spec.mode, snapshot)


def supernode_standing(snapshot: Snapshot, supernode: Supernode) -> Standing:
    """Return how far kvpool may go for a Supernode."""
    meta = supernode.metadata
    return standing_of(f"Supernode {meta.name}", meta, supernode.spec.mode, snapshot)


def move_hold(
    snapshot: Snapshot, group: PDGroup, supernode: Supernode | None, kind: RemapKind
) -> Reason | None:
    """Return what forbids a move that has claimed nothing yet; None when it is allowed.

    A first place needs the group's leave, a move the Supernode's as well. A move that has claimed its new
    place is finished whatever is paused meanwhile: its old engine was told to stop already.
    """
    hold = group_standing(snapshot, group).hold
    if hold is not None or supernode is None or kind is RemapKind.INITIAL:
        return hold
    return supernode_standing(snapshot, supernode).hold


def domain_hold(snapshot: Snapshot, seats: Iterable[Seat]) -> Reason | None:
    """Return what forbids a move from or to some seats: a policy that is there and cannot be read."""
    return next((why for seat in seats if (why := domain_unknown(snapshot, seat.node)) is not None), None)
