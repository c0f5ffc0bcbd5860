"""Rewrites pydantic's JSON schema into a Kubernetes structural schema, or says why it cannot.

A structural schema types every node outside of the logical junctors and knows neither references nor
nulls nor tuples; what each construct becomes is said at the function that handles it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from kvpool.api.schema import INT_OR_STRING, LATER, LIST_TYPE, PRESERVE_UNKNOWN, VALIDATIONS
from tools.crdgen.describe import described

Node = dict[str, Any]

INT32 = (-(2**31), 2**31 - 1)
FORMATS = {"int32", "int64", "date-time", "date", "byte", "uuid", "ipv4", "ipv6", "cidr", "hostname", "uri"}
_EMPTY_FACTORIES: tuple[Callable[[], object], ...] = (list, dict, tuple)
_HIDDEN_DEFAULT = "x-kvpool-hidden-default"
_KEY_ORDER = ("description", "type", "format", "default", "enum")
_UNION_ADVICE = (
    "write one object with a string `type` field, one optional member per variant and a CEL rule that "
    "exactly the named member is set"
)


class NotStructuralError(Exception):
    """A model says something that no structural schema can say; the message names the field and a way out."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


class _Pydantic(GenerateJsonSchema):
    """Pydantic's generator, with a mark at defaults that only the Python code would know."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        node = super().default_schema(schema)
        factory = schema.get("default_factory")
        if factory is None or factory in _EMPTY_FACTORIES:
            return node
        return node | {_HIDDEN_DEFAULT: getattr(factory, "__name__", repr(factory))}


def structural(model: type[BaseModel], leaving_out: Collection[str] = ()) -> Node:
    """The structural schema of a model, without the top-level fields in ``leaving_out`` (names as in YAML).

    Raises `NotStructuralError` with the path of the first offending field.
    """
    raw = model.model_json_schema(by_alias=True, mode="validation", schema_generator=_Pydantic)
    root = _without(raw, "$defs")
    if leaving_out and "properties" in root:
        root["properties"] = _without(root["properties"], *leaving_out)
        root["required"] = [name for name in root.get("required", []) if name not in leaving_out]
    return _Rewriter(raw.get("$defs", {})).node(root, model.__name__, ())


class _Rewriter:
    def __init__(self, definitions: Mapping[str, Node]) -> None:
        self._definitions = definitions

    def node(self, raw: Node, path: str, trail: tuple[str, ...]) -> Node:
        """Rewrite one node and everything below it; ``trail`` names the definitions we are inside of."""
        if _HIDDEN_DEFAULT in raw:
            raise NotStructuralError(
                path, f"users cannot see the default of {raw[_HIDDEN_DEFAULT]}(): give the default as a value"
            )
        raw, trail = self._inlined(raw, path, trail)
        if "oneOf" in raw or "discriminator" in raw:
            raise NotStructuralError(path, f"discriminated unions are not structural: {_UNION_ADVICE}")
        if "anyOf" in raw:
            raw = self._without_any_of(raw, path)
            if "$ref" in raw:
                return self.node(raw, path, trail)
        if raw.get(PRESERVE_UNKNOWN):
            return _ordered(_described(_plain(raw if raw.get("default") else _without(raw, "default"))))
        if raw.get(INT_OR_STRING):
            return _ordered(_described(_int_or_string(raw)))
        return _ordered(_described(self._typed(raw, path, trail)))

    def _inlined(self, raw: Node, path: str, trail: tuple[str, ...]) -> tuple[Node, tuple[str, ...]]:
        """Put the definition in place of its reference; what stands beside the reference wins over it."""
        while "$ref" in raw or ("allOf" in raw and len(raw["allOf"]) == 1):
            if "$ref" not in raw:
                raw = _merged(raw["allOf"][0], _without(raw, "allOf"))
                continue
            name = raw["$ref"].removeprefix("#/$defs/")
            if name in trail:
                raise NotStructuralError(
                    path, f"{name} contains itself: no structural schema is recursive, name the levels"
                )
            trail = (*trail, name)
            raw = _merged(self._definitions[name], _without(raw, "$ref"))
        return raw, trail

    def _without_any_of(self, raw: Node, path: str) -> Node:
        """Drop null from a union; make ``int | str`` the int-or-string pattern; refuse every other union."""
        branches = [branch for branch in raw["anyOf"] if branch.get("type") != "null"]
        beside = _without(raw, "anyOf")
        if len(branches) == 1:
            return _merged(branches[0], beside)
        by_type = {branch.get("type"): branch for branch in branches}
        if len(branches) == 2 and set(by_type) == {"integer", "string"}:
            bounds = _inclusive(by_type["integer"]) | by_type["string"]
            return _merged(_without(bounds, "type", "title", "format") | {INT_OR_STRING: True}, beside)
        raise NotStructuralError(path, f"a union of {len(branches)} is not structural: {_UNION_ADVICE}")

    def _typed(self, raw: Node, path: str, trail: tuple[str, ...]) -> Node:
        raw = _with_later_values(_one_value(raw))
        match raw.get("type"):
            case "object":
                return self._object(raw, path, trail)
            case "array":
                return self._array(raw, path, trail)
            case "integer":
                return _integer(raw)
            case "string":
                return _string(raw, path)
            case "boolean":
                return _plain(raw)
            case "number":
                raise NotStructuralError(
                    path, "floats are not portable: use an integer with a unit, or a quantity"
                )
            case other:
                raise NotStructuralError(
                    path, f"the node has no usable type ({other!r}): type it, or mark it PreserveUnknown"
                )

    def _object(self, raw: Node, path: str, trail: tuple[str, ...]) -> Node:
        node = _without(_plain(raw), "properties", "additionalProperties", "required", "default")
        values = raw.get("additionalProperties", False)
        if "properties" in raw:
            if isinstance(values, dict):
                raise NotStructuralError(
                    path, "named fields and a map in one object: give the map a field of its own"
                )
            node["properties"] = {
                name: self.node(value, f"{path}.{name}", trail) for name, value in raw["properties"].items()
            }
            if raw.get("required"):
                node["required"] = list(raw["required"])
            if raw.get("default") is not None:
                node["default"] = _complete(raw["default"], node)
        elif isinstance(values, dict) and values:
            node["additionalProperties"] = self.node(values, f"{path}.*", trail)
            if raw.get("default"):
                node["default"] = raw["default"]
        elif values is False:
            node["properties"] = {}
        else:
            raise NotStructuralError(
                path, "the map's values have no type: give one, or mark it PreserveUnknown"
            )
        return node

    def _array(self, raw: Node, path: str, trail: tuple[str, ...]) -> Node:
        if "prefixItems" in raw:
            raise NotStructuralError(
                path, "tuples of fixed length are not structural: use an object with named fields"
            )
        if not isinstance(raw.get("items"), dict) or not raw["items"]:
            raise NotStructuralError(path, "the list's items have no type: type them")
        node = _without(_plain(raw), "items", "uniqueItems", "default")
        if raw.get("uniqueItems"):
            node[LIST_TYPE] = "set"
        node["items"] = self.node(raw["items"], f"{path}[]", trail)
        if raw.get("default"):  # an empty list and an absent one mean the same: store nothing
            node["default"] = raw["default"]
        return node


def _int_or_string(raw: Node) -> Node:
    """The one union that structural schemas know; bounds of either branch stand at the node itself."""
    node = _without(_plain(_inclusive(raw)), "type", "format")
    return node | {INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}]}


def _integer(raw: Node) -> Node:
    """Integers say their width; an exclusive bound becomes the next whole number."""
    node = _plain(_inclusive(raw))
    low, high = node.get("minimum"), node.get("maximum")
    narrow = low is not None and high is not None and INT32[0] <= low and high <= INT32[1]
    return node | {"format": "int32" if narrow else "int64"}


def _string(raw: Node, path: str) -> Node:
    form = raw.get("format")
    if form is not None and form not in FORMATS:
        advice = "a pattern such as 60s" if form == "duration" else "a pattern or a bound"
        raise NotStructuralError(path, f"string format {form!r} means nothing to Kubernetes: use {advice}")
    return _plain(raw)


def _inclusive(raw: Node) -> Node:
    node = _without(raw, "exclusiveMinimum", "exclusiveMaximum")
    if "exclusiveMinimum" in raw:
        node["minimum"] = max(raw["exclusiveMinimum"] + 1, raw.get("minimum", raw["exclusiveMinimum"] + 1))
    if "exclusiveMaximum" in raw:
        node["maximum"] = min(raw["exclusiveMaximum"] - 1, raw.get("maximum", raw["exclusiveMaximum"] - 1))
    return node


def _one_value(raw: Node) -> Node:
    """A constant is an enumeration of one."""
    if "const" not in raw:
        return raw
    value = raw["const"]
    kind = "string" if isinstance(value, str) else "boolean" if isinstance(value, bool) else "integer"
    return {"type": kind} | _without(raw, "const") | {"enum": [value]}


def _with_later_values(raw: Node) -> Node:
    """The enumeration of the schema also has the values that a rule refuses as not supported yet."""
    if LATER not in raw:
        return raw
    return _without(raw, LATER) | {"enum": [*raw["enum"], *raw[LATER]]}


def _complete(default: Node, node: Node) -> Node:
    """An object's default in full: the server runs the rules on it before it fills in the children's own.

    What is empty stays out, as everywhere.
    """
    filled: Node = {}
    for name, child in node["properties"].items():
        value = default.get(name)
        value = child.get("default") if value is None else value
        if isinstance(value, dict) and "properties" in child:
            value = _complete(value, child)
        if value not in (None, [], {}):
            filled[name] = value
    return filled


def _merged(base: Node, beside: Node) -> Node:
    """Keys beside a reference or union win; CEL rules of both hold."""
    rules = [*base.get(VALIDATIONS, []), *beside.get(VALIDATIONS, [])]
    merged = base | beside
    return merged | {VALIDATIONS: rules} if rules else merged


def _described(node: Node) -> Node:
    if "description" not in node:
        return node
    return node | {"description": described(node["description"])}


def _plain(raw: Node) -> Node:
    """Without titles (they repeat the field's name), examples, and the null that stands for absent."""
    node = _without(raw, "title", "examples")
    return _without(node, "default") if node.get("default", ...) is None else node


def _without(raw: Node, *keys: str) -> Node:
    return {key: value for key, value in raw.items() if key not in keys}


def _ordered(node: Node) -> Node:
    first = {key: node[key] for key in _KEY_ORDER if key in node}
    last = {key: node[key] for key in (VALIDATIONS,) if key in node}
    return first | {key: value for key, value in node.items() if key not in first and key not in last} | last
