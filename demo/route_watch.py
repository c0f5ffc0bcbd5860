"""Watches from outside which weights the gateway works with: the route's object, and its data plane."""

from __future__ import annotations

import http.client
import threading
import time
import urllib.parse
from dataclasses import dataclass

from demo.engines import NAMESPACE
from devcluster.rest import Api, ApiError, JsonObject

GROUP = "chat"
OUTPUT = "edge"
ROUTE = f"{GROUP}-{OUTPUT}"
REVISION = "kvpool.dev/route-revision"
PROOF = f"/.well-known/kvpool/{NAMESPACE}/{GROUP}/{OUTPUT}"
PERIOD_SECONDS = 0.05
ASK_SECONDS = 2.0


@dataclass(frozen=True)
class Carried:
    """Weights that the data plane was first seen to work with at `seen_at` (monotonic seconds)."""

    revision: int
    weights: dict[str, int]
    """By slot."""
    seen_at: float


class RouteWatch:
    """Polls the route and the gateway; a revision counts once the data plane itself answers with it."""

    def __init__(self, api: Api, gateway_url: str) -> None:
        self._api = api
        self._gateway = urllib.parse.urlsplit(gateway_url).netloc
        self._written: dict[int, dict[str, int]] = {}
        self._carried: list[Carried] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> RouteWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(2 * ASK_SECONDS)

    def carried(self) -> list[Carried]:
        """Every revision that was seen in force, in order."""
        return list(self._carried)

    def newest(self) -> Carried | None:
        """The weights in force now; None before the route was first seen."""
        return self._carried[-1] if self._carried else None

    def zero_since(self, slot: str, instant: float) -> float | None:
        """When the slot was first seen to get nothing at or after `instant`; None if it was not."""
        for seen in self.carried():
            if seen.seen_at >= instant and seen.weights.get(slot, 0) == 0:
                return seen.seen_at
        return None

    def _loop(self) -> None:
        while not self._ended.wait(PERIOD_SECONDS):
            try:
                route = self._api.find("gateway.networking.k8s.io/v1", "HTTPRoute", ROUTE, NAMESPACE)
                if route is not None:
                    self._note(route)
                    self._look()
            except (ApiError, OSError, http.client.HTTPException):
                continue  # the gateway or the API did not answer: nothing was seen
        self._api.close()

    def _note(self, route: JsonObject) -> None:
        revision = int(route["metadata"].get("annotations", {}).get(REVISION, "0"))
        self._written[revision] = {
            backend["name"].removesuffix(f"-{OUTPUT}"): int(backend.get("weight", 1))
            for rule in route["spec"]["rules"]
            for backend in rule.get("backendRefs", [])
        }

    def _look(self) -> None:
        """Ask the data plane; it answers with a redirect whose host names the revision."""
        connection = http.client.HTTPConnection(self._gateway, timeout=ASK_SECONDS)
        try:
            connection.request("GET", PROOF)
            location = connection.getresponse().headers.get("Location", "")
        finally:
            connection.close()
        host = urllib.parse.urlsplit(location).hostname or ""
        number = host.removeprefix("revision-").partition(".")[0]
        if not number.isdigit():
            return
        revision = int(number)
        newest = self.newest()
        if revision in self._written and (newest is None or newest.revision != revision):
            self._carried.append(Carried(revision, self._written[revision], time.monotonic()))
