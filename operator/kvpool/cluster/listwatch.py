"""List and watch one resource for ever, feeding a synchronous sink.

The bulk kinds that machines write come this way: one task and one connection per resource, raw JSON, no
task per object. A watch that breaks goes on from the last resourceVersion; when that is too old the
collection is listed again and the sink is told what the list shows, because deletions in a gap are never
sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from kvpool.cluster.backoff import Backoff
from kvpool.cluster.errors import ApiError, Expired, Retryable, Throttled, from_status
from kvpool.cluster.reads import EVERYTHING, Selection, pages
from kvpool.cluster.resources import Obj, Resource
from kvpool.cluster.rest import Rest
from kvpool.cluster.store import EventType, Identity


class Sink(Protocol):
    """Where the objects go; FactStore is one. Called in the event loop, must not wait."""

    def observe(self, resource: Resource, event: EventType, obj: Obj) -> object:
        """One object was listed (as ADDED) or changed."""

    def prune(
        self,
        resource: Resource,
        listed: Collection[Identity],
        resource_version: str,
        namespace: str | None,
        name: str | None = None,
    ) -> object:
        """A list is complete: what it does not show of its scope, and is not newer than it, is deleted."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Deadlines of the two requests, in seconds.

    The server ends each watch after `server_seconds`; bookmarks come about once a minute, so a stream
    silent for `idle_seconds` is dead, whatever the load balancer between says.
    """

    list_page_seconds: float = 30.0
    server_seconds: int = 240
    idle_seconds: float = 70.0


async def list_into(
    rest: Rest,
    resource: Resource,
    sink: Sink,
    *,
    selection: Selection = EVERYTHING,
    page_timeout_seconds: float = 30.0,
    on_page: Callable[[], None] = lambda: None,
) -> str:
    """List a collection into the sink and prune what it does not show; returns the list's resourceVersion.

    ListWatch begins with this; where another watch feeds the sink, it seeds the sink before that watch
    starts and heals it when called again. Raises ApiError; the sink is not pruned then.
    """
    listed: list[Identity] = []
    version = ""
    async for page in pages(rest, resource, selection, page_timeout_seconds=page_timeout_seconds):
        on_page()
        version = page.resource_version
        for item in page.items:
            metadata = item["metadata"]
            listed.append(Identity(metadata.get("namespace"), metadata["name"], metadata["uid"]))
            sink.observe(resource, EventType.ADDED, item)
    sink.prune(resource, listed, version, selection.namespace, selection.name)
    return version


class ListWatch:
    """Keeps a sink in step with one resource.

    A sink takes each resource from one ListWatch only, because every list prunes; or single objects of it by
    name, from one each. Public attributes, for
    probes and metrics:

    - `what`: the resource, and the name of the one object, for messages;
    - `synced`: set after the first complete list;
    - `last_event_monotonic`: when the server last said anything (a page, an event, a bookmark), by `clock`;
    - `failures`: failed tries in a row, 0 while all is well; `last_error`: what the last one was;
    - `lists`: complete lists so far.
    """

    def __init__(
        self,
        rest: Rest,
        resource: Resource,
        sink: Sink,
        *,
        backoff: Backoff,
        selection: Selection = EVERYTHING,
        timing: Timing = Timing(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.resource = resource
        self.what = f"{resource} {selection.name}" if selection.name else str(resource)
        self.synced = asyncio.Event()
        self.last_event_monotonic = clock()
        self.failures = 0
        self.last_error: ApiError | None = None
        self.lists = 0
        self._rest = rest
        self._sink = sink
        self._backoff = backoff
        self._selection = selection
        self._timing = timing
        self._clock = clock
        self._version: str | None = None

    async def run(self) -> None:
        """List, watch and list again until cancelled; API errors are waited out, errors of the sink raise."""
        while True:
            try:
                if self._version is None:
                    await self._list()
                await self._watch()
            except ApiError as error:
                self._note(error)
                await asyncio.sleep(self._pause_seconds(error))

    async def _list(self) -> None:
        self._version = await list_into(
            self._rest,
            self.resource,
            self._sink,
            selection=self._selection,
            page_timeout_seconds=self._timing.list_page_seconds,
            on_page=self._heard,
        )
        self.lists += 1
        self.synced.set()

    async def _watch(self) -> None:
        """One watch, until the server ends it; raises ApiError, also where it ended without a word."""
        query = self._selection.query() | {
            "watch": "true",
            "resourceVersion": str(self._version),
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._timing.server_seconds),
        }
        target = self.resource.at(self._selection.namespace)
        heard = False
        async with self._rest.lines(target, query, idle_seconds=self._timing.idle_seconds) as batches:
            async for batch in batches:
                for line in batch:
                    self._take(*watch_event(f"watch {target}", line))
                heard = True
                self._heard()
        if not heard:
            # A server that accepts and drops every watch at once would otherwise be asked in a tight loop.
            raise Retryable(f"watch {target}", 200, "", "the stream ended before its first event")

    def _take(self, event: EventType | None, obj: Obj) -> None:
        if event is not None:
            self._sink.observe(self.resource, event, obj)
        self._version = obj["metadata"]["resourceVersion"]

    def _heard(self) -> None:
        self.last_event_monotonic = self._clock()
        self.failures = 0

    def _note(self, error: ApiError) -> None:
        self.failures += 1
        self.last_error = error
        if not isinstance(error, Retryable | Throttled):
            # History is gone, or the kind itself was, or we may not watch: only a list gives a firm footing.
            self._version = None

    def _pause_seconds(self, error: ApiError) -> float:
        if isinstance(error, Expired) and self.failures == 1:
            return 0.0
        return max(self._backoff(self.failures), error.retry_after_seconds or 0.0)


def watch_event(request: str, line: bytes) -> tuple[EventType | None, Obj]:
    """One line of a watch: what happened to which object; None for a bookmark, which only has a version.

    Raises ApiError: what an ERROR event says, Retryable for a line that is no event, as from a proxy.
    """
    try:
        event: Any = orjson.loads(line)
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            raise from_status(request, int(obj.get("code", 0)), obj)
        metadata = obj["metadata"]
        if kind == "BOOKMARK" and metadata["resourceVersion"]:
            return None, obj
        if metadata["resourceVersion"] and metadata["uid"] and metadata["name"]:
            return EventType(kind), obj
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Retryable(request, 200, "", f"a line that is no event: {error!r}") from error
    raise Retryable(request, 200, "", "an event about an object without a name, uid or resourceVersion")
