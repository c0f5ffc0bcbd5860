"""Runs a workload through tiers, with or without an oracle that moves objects up ahead of their use."""

from collections.abc import Sequence
from typing import Protocol

from kvpool.sim.tiers.accesses import Access
from kvpool.sim.tiers.exclusive import ExclusiveTiers
from kvpool.sim.tiers.flows import Flows


class Tiers(Protocol):
    """Tiers of either kind."""

    def access(self, access: Access) -> None:
        """Serve one request."""

    def finish(self) -> Flows:
        """Return the counts."""


def replay(tiers: Tiers, accesses: Sequence[Access]) -> Flows:
    """Serve all requests in order and return what moved."""
    for access in accesses:
        tiers.access(access)
    return tiers.finish()


def replay_with_lookahead(tiers: ExclusiveTiers, accesses: Sequence[Access], ahead_ns: int) -> Flows:
    """As `replay`, but `ahead_ns` before each request an oracle moves up what it will need, without a
    limit."""
    upcoming = 0
    for access in accesses:
        while upcoming < len(accesses) and accesses[upcoming].now_ns - ahead_ns <= access.now_ns:
            coming = accesses[upcoming]
            tiers.prefetch(coming.objects, min(access.now_ns, max(0, coming.now_ns - ahead_ns)))
            upcoming += 1
        tiers.access(access)
    return tiers.finish()
