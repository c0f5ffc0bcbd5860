"""The structural check: one bad schema for each of its rules, and none of its findings on a good one."""

from __future__ import annotations

from typing import Any

import pytest

from tools.crdgen.structural import findings, schema_findings

STRING: dict[str, Any] = {"type": "string", "maxLength": 8}
GOOD: dict[str, Any] = {
    "type": "object",
    "required": ["names"],
    "properties": {
        "name": STRING,
        "size": {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": 16,
        },
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": STRING, "maxProperties": 4},
        "lease": {
            "type": "object",
            "default": {"seconds": 3},
            "properties": {"seconds": {"type": "integer", "default": 3, "minimum": 1}},
        },
        "names": {
            "type": "array",
            "maxItems": 4,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": STRING}},
            "x-kubernetes-validations": [
                {"rule": "self.all(one, one.name != '(')", "message": "no brackets"},
                {"rule": "oldSelf.size() <= self.size()", "messageExpression": "'%d'.format([self.size()])"},
            ],
        },
    },
}


def items(list_type: str | None, of: dict[str, Any], **more: object) -> dict[str, Any]:
    typed = {} if list_type is None else {"x-kubernetes-list-type": list_type}
    return {"type": "array", "maxItems": 4, "items": of, **typed, **more}


def rule(expression: str, **more: object) -> dict[str, Any]:
    return STRING | {"x-kubernetes-validations": [{"rule": expression, "message": "no", **more}]}


BAD: dict[str, tuple[str, dict[str, Any]]] = {
    "a reference": ("forbidden-keyword", {"$ref": "#/definitions/x", "type": "object"}),
    "definitions": ("forbidden-keyword", {"type": "object", "definitions": {}}),
    "a discriminator": ("forbidden-keyword", {"type": "object", "discriminator": {"propertyName": "type"}}),
    "pattern properties": ("forbidden-keyword", {"type": "object", "patternProperties": {".*": STRING}}),
    "a constant": ("forbidden-keyword", STRING | {"const": "x"}),
    "prefix items": ("forbidden-keyword", items("atomic", STRING, prefixItems=[STRING])),
    "a hidden marker": ("forbidden-keyword", STRING | {"x-kvpool-later": ["x"]}),
    "a title": ("title", STRING | {"title": "Name"}),
    "unique items": ("unique-items", items("set", STRING, uniqueItems=True)),
    "a numeric exclusive bound": ("exclusive-bound", {"type": "integer", "exclusiveMinimum": 0}),
    "additionalProperties false": (
        "additional-properties",
        {"type": "object", "additionalProperties": False},
    ),
    "a map with named fields": (
        "additional-properties",
        {"type": "object", "properties": {}, "additionalProperties": STRING, "maxProperties": 4},
    ),
    "no type": ("rule-1-type", {"maxLength": 8}),
    "the type null": ("rule-1-type", {"type": "null"}),
    "several types": ("rule-1-type", {"type": ["string", "null"], "maxLength": 8}),
    "a float": ("float", {"type": "number"}),
    "a field known only to a junctor": (
        "rule-2-junctor",
        {"type": "object", "properties": {}, "anyOf": [{"properties": {"name": {"pattern": "^a"}}}]},
    ),
    "items known only to a junctor": (
        "rule-2-junctor",
        {"type": "object", "properties": {}, "not": {"items": {"pattern": "^a"}}},
    ),
    "a type within a junctor": (
        "rule-3-junctor",
        {
            "type": "object",
            "properties": {"name": STRING},
            "oneOf": [{"properties": {"name": {"type": "string"}}}],
        },
    ),
    "a description within a junctor": ("rule-3-junctor", STRING | {"allOf": [{"description": "x"}]}),
    "an unbounded string": ("unbounded", {"type": "string"}),
    "an unbounded int-or-string": ("unbounded", {"x-kubernetes-int-or-string": True}),
    "an unbounded list": ("unbounded", {"type": "array", "x-kubernetes-list-type": "set", "items": STRING}),
    "an unbounded map": ("unbounded", {"type": "object", "additionalProperties": STRING}),
    "a list that does not say how it merges": ("list-type", items(None, STRING)),
    "a map-like list without keys": ("list-type", items("map", {"type": "object", "properties": {}})),
    "a map-like list with an unknown key": (
        "list-type",
        items(
            "map",
            {"type": "object", "properties": {"name": STRING}},
            **{"x-kubernetes-list-map-keys": ["id"]},
        ),
    ),
    "a map-like list with an optional key": (
        "list-type",
        items(
            "map",
            {"type": "object", "properties": {"name": STRING}},
            **{"x-kubernetes-list-map-keys": ["name"]},
        ),
    ),
    "a set of objects": ("list-type", items("set", {"type": "object", "properties": {}})),
    "a default of another type": ("default", {"type": "integer", "default": "x"}),
    "a default outside its bounds": ("default", {"type": "integer", "minimum": 1, "default": 0}),
    "a default null": ("default", STRING | {"default": None}),
    "a default with a field that is pruned": (
        "default",
        {"type": "object", "properties": {"name": STRING}, "default": {"naming": "x"}},
    ),
    "an incomplete default under rules": (
        "default",
        {
            "type": "object",
            "default": {},
            "properties": {"seconds": {"type": "integer", "default": 3}},
            "x-kubernetes-validations": [{"rule": "self.seconds > 0", "message": "no"}],
        },
    ),
    "an empty rule": ("cel-empty", rule(" ")),
    "a rule without message": ("cel-message", rule("self != ''", message="")),
    "a message of two lines": ("cel-message", rule("self != ''", message="a\nb")),
    "an open bracket": ("cel-syntax", rule("self.startsWith('a'")),
    "crossed brackets": ("cel-syntax", rule("self.startsWith(['a')]")),
    "an open quote": ("cel-syntax", rule("self != 'a")),
    "a rule about nothing": ("cel-syntax", rule("1 < 2")),
    "string() in a message": ("cel-cost", rule("self != ''", messageExpression="'it is ' + string(self)")),
    "a field path to nowhere": ("cel-field-path", rule("self != ''", fieldPath=".nme")),
    "a rule on the old value below a set": ("cel-old-self", items("set", rule("self == oldSelf"))),
    "loops in loops over long lists": (
        "cel-cost",
        items(
            "set",
            STRING,
            maxItems=2000,
            **{
                "x-kubernetes-validations": [
                    {"rule": "self.all(a, self.exists_one(b, a == b))", "message": "twice"}
                ]
            },
        ),
    ),
}


def test_a_good_schema_has_no_findings() -> None:
    assert schema_findings(GOOD) == []


@pytest.mark.parametrize("case", BAD)
def test_the_check_finds(case: str) -> None:
    broken, node = BAD[case]
    found = schema_findings({"type": "object", "properties": {"it": node}})
    assert {finding.rule for finding in found} == {broken}, [str(finding) for finding in found]
    assert all(finding.path.startswith(".it") for finding in found)


def test_metadata_may_narrow_the_name_and_nothing_else() -> None:
    def rules(properties: dict[str, Any]) -> list[str]:
        root = {"type": "object", "properties": {"metadata": {"type": "object", "properties": properties}}}
        return [finding.rule for finding in schema_findings(root)]

    assert rules({"name": STRING}) == []
    assert rules({"labels": {"type": "object", "properties": {}}}) == ["rule-4-metadata"]


COLUMNS = {
    "a path to nowhere": {"jsonPath": ".spec.nme"},
    "a path through a list without index": {"jsonPath": ".spec.names.name"},
    "an unknown key of items": {"jsonPath": ".spec.names[?(@.id=='a')].name"},
    "an object": {"jsonPath": ".spec"},
    "unknown metadata": {"jsonPath": ".metadata.age"},
    "something that is no path": {"jsonPath": "spec.name"},
    "a name that is taken": {"jsonPath": ".spec.name", "name": "Name"},
}


def crd(*columns: dict[str, Any], description: str = "x") -> dict[str, Any]:
    name = STRING | {"description": description}
    names = GOOD["properties"]["names"] | {"description": description}
    names["items"] = {"type": "object", "required": ["name"], "properties": {"name": name}}
    spec = {"type": "object", "properties": {"name": name, "names": names}}
    root = {"type": "object", "properties": {"metadata": {"type": "object"}, "spec": spec}}
    version = {"schema": {"openAPIV3Schema": root}, "additionalPrinterColumns": list(columns)}
    return {"spec": {"versions": [version]}}


NAME = {"name": "Name", "type": "string", "jsonPath": ".spec.name"}
FIRST = {"name": "First", "type": "string", "jsonPath": ".spec.names[0].name"}
KEYED = {"name": "Keyed", "type": "string", "jsonPath": ".spec.names[?(@.name=='a')].name"}
AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def test_columns_that_show_fields_have_no_findings() -> None:
    assert findings(crd(NAME, FIRST, KEYED, AGE)) == []


@pytest.mark.parametrize("case", COLUMNS)
def test_a_column_may_not_show(case: str) -> None:
    column = {"name": "Odd", "type": "string"} | COLUMNS[case]
    assert "column" in {finding.rule for finding in findings(crd(NAME, column, AGE))}


def test_age_is_the_last_column() -> None:
    assert [str(finding) for finding in findings(crd(AGE, NAME))] == ["columns: Age stands last [column]"]


def test_every_field_is_described() -> None:
    undescribed = findings(crd(description=""))
    assert [finding.path for finding in undescribed] == [".spec.name", ".spec.names", ".spec.names[].name"]
    assert {finding.rule for finding in undescribed} == {"undescribed"}
