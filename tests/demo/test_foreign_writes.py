"""Which writes count as writes on somebody else's object."""

from __future__ import annotations

import datetime as dt

import pytest

from demo.foreign_writes import IDENTITIES, is_foreign
from devcluster.audit import AuditRecord

NOW = dt.datetime(2026, 1, 31, 12, 0, tzinfo=dt.UTC)


def write(
    group: str,
    resource: str,
    namespace: str = "",
    name: str = "x",
    verb: str = "patch",
    regarding: str = "",
) -> AuditRecord:
    return AuditRecord(
        user=f"{IDENTITIES}kvpool-operator",
        verb=verb,
        api_group=group,
        resource=resource,
        subresource="",
        namespace=namespace,
        name=name,
        code=200,
        received_at=NOW,
        completed_at=NOW,
        user_agent="",
        regarding=regarding,
    )


@pytest.mark.parametrize(
    "own",
    [
        write("kvpool.dev", "kvpools", "inference", "chat"),
        write("events.k8s.io", "events", "inference", verb="create", regarding="kvpool.dev/v1alpha1"),
        write("authentication.k8s.io", "tokenreviews", verb="create", name=""),
        write("coordination.k8s.io", "leases", "kvpool-system", "kvpool-operator"),
        write("", "secrets", "kvpool-system", "kvpool-ca"),
        write("", "configmaps", "kvpool-system", "kvpool-ca"),
    ],
    ids=str,
)
def test_its_own_kinds_events_about_them_lease_and_authority_are_its_own(own: AuditRecord) -> None:
    assert not is_foreign(own)


@pytest.mark.parametrize(
    "foreign",
    [
        write("events.k8s.io", "events", "inference", verb="create", regarding="v1"),
        write("events.k8s.io", "events", "inference", "about-nothing-known", verb="create"),
        write("", "events", "inference", verb="create", regarding="kvpool.development.example/v1"),
        write("", "pods", "inference", "decode-a"),
        write("gateway.networking.k8s.io", "httproutes", "inference", "engines"),
        write("", "nodes", name="node-1"),
        write("", "configmaps", "kvpool-system", "settings-of-others"),
        write("", "secrets", "inference", "kvpool-ca"),
        write("coordination.k8s.io", "leases", "kube-node-lease", "node-1"),
    ],
    ids=str,
)
def test_everything_else_is_foreign(foreign: AuditRecord) -> None:
    assert is_foreign(foreign)
