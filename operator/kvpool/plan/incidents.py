"""Incidents: what the moves and quarantines of one cause have in common, for whoever reads them later.

An incident is one episode of trouble of a host or a device. Its identifier is made from who is in trouble and
when that began. The beginning is not known to the millisecond (it is told as an age), and a new leader may
see a later one: what a standing object says of the same trouble is used again.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.moves import is_open

SAME_BEGINNING_SECONDS: Final = 2
"""Beginnings of one trouble that are no further apart are the same one."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Who is in trouble, and since when."""

    who: str
    """A node, `node/device/uuid`, or an entry of a maintenance list."""
    since: float | None
    """Monotonic seconds; None for what is asked for, which has no beginning that anybody wrote down."""


class Incidents:
    """The incidents that a snapshot's objects carry."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._carried: defaultdict[str, set[tuple[str, bool]]] | None = None

    def of(self, trouble: Trouble, now: Instant) -> str:
        """Return the trouble's incident: a carried one if it is the same episode, else a new one.

        The same episode: its beginning is the same, or it stands, by an open move or by a quarantine.
        """
        who = hashlib.sha256(trouble.who.encode()).hexdigest()[:16]
        if trouble.since is None:
            return who
        began = int(now.wall_at(trouble.since).timestamp())
        carried = self._by_trouble()[who]
        standing = sorted(incident for incident, stands in carried if stands)
        near = sorted(
            incident for incident, _ in carried if abs(_beginning(incident) - began) <= SAME_BEGINNING_SECONDS
        )
        return next(iter((*near, *standing)), f"{who}-{began:x}")

    def _by_trouble(self) -> defaultdict[str, set[tuple[str, bool]]]:
        """For each trouble, its incidents and whether each of them stands; looked up once."""
        if self._carried is None:
            self._carried = defaultdict(set)
            for incident, stands in self._all():
                who, _, began = incident.partition("-")
                if began:
                    self._carried[who].add((incident, stands))
        return self._carried

    def _all(self) -> Iterator[tuple[str, bool]]:
        for remap in self._snapshot.remaps.values():
            yield remap.spec.incident, is_open(remap)
        for kvnode in self._snapshot.kvnodes.values():
            for entry in kvnode.spec.quarantine:
                yield entry.incident, True


def _beginning(incident: str) -> int:
    """Return the second of an incident's beginning; one that nobody of ours wrote began at none."""
    text = incident.partition("-")[2]
    try:
        return int(text, 16)
    except ValueError:
        return -1
