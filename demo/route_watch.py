"""Watches from outside which weights the gateway works with: the route's object, and its data plane."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from demo.engines import NAMESPACE
from devcluster.rest import Api, JsonObject

GROUP = "chat"
OUTPUT = "edge"
ROUTE = f"{GROUP}-{OUTPUT}"
REVISION = "kvpool.dev/route-revision"
PROOF = f"/.well-known/kvpool/{NAMESPACE}/{GROUP}/{OUTPUT}"
ROUTES = f"/apis/gateway.networking.k8s.io/v1/namespaces/{NAMESPACE}/httproutes"
PERIOD_SECONDS = 0.03
ASK_SECONDS = 2.0


@dataclass(frozen=True)
class Carried:
    """Weights that the data plane was first seen to work with at `seen_at` (monotonic seconds)."""

    revision: int
    weights: dict[str, int]
    """By slot."""
    seen_at: float


def rise(steps: Sequence[Carried], slot: str) -> list[int]:
    """The slot's weights from when it first got nothing, each change once; empty when it never did."""
    weights = [weight for weight, _ in groupby(step.weights.get(slot, 0) for step in steps)]
    return weights[weights.index(0) :] if 0 in weights else []


class RouteWatch:
    """Follows the route and asks the gateway; a revision counts once the data plane itself answers with it.

    `api` speaks as somebody who may watch routes; `gateway_url` is where the gateway listens.
    """

    def __init__(self, api: Api, gateway_url: str) -> None:
        self._api = api
        self._gateway = urllib.parse.urlsplit(gateway_url).netloc
        self._written: dict[int, dict[str, int]] = {}
        self._answered: dict[int, float] = {}
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(work,), daemon=True)
            for work in (self._follow, self._ask)
        ]

    def __enter__(self) -> RouteWatch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(2 * ASK_SECONDS)

    def carried(self) -> list[Carried]:
        """Every revision that was seen in force, in order."""
        return [
            Carried(revision, self._written[revision], seen_at)
            for revision, seen_at in sorted(self._answered.items())
            if revision in self._written
        ]

    def newest(self) -> Carried | None:
        """The weights in force now; None before the route was first seen."""
        carried = self.carried()
        return carried[-1] if carried else None

    def zero_since(self, slot: str, instant: float) -> float | None:
        """When the slot was first seen to get nothing at or after `instant`; None if it was not."""
        for seen in self.carried():
            if seen.seen_at >= instant and seen.weights.get(slot, 0) == 0:
                return seen.seen_at
        return None

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self._ended.wait(PERIOD_SECONDS):
            try:
                work()
            except (OSError, http.client.HTTPException):
                continue  # the gateway or the API did not answer, or had nothing to say: nothing was seen

    def _follow(self) -> None:
        """Read changes of the route until the stream ends or is quiet for long. Raises OSError."""
        mine = self._api.credentials
        tls = ssl.create_default_context(cafile=str(mine.ca_file))
        if mine.certificate_file is not None:
            tls.load_cert_chain(mine.certificate_file, mine.key_file)
        connection = http.client.HTTPSConnection(mine.host, mine.port, timeout=ASK_SECONDS, context=tls)
        try:
            connection.request("GET", f"{ROUTES}?watch=true")
            for line in connection.getresponse():
                self._note(json.loads(line)["object"])
                if self._ended.is_set():
                    return
        finally:
            connection.close()

    def _note(self, route: JsonObject) -> None:
        revision = route["metadata"].get("annotations", {}).get(REVISION)
        if revision is None:
            return
        self._written[int(revision)] = {
            backend["name"].removesuffix(f"-{OUTPUT}"): int(backend.get("weight", 1))
            for rule in route["spec"]["rules"]
            for backend in rule.get("backendRefs", [])
        }

    def _ask(self) -> None:
        """Ask the data plane; it answers with a redirect whose host names the revision. Raises OSError."""
        connection = http.client.HTTPConnection(self._gateway, timeout=ASK_SECONDS)
        try:
            connection.request("GET", PROOF)
            location = connection.getresponse().headers.get("Location", "")
        finally:
            connection.close()
        host = urllib.parse.urlsplit(location).hostname or ""
        number = host.removeprefix("revision-").partition(".")[0]
        if number.isdigit():
            self._answered.setdefault(int(number), time.monotonic())
