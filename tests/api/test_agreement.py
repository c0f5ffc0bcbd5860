"""Models and schemas agree: what one accepts the other does, but for the CEL rules."""

from __future__ import annotations

import re
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # the package ships no types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from kvpool.api import KINDS
from kvpool.api.schema import Model, resource_of
from tools.crdgen.definition import root_schema

Node = dict[str, Any]
SPECS = {resource_of(model).kind: (model, root_schema(model)["properties"]["spec"]) for model in KINDS}
STATUSES = {resource_of(model).kind: (model, root_schema(model)["properties"]["status"]) for model in KINDS}
ODD = st.sampled_from([0, -1, 2**31, True, "", "x", "-1Gi", "0/0", "Enforce", [], {}, ["x"], {"name": "x"}])
FEW_EXAMPLES = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


def fitting(node: Node, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that the schema accepts."""
    if node.get("x-kubernetes-preserve-unknown-fields"):
        return st.just({"anything": ["goes"]})
    if "enum" in node:
        return st.sampled_from(node["enum"])
    match node["type"]:
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(node.get("minimum", -(2**31)), node.get("maximum", 2**40))
        case "string":
            return _text(node)
        case "array":
            few = min(node["maxItems"], 2)
            return st.lists(fitting(node["items"], depth + 1), min_size=node.get("minItems", 0), max_size=few)
        case _:
            return _objects(node, depth)


def _text(node: Node) -> st.SearchStrategy[str]:
    low, high = node.get("minLength", 0), node["maxLength"]
    if "pattern" in node:
        # What a `$` of Python lets through before a line break, RE2 does not.
        pattern = re.compile(node["pattern"].removesuffix("$") + r"\Z")
        return st.from_regex(pattern, alphabet=st.characters(max_codepoint=126, min_codepoint=32)).filter(
            lambda text: low <= len(text) <= high
        )
    return st.text("abc09-./ ", min_size=low, max_size=min(high, low + 8))


def _objects(node: Node, depth: int) -> st.SearchStrategy[Node]:
    if "additionalProperties" in node:
        keys = st.from_regex(r"[a-z]{1,4}\Z")
        return st.dictionaries(keys, fitting(node["additionalProperties"], depth + 1), max_size=2)
    required = set(node.get("required", []))
    fields = {name: fitting(child, depth + 1) for name, child in node["properties"].items()}
    return st.fixed_dictionaries(
        {name: strategy for name, strategy in fields.items() if name in required},
        optional={name: strategy for name, strategy in fields.items() if name not in required},
    )


@st.composite
def nearly_fitting(draw: st.DrawFn, node: Node) -> object:
    """A value the schema accepts, with up to two leaves or branches replaced by something odd."""
    value = draw(fitting(node))
    for _ in range(draw(st.integers(0, 2))):
        value = _spoilt(draw, value)
    return value


def _spoilt(draw: st.DrawFn, value: object) -> object:
    if isinstance(value, dict) and value and draw(st.integers(0, 4)):
        name = draw(st.sampled_from(sorted(value)))
        return value | {name: _spoilt(draw, value[name])}
    if isinstance(value, list) and value and draw(st.integers(0, 4)):
        return [_spoilt(draw, value[0]), *value[1:]]
    return draw(ODD)


def parsed(model: type[Model], **parts: object) -> Model:
    return model.parse({"metadata": {"name": "x"}, "spec": {}, **parts})


def written(model: Model, part: str) -> object:
    return model.dump()[part]


def accepts(node: Node, value: object) -> bool:
    return bool(jsonschema.Draft202012Validator(node).is_valid(value))


@pytest.mark.parametrize("kind", SPECS)
@FEW_EXAMPLES
@given(data=st.data())
def test_what_a_model_holds_its_schema_accepts(kind: str, data: st.DataObject) -> None:
    model, node = SPECS[kind]
    try:
        held = parsed(model, spec=data.draw(nearly_fitting(node)))
    except ValidationError:
        return
    spec = written(held, "spec")
    assert accepts(node, spec), spec


@pytest.mark.parametrize("kind", SPECS)
@FEW_EXAMPLES
@given(data=st.data())
def test_what_the_schema_accepts_the_model_reads_and_writes_back(kind: str, data: st.DataObject) -> None:
    model, node = SPECS[kind]
    spec = data.draw(fitting(_without_later_values(node)))
    held = parsed(model, spec=spec)
    assert parsed(model, spec=written(held, "spec")) == held


@pytest.mark.parametrize("kind", STATUSES)
@FEW_EXAMPLES
@given(data=st.data())
def test_what_the_schema_of_a_status_accepts_the_model_reads(kind: str, data: st.DataObject) -> None:
    model, node = STATUSES[kind]
    spec = data.draw(fitting(_without_later_values(SPECS[kind][1])))
    held = parsed(model, spec=spec, status=data.draw(fitting(node)))
    assert accepts(node, written(held, "status"))


@pytest.mark.parametrize("kind", SPECS)
@FEW_EXAMPLES
@given(data=st.data())
def test_a_newer_operators_fields_are_read_over_at_every_level(kind: str, data: st.DataObject) -> None:
    model, node = SPECS[kind]
    spec = data.draw(fitting(_without_later_values(node)))
    assert parsed(model, spec=_with_unknown_fields(spec, node)) == parsed(model, spec=spec)


def test_our_own_writes_may_not_have_unknown_fields() -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        KINDS[0].model_validate({"metadata": {}, "spec": {"tiers": [], "teirs": []}})


def _with_unknown_fields(value: object, node: Node) -> object:
    if isinstance(value, list) and "items" in node:
        return [_with_unknown_fields(item, node["items"]) for item in value]
    if isinstance(value, dict) and "properties" in node:
        known = {name: _with_unknown_fields(inner, node["properties"][name]) for name, inner in value.items()}
        return known | {"fieldOfTomorrow": {"a": 1}}
    return value


def _without_later_values(node: Any) -> Any:  # noqa: ANN401 - a JSON value
    """The schema without the enumeration values that a CEL rule refuses as not supported yet."""
    if isinstance(node, list):
        return [_without_later_values(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {name: _without_later_values(child) for name, child in node.items()}
    rules = node.get("x-kubernetes-validations", [])
    if isinstance(rules, list) and "enum" in node and isinstance(node["enum"], list):
        refused = {
            value
            for rule in rules
            if rule["rule"].startswith("!(self in [")
            for value in re.findall(r"'(\w+)'", rule["rule"])
        }
        kept["enum"] = [value for value in node["enum"] if value not in refused]
    return kept
