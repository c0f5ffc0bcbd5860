"""Writes that must happen on exactly the state they were decided on, or not at all.

Every function returns the server's answer, so that the caller can put it into the fact store before it
plans again. A lost race is Conflict; nothing here retries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvpool.cluster.resources import Obj, Resource, Target
from kvpool.cluster.rest import DEFAULT_TIMEOUT_SECONDS, Rest, Verb

Operation = Mapping[str, Any]
"""One JSON-patch operation: `op`, `path` and, but for `remove`, `value`."""


async def create(
    rest: Rest,
    resource: Resource,
    manifest: Mapping[str, Any],
    *,
    manager: str,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> Obj:
    """Create an object; `apiVersion` and `kind` are filled in.

    Raises ApiError: AlreadyExists when the name is taken, Terminal for unknown or invalid fields.
    """
    target = resource.at(manifest["metadata"].get("namespace"))
    body = {"apiVersion": resource.api_version, "kind": resource.kind, **manifest}
    query = _as(manager)
    return await rest.request(Verb.CREATE, target, query=query, body=body, timeout_seconds=timeout_seconds)


async def replace(
    rest: Rest,
    resource: Resource,
    manifest: Mapping[str, Any],
    *,
    manager: str,
    sub: str | None = None,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> Obj:
    """Replace an object, decided on its metadata.resourceVersion.

    Raises ValueError without a resourceVersion (the write would be unconditional), ApiError: Conflict when
    the object has moved on, Gone when it does not exist.
    """
    if not manifest["metadata"].get("resourceVersion"):
        raise ValueError(f"replace {resource.of(manifest, sub)}: the manifest names no resourceVersion")
    body = {"apiVersion": resource.api_version, "kind": resource.kind, **manifest}
    target, query = resource.of(manifest, sub), _as(manager)
    return await rest.request(Verb.UPDATE, target, query=query, body=body, timeout_seconds=timeout_seconds)


async def merge_guarded(
    rest: Rest,
    target: Target,
    changes: Mapping[str, Any],
    *,
    resource_version: str,
    manager: str,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> Obj:
    """Merge `changes` (JSON merge patch: null removes, lists are replaced) into one resourceVersion.

    This is the compare-and-swap for deciding writes on claims and slots. Raises ValueError for an empty
    resource_version, ApiError: Conflict when the object has moved on.
    """
    if not resource_version:
        raise ValueError(f"patch {target}: an empty resourceVersion would make the write unconditional")
    metadata = {**changes.get("metadata", {}), "resourceVersion": resource_version}
    body, query = {**changes, "metadata": metadata}, _as(manager)
    return await rest.request(
        Verb.MERGE_PATCH, target, query=query, body=body, timeout_seconds=timeout_seconds
    )


async def json_patch(
    rest: Rest,
    target: Target,
    operations: Sequence[Operation],
    *,
    manager: str,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> Obj:
    """Send a JSON patch. Raises ApiError: Conflict when one of its `test` operations fails."""
    query, body = _as(manager), list(operations)
    return await rest.request(
        Verb.JSON_PATCH, target, query=query, body=body, timeout_seconds=timeout_seconds
    )


async def remove_finalizer(rest: Rest, resource: Resource, obj: Obj, finalizer: str, *, manager: str) -> Obj:
    """Take our finalizer off the object as it was read; without a request when it is not there.

    The answer to removing the last finalizer of a deleted object is that object, although it is gone.
    Others' finalizers are neither lost nor revived. Raises ApiError: Conflict when the list of finalizers
    has changed since or the object is another incarnation, Gone when the object does not exist.
    """
    operations = finalizer_removed(obj["metadata"], finalizer)
    if not operations:
        return obj
    return await json_patch(rest, resource.of(obj), operations, manager=manager)


def finalizer_removed(metadata: Mapping[str, Any], finalizer: str) -> list[Operation]:
    """The JSON patch that removes `finalizer` from this incarnation's list; empty when it is not there."""
    present = list(metadata.get("finalizers") or ())
    if finalizer not in present:
        return []
    path = f"/metadata/finalizers/{present.index(finalizer)}"
    ours = {"op": "test", "path": path, "value": finalizer}
    return [_same_incarnation(metadata), ours, {"op": "remove", "path": path}]


async def delete(
    rest: Rest,
    target: Target,
    *,
    uid: str,
    resource_version: str | None = None,
    grace_seconds: int | None = None,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> Obj | None:
    """Delete one incarnation (UID) of an object, its dependents in the background.

    Returns the object where it lingers (finalizers, grace), None where it is gone. Raises ApiError: Gone
    when there was none, Conflict when the name belongs to another UID or, with `resource_version`, the
    object has moved.
    """
    preconditions = {"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {})
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": preconditions,
        "propagationPolicy": "Background",
    }
    if grace_seconds is not None:
        body["gracePeriodSeconds"] = grace_seconds
    answer = await rest.request(Verb.DELETE, target, body=body, timeout_seconds=timeout_seconds)
    return None if answer.get("kind") == "Status" else answer


def _as(manager: str) -> dict[str, str]:
    """Query of a write: who owns the fields, and that unknown ones are refused instead of dropped."""
    return {"fieldManager": manager, "fieldValidation": "Strict"}


def _same_incarnation(metadata: Mapping[str, Any]) -> Operation:
    return {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}
