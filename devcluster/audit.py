"""The API server's audit log: the policy it is written by, and a reader of the requests in it."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EVENT_GROUPS = ("", "events.k8s.io")
READ_VERBS = frozenset({"get", "list", "watch"})
# What changes something, but not what the API server does to itself; and what Pods read.
POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"], "verbs": sorted(READ_VERBS)},
        {"level": "None", "verbs": sorted(READ_VERBS)},
        # With the body: an event's own object does not say what the event is about.
        {
            "level": "Request",
            "resources": [{"group": group, "resources": ["events"]} for group in EVENT_GROUPS],
        },
        {"level": "Metadata"},
    ],
}


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One request that the API server finished, or a watch that it let begin or refused.

    `resource` is the plural, `api_group` is empty for the core group, `subresource` is empty for the
    object itself. Times are aware; `completed_at - received_at` is what the server needed.
    """

    user: str
    verb: str
    api_group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    received_at: dt.datetime
    completed_at: dt.datetime
    user_agent: str
    regarding: str = ""
    """Of an event: the apiVersion of what it is about; empty where the log has no body of the write."""

    @property
    def succeeded(self) -> bool:
        """True when the request was accepted (2xx)."""
        return 200 <= self.code < 300

    def __str__(self) -> str:
        kind = ".".join(part for part in (self.resource, self.api_group) if part)
        sub = f"/{self.subresource}" if self.subresource else ""
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.user} {self.verb} {kind}{sub} {where}{self.name} -> {self.code}"


class AuditLog:
    """Reads the log file of one API server. The log is written before each call is answered."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def writes(
        self,
        user: str | None = None,
        since: dt.datetime | None = None,
        succeeded_only: bool = True,
    ) -> list[AuditRecord]:
        """Writes (create, update, patch, delete, deletecollection) in the order they were finished.

        For the arguments see `requests`.
        """
        return [one for one in self.requests(user, since, succeeded_only) if one.verb not in READ_VERBS]

    def requests(
        self,
        user: str | None = None,
        since: dt.datetime | None = None,
        succeeded_only: bool = True,
    ) -> list[AuditRecord]:
        """Writes of everybody and reads of ServiceAccounts, in the order they were finished.

        A watch is there when it begins, and again when it ends. `user` is a full user name
        (`system:serviceaccount:<namespace>:<name>`), `since` an aware time compared with when the call
        came in. A half-written last line is left for the next call.
        """
        if not self.path.exists():
            return []
        records = []
        for line in self.path.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            record = _record(json.loads(line))
            if record is None or (succeeded_only and not record.succeeded):
                continue
            if (user is None or record.user == user) and (since is None or record.received_at >= since):
                records.append(record)
        return records


def _record(event: dict[str, Any]) -> AuditRecord | None:
    """None for calls that name no resource, and for stages other than the end or a watch's beginning."""
    target = event.get("objectRef")
    counts = event["stage"] == "ResponseComplete" or event["verb"] == "watch"
    if target is None or not counts:
        return None
    return AuditRecord(
        user=event["user"].get("username", ""),
        verb=event["verb"],
        api_group=target.get("apiGroup", ""),
        resource=target.get("resource", ""),
        subresource=target.get("subresource", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        received_at=dt.datetime.fromisoformat(event["requestReceivedTimestamp"]),
        completed_at=dt.datetime.fromisoformat(event["stageTimestamp"]),
        user_agent=event.get("userAgent", ""),
        regarding=_regarding(event.get("requestObject") or {}) if target.get("resource") == "events" else "",
    )


def _regarding(event: dict[str, Any]) -> str:
    about = event.get("regarding") or event.get("involvedObject") or {}
    return str(about.get("apiVersion", ""))
