"""Operators that are deleted all at once, and are surely dead before anybody looks."""

from __future__ import annotations

from tests.e2e.kernel import runs
from tests.e2e.site import RealSite
from tests.harness.waiting import wait_until

DEAD_SECONDS = 20.0


def kill_operators(site: RealSite) -> list[str]:
    """Delete every operator Pod without grace; returns their UIDs when none of their processes is left."""
    operators = site.pods_of("operator")
    for operator in operators:
        site.delete_pod(operator, grace_seconds=0)
    wait_until(
        lambda: not any(runs(site, operator) for operator in operators), DEAD_SECONDS, "the operators to die"
    )
    return [operator["metadata"]["uid"] for operator in operators]
