"""Reading from the API: one object, or a whole collection in bounded pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from kvpool.cluster.errors import Gone
from kvpool.cluster.resources import Obj, Resource, Target
from kvpool.cluster.rest import DEFAULT_TIMEOUT_SECONDS, Rest, Verb

PAGE_LIMIT = 500
"""Objects in one answer of a list: bounds the peak of the API server's memory and of ours."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a resource: everything, one namespace, or what the server-side selectors match."""

    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None
    name: str | None = None
    """The one object of that name; not together with `field_selector`."""

    def query(self) -> dict[str, str]:
        """The selectors as query parameters."""
        fields = f"metadata.name={self.name}" if self.name else self.field_selector
        named = {"labelSelector": self.label_selector, "fieldSelector": fields}
        return {name: value for name, value in named.items() if value}


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class Page:
    """One answer of a list. `resource_version` is the same for all pages of one list."""

    items: list[Obj]
    resource_version: str


async def get(rest: Rest, target: Target, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> Obj:
    """Read one object or subresource. Raises Gone where it does not exist, else ApiError."""
    return await rest.request(Verb.GET, target, timeout_seconds=timeout_seconds)


async def find(rest: Rest, target: Target, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> Obj | None:
    """Read one object; None where it does not exist. Raises ApiError."""
    try:
        return await get(rest, target, timeout_seconds=timeout_seconds)
    except Gone:
        return None


async def pages(
    rest: Rest,
    resource: Resource,
    selection: Selection = EVERYTHING,
    *,
    page_timeout_seconds: float = 30.0,
) -> AsyncIterator[Page]:
    """List in pages of at most PAGE_LIMIT objects, each with `apiVersion` and `kind` filled in.

    The list is consistent: all pages show the state at `resource_version`. Raises ApiError; Expired when
    the pages were read so slowly that the server no longer keeps that state.
    """
    target = resource.at(selection.namespace)
    query = selection.query() | {"limit": str(PAGE_LIMIT)}
    while True:
        answer = await rest.request(Verb.LIST, target, query=query, timeout_seconds=page_timeout_seconds)
        items: list[Obj] = answer.get("items") or []
        for item in items:
            # Items of built-in kinds come without these two; events of a watch have them.
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
        yield Page(items, answer["metadata"]["resourceVersion"])
        token = answer["metadata"].get("continue")
        if not token:
            return
        query["continue"] = token
