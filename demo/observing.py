"""Step: kvpool looks at the deployment, and writes on nobody else's objects."""

from __future__ import annotations

import datetime as dt

from demo import install, places
from demo.cluster import RACKS, Cluster
from demo.commands import Commands
from demo.engines import NAMESPACE
from demo.foreign_writes import is_foreign, kvpool_writes
from demo.moves import KVPOOL
from demo.screen import Screen
from devcluster.audit import AuditRecord
from kvpool.api.quantity import parse_quantity

SEEN_SECONDS = 120.0


def install_to_look(cluster: Cluster, commands: Commands) -> dt.datetime:
    """Install in mode Observe, apply the samples; return when it began. Raises CommandFailedError."""
    since = dt.datetime.now(dt.UTC)
    install.install(cluster, commands)
    install.wait_until_ready(commands)
    commands.kubectl("apply", f"--filename={places.SAMPLES.relative_to(places.CHART.parents[1])}")
    return since


def look(cluster: Cluster, commands: Commands, foreign_bytes: int) -> None:
    """Wait until kvpool sees the engines' own memory and every node, and show its status.

    Raises TimeoutError or CommandFailedError.
    """
    api = cluster.plane.admin

    def seen() -> bool:
        pool = api.get(KVPOOL, "KVPool", "chat", NAMESPACE)
        budget = api.get(KVPOOL, "TierBudget", "gpu")
        counted = sum(parse_quantity(tier["foreign"]) for tier in pool["status"]["tiers"])
        return counted == foreign_bytes and budget["status"]["nodes"]["ready"] == len(RACKS)

    api.wait_until(seen, SEEN_SECONDS, "kvpool to see what is there")
    commands.kvpool("status")


def foreign_writes(cluster: Cluster, screen: Screen, since: dt.datetime) -> list[AuditRecord]:
    """Read the audit log; return and show the writes on objects of others."""
    writes = kvpool_writes(cluster.plane.audit, since)
    foreign = [record for record in writes if is_foreign(record)]
    screen.say(f"The audit log has {len(writes)} writes of kvpool's identities since it was installed.")
    for record in foreign:
        screen.note(f"        {record}")
    screen.expect(not foreign, f"{len(foreign)} of them on objects of others")
    return foreign
