"""What the API server remembers since a moment: events, and every version of an object."""

from __future__ import annotations

import json
from dataclasses import dataclass

from devcluster.rest import Api, JsonObject

EVENTS = "events.k8s.io/v1"


@dataclass(frozen=True)
class Since:
    """Everything that was written after this was made; nothing older is ever shown."""

    api: Api
    version: int

    @classmethod
    def now(cls, api: Api) -> Since:
        """From this moment on."""
        path = api.resource(EVENTS, "Event").path()
        newest = api.call("GET", path, query={"limit": "1"})["metadata"]["resourceVersion"]
        return cls(api, int(newest))

    def events(self) -> list[JsonObject]:
        """Anybody's events: written, or said once more, since then."""
        found = self.api.list(EVENTS, "Event")
        return [one for one in found if int(one["metadata"]["resourceVersion"]) > self.version]

    def said_of(self, unit: str, reason: str) -> list[JsonObject]:
        """kvpool's events of a reason that name a unit."""
        return [
            one
            for one in self.events()
            if one.get("reportingController", "").startswith("kvpool")
            and one["reason"] == reason
            and unit in one.get("note", "")
        ]

    def events_about(self, kind: str, name: str, reason: str) -> list[JsonObject]:
        """Anybody's events of a reason about an object."""
        return [
            one
            for one in self.events()
            if one["reason"] == reason
            and one["regarding"]["kind"] == kind
            and one["regarding"]["name"] == name
        ]

    def versions(self, api_version: str, kind: str, name: str) -> list[JsonObject]:
        """Every version of an object that was written since then, oldest first."""
        query = {
            "watch": "1",
            "resourceVersion": str(self.version),
            "fieldSelector": f"metadata.name={name}",
            "timeoutSeconds": "1",
        }
        answer = self.api.request("GET", self.api.resource(api_version, kind).path(), query=query)
        changes = [json.loads(line) for line in answer.text.splitlines()]
        assert all(change["type"] != "ERROR" for change in changes), changes
        return [change["object"] for change in changes]
