"""Checks that printer columns show fields that exist: ``kubectl get`` prints a blank for any other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kvpool.api.schema import PRESERVE_UNKNOWN
from tools.crdgen.finding import Finding

_STEP = re.compile(
    r"""\.(?P<field>[A-Za-z_]\w*)
      | \[\?\(@\.(?P<key>\w+)\s*==\s*["'](?P<value>[^"']*)["']\)\]
      | \[(?P<index>\d+|\*)\]""",
    re.VERBOSE,
)
_METADATA = {"creationTimestamp", "deletionTimestamp", "generation", "name", "namespace", "uid"}


class UnresolvedError(Exception):
    """A JSON path that leads to no field of the schema; the message says where it ends."""


def column_findings(columns: Sequence[Mapping[str, Any]], root: Mapping[str, Any]) -> Iterator[Finding]:
    """Columns whose path leads nowhere or to an object, whose name is taken, and an Age that is not last."""
    names = [column["name"] for column in columns]
    for column in columns:
        place = f"column {column['name']}"
        if names.count(column["name"]) > 1:
            yield Finding(place, "column", "the name stands twice")
        try:
            node = resolved(column["jsonPath"], root)
        except UnresolvedError as problem:
            yield Finding(place, "column", str(problem))
            continue
        if node.get("type") in ("object", "array"):
            yield Finding(place, "column", f"{column['jsonPath']} is no scalar")
    if columns and names[-1] != "Age":
        yield Finding("columns", "column", "Age stands last")


def resolved(path: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The node that a JSON path leads to; raises `UnresolvedError`."""
    node, position = root, 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise UnresolvedError(f"{path} cannot be read from {path[position:]!r} on")
        node = _stepped(node, step, path)
        position = step.end()
        if path.startswith(".metadata"):
            return _metadata_field(path)
        if node.get(PRESERVE_UNKNOWN):
            return {"type": "string"}
    return node


def _metadata_field(path: str) -> Mapping[str, Any]:
    name = path.removeprefix(".metadata.")
    if name not in _METADATA:
        raise UnresolvedError(f"{path} is not one of metadata's {', '.join(sorted(_METADATA))}")
    return {"type": "string"}


def _stepped(node: Mapping[str, Any], step: re.Match[str], path: str) -> Mapping[str, Any]:
    if field := step["field"]:
        child = node.get("properties", {}).get(field, node.get("additionalProperties"))
        if not isinstance(child, Mapping):
            raise UnresolvedError(f"{path} ends at {field!r}: there is no such field")
        return child
    items = node.get("items")
    if not isinstance(items, Mapping):
        raise UnresolvedError(f"{path} takes an item of what is no list")
    if (key := step["key"]) and key not in items.get("properties", {}):
        raise UnresolvedError(f"{path} looks items up by {key!r}: they have no such field")
    return items
