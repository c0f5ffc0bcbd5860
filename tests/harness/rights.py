"""Rights to the API: what roles grant, and what the audit log shows of their use."""

from __future__ import annotations

from collections.abc import Iterable

from devcluster.audit import AuditRecord
from devcluster.rest import JsonObject

Right = tuple[str, str, str]
"""API group, resource (with its sub-resource), verb."""
FORBIDDEN = 403
CREATED = 201


def granted(*roles: JsonObject) -> set[Right]:
    """Every right that Roles and ClusterRoles give."""
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(records: Iterable[AuditRecord]) -> set[Right]:
    """Every right that requests made use of; whether the object was there is another matter.

    An apply is a patch in the log; one that makes its object needs the right to create it as well.
    """
    return {
        (one.api_group, "/".join(filter(None, (one.resource, one.subresource))), verb)
        for one in records
        if one.code != FORBIDDEN
        for verb in ((one.verb, "create") if one.code == CREATED else (one.verb,))
    }


def refused(records: Iterable[AuditRecord]) -> list[str]:
    """Requests that somebody had no right to."""
    return [str(one) for one in records if one.code == FORBIDDEN]
