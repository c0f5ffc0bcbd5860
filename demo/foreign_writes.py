"""What the API server's audit log says that kvpool wrote on objects of others."""

from __future__ import annotations

import datetime as dt

from demo.install import NAMESPACE
from devcluster.audit import AuditLog, AuditRecord

IDENTITIES = f"system:serviceaccount:{NAMESPACE}:"
OWN_OBJECTS = {
    ("coordination.k8s.io", "leases", "kvpool-operator"),
    ("", "secrets", "kvpool-ca"),
    ("", "configmaps", "kvpool-ca"),
}
"""What it may write in its own namespace, beside its own kinds and events about them, while it only looks."""
OWN_GROUP = "kvpool.dev"


def kvpool_writes(log: AuditLog, since: dt.datetime) -> list[AuditRecord]:
    """Every write that one of kvpool's identities tried, refused ones too."""
    tried = log.writes(since=since, succeeded_only=False)
    return [record for record in tried if record.user.startswith(IDENTITIES)]


def is_foreign(record: AuditRecord) -> bool:
    """Whether the write was on somebody else's object."""
    if record.api_group == OWN_GROUP:
        return False
    if record.resource == "events":
        return not record.regarding.startswith(f"{OWN_GROUP}/")
    if (record.api_group, record.resource) == ("authentication.k8s.io", "tokenreviews"):
        return False
    if record.namespace != NAMESPACE:
        return True
    # A create names no object in the log when the server refused it.
    known = {(group, resource) for group, resource, _ in OWN_OBJECTS}
    unnamed = not record.name and record.verb == "create" and (record.api_group, record.resource) in known
    return not unnamed and (record.api_group, record.resource, record.name) not in OWN_OBJECTS
