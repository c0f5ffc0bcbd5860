"""Checks a CustomResourceDefinition against the rules of the API server and of kvpool's API style.

The API server is the final judge (the tests ask it); this check runs without one, in milliseconds, and also
holds what the server lets pass: every string, list and map is bounded, every list says how it merges.
Rule names follow the Kubernetes documentation of structural schemas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # the package ships no types

from kvpool.api.schema import INT_OR_STRING, LIST_MAP_KEYS, LIST_TYPE, PRESERVE_UNKNOWN, VALIDATIONS
from tools.crdgen.cel_rules import cel_findings
from tools.crdgen.columns import column_findings
from tools.crdgen.finding import Finding

Node = Mapping[str, Any]

_JUNCTORS = ("allOf", "anyOf", "oneOf", "not")
_EXTENSIONS = {
    "x-kubernetes-embedded-resource",
    INT_OR_STRING,
    LIST_MAP_KEYS,
    LIST_TYPE,
    "x-kubernetes-map-type",
    PRESERVE_UNKNOWN,
    "x-kubernetes-validations",
}
_VALUE_KEYS = {
    *("enum", "format", "maxItems", "maxLength", "maxProperties", "maximum", "exclusiveMaximum"),
    *("minItems", "minLength", "minProperties", "minimum", "exclusiveMinimum", "multipleOf"),
    *("pattern", "required", "uniqueItems"),
}
_STRUCTURE_KEYS = {
    "type",
    "items",
    "properties",
    "additionalProperties",
    "default",
    "description",
    "nullable",
}
_KNOWN = _STRUCTURE_KEYS | _VALUE_KEYS | _EXTENSIONS | set(_JUNCTORS) | {"title", "example", "externalDocs"}
_NOT_IN_JUNCTORS = {"description", "type", "default", "additionalProperties", "nullable"}
_INT_OR_STRING_PATTERN = [{"type": "integer"}, {"type": "string"}]
_TYPES = {"array", "boolean", "integer", "object", "string"}
_SCALARS = {"boolean", "integer", "string"}
_BOUNDED_FORMATS = {"date", "date-time", "uuid", "ipv4", "ipv6", "cidr", "duration"}


def findings(crd: Mapping[str, Any]) -> list[Finding]:
    """Everything wrong with a CRD, in the order of its text; an empty list means it is fit to apply."""
    found: list[Finding] = []
    for version in crd["spec"]["versions"]:
        root = version["schema"]["openAPIV3Schema"]
        found += schema_findings(root)
        found += _undescribed(root)
        found += column_findings(version.get("additionalPrinterColumns", []), root)
    return found


def schema_findings(root: Node) -> list[Finding]:
    """Everything wrong with a schema, from its root down."""
    found: list[Finding] = []
    for visit in walk(root):
        found += _check(visit)
    return found


def _undescribed(root: Node) -> Iterator[Finding]:
    """``kubectl explain`` says "no description" of a field that has none."""
    for visit in walk(root):
        field = visit.path.rpartition(".")[2]
        named = visit.path.startswith((".spec.", ".status.")) and field != "*" and not field.endswith("[]")
        if named and not visit.node.get("description"):
            yield Finding(visit.path, "undescribed", "the field needs a docstring")


@dataclass(frozen=True)
class Visit:
    """A node, where it stands, and how many times it can occur in one object (the product of the bounds)."""

    path: str
    node: Node
    occurrences: int = 1
    correlatable: bool = True


def walk(root: Node) -> Iterator[Visit]:
    """Every node outside the logical junctors, parents first."""
    pending = [Visit("", root)]
    while pending:
        visit = pending.pop(0)
        yield visit
        pending = [*_children(visit), *pending]


def _children(visit: Visit) -> Iterator[Visit]:
    node = visit.node
    for name, child in _dict(node.get("properties")).items():
        yield Visit(f"{visit.path}.{name}", child, visit.occurrences, visit.correlatable)
    if isinstance(items := node.get("items"), Mapping):
        by_key = visit.correlatable and node.get(LIST_TYPE) == "map"
        yield Visit(f"{visit.path}[]", items, visit.occurrences * node.get("maxItems", 10_000), by_key)
    if isinstance(values := node.get("additionalProperties"), Mapping):
        many = visit.occurrences * node.get("maxProperties", 10_000)
        yield Visit(f"{visit.path}.*", values, many, visit.correlatable)


def _check(visit: Visit) -> Iterator[Finding]:
    path, node = visit.path or ".", visit.node
    yield from _keywords(path, node)
    yield from _typed(path, node)
    yield from _junctors(path, node)
    if visit.path == ".metadata":
        yield from _metadata(path, node)
    elif not visit.path or visit.path.split(".")[1] not in ("apiVersion", "kind", "metadata"):
        yield from _bounds(path, node)
    yield from _list_type(path, node)
    yield from _default(path, node)
    yield from cel_findings(path, node, visit.occurrences, correlatable=visit.correlatable)


def _keywords(path: str, node: Node) -> Iterator[Finding]:
    for key in node:
        if key not in _KNOWN:
            yield Finding(path, "forbidden-keyword", f"{key} is no keyword of a CRD schema")
    if "title" in node:
        yield Finding(path, "title", "titles repeat the field's name: drop it")
    if node.get("uniqueItems"):
        yield Finding(path, "unique-items", f"uniqueItems must not be true: use {LIST_TYPE}: set")
    for key in ("exclusiveMinimum", "exclusiveMaximum"):
        if key in node and not isinstance(node[key], bool):
            yield Finding(path, "exclusive-bound", f"{key} is a boolean beside the bound in OpenAPI 3.0")
    values = node.get("additionalProperties")
    if isinstance(values, bool):
        yield Finding(path, "additional-properties", "must be a schema: pruning drops unknown fields already")
    elif values is not None and "properties" in node:
        yield Finding(path, "additional-properties", "excludes properties")


def _typed(path: str, node: Node) -> Iterator[Finding]:
    """Rule 1: every node outside of junctors has a type, or says that it is open."""
    kind = node.get("type")
    if (isinstance(kind, str) and kind in _TYPES) or (
        kind is None and (node.get(INT_OR_STRING) or node.get(PRESERVE_UNKNOWN))
    ):
        return
    if kind == "number":
        yield Finding(path, "float", "floats are not portable")
        return
    yield Finding(path, "rule-1-type", f"type {kind!r} is none of {', '.join(sorted(_TYPES))}")


def _junctors(path: str, node: Node) -> Iterator[Finding]:
    for junctor in _JUNCTORS:
        if junctor not in node:
            continue
        branches = node[junctor] if isinstance(node[junctor], list) else [node[junctor]]
        if node.get(INT_OR_STRING) and junctor == "anyOf" and branches == _INT_OR_STRING_PATTERN:
            continue
        for branch in branches:
            yield from _within_junctor(f"{path}<{junctor}>", branch, node)


def _within_junctor(path: str, branch: Node, outside: Node) -> Iterator[Finding]:
    """Rules 2 and 3: a branch only narrows fields described outside, and describes nothing itself."""
    for key in sorted(_NOT_IN_JUNCTORS & set(branch)):
        yield Finding(path, "rule-3-junctor", f"{key} must not stand inside a logical junctor")
    for name, child in _dict(branch.get("properties")).items():
        described = _dict(outside.get("properties")).get(name)
        if described is None:
            yield Finding(
                f"{path}.{name}", "rule-2-junctor", "the field is not described outside the junctor"
            )
        else:
            yield from _within_junctor(f"{path}.{name}", child, described)
    if "items" in branch:
        if "items" not in outside:
            yield Finding(f"{path}[]", "rule-2-junctor", "the items are not described outside the junctor")
        else:
            yield from _within_junctor(f"{path}[]", branch["items"], outside["items"])


def _metadata(path: str, node: Node) -> Iterator[Finding]:
    """Rule 4: only the name may be narrowed."""
    if strange := set(_dict(node.get("properties"))) - {"name", "generateName"}:
        yield Finding(path, "rule-4-metadata", f"must not narrow {', '.join(sorted(strange))}")


def _bounds(path: str, node: Node) -> Iterator[Finding]:
    """CEL costs are estimated from the bounds: one unbounded field and a whole CRD is refused."""
    if node.get(PRESERVE_UNKNOWN):
        return
    kind = node.get("type")
    bounded_string = "maxLength" in node or "enum" in node or node.get("format") in _BOUNDED_FORMATS
    if (kind == "string" or (node.get(INT_OR_STRING) and kind is None)) and not bounded_string:
        yield Finding(path, "unbounded", "the string needs maxLength or enum")
    if kind == "array" and "maxItems" not in node:
        yield Finding(path, "unbounded", "the list needs maxItems")
    if isinstance(node.get("additionalProperties"), Mapping) and "maxProperties" not in node:
        yield Finding(path, "unbounded", "the map needs maxProperties")


def _list_type(path: str, node: Node) -> Iterator[Finding]:
    if node.get("type") != "array":
        return
    items = _dict(node.get("items"))
    match node.get(LIST_TYPE):
        case "map":
            yield from _list_map(path, node, items)
        case "set":
            if items.get("type") not in _SCALARS:
                yield Finding(path, "list-type", "the items of a set must be scalars")
        case "atomic":
            return
        case other:
            yield Finding(path, "list-type", f"{LIST_TYPE} must be map, set or atomic, not {other!r}")


def _list_map(path: str, node: Node, items: Node) -> Iterator[Finding]:
    keys = node.get(LIST_MAP_KEYS)
    if not keys:
        yield Finding(path, "list-type", f"a map-like list needs {LIST_MAP_KEYS}")
        return
    for key in keys:
        field = _dict(items.get("properties")).get(key)
        if field is None or field.get("type") not in _SCALARS:
            yield Finding(path, "list-type", f"the key {key} is no scalar field of the items")
        elif key not in items.get("required", []) and "default" not in field:
            yield Finding(path, "list-type", f"the key {key} must be required or have a default")


def _default(path: str, node: Node) -> Iterator[Finding]:
    if "default" not in node:
        return
    if node["default"] is None and not node.get("nullable"):
        yield Finding(path, "default", "null is dropped unless the node is nullable")
        return
    value = _with_defaults(node["default"], node)
    for error in jsonschema.Draft202012Validator(dict(node)).iter_errors(value):
        yield Finding(path, "default", f"{node['default']!r} does not fit its own node: {error.message}")
    if value != node["default"] and _has_rules(node):
        yield Finding(path, "default", "rules see a default before the children's own are filled in: say all")
    for unknown in _unknown(node["default"], node, ""):
        yield Finding(path, "default", f"{unknown} would be pruned: the node has no such field")


def _has_rules(node: Node) -> bool:
    return any(visit.node.get(VALIDATIONS) for visit in walk(node))


def _with_defaults(value: Any, node: Node) -> Any:  # noqa: ANN401 - a JSON value
    """What the API server makes of a default: the children's own defaults are filled in."""
    properties = _dict(node.get("properties"))
    if not isinstance(value, dict) or not properties:
        return value
    filled = {name: child["default"] for name, child in properties.items() if "default" in child} | value
    return {name: _with_defaults(inner, properties.get(name, {})) for name, inner in filled.items()}


def _unknown(value: Any, node: Node, path: str) -> Iterator[str]:  # noqa: ANN401 - a JSON value
    if isinstance(value, dict) and "properties" in node and not node.get(PRESERVE_UNKNOWN):
        for name, inner in value.items():
            child = node["properties"].get(name)
            if child is None:
                yield f"{path}.{name}"
            else:
                yield from _unknown(inner, child, f"{path}.{name}")
    if isinstance(value, list) and isinstance(node.get("items"), Mapping):
        for inner in value:
            yield from _unknown(inner, node["items"], f"{path}[]")


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
