"""The generator on small models: what each construct of pydantic becomes, and what is refused."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal, Union

import pytest
from pydantic import Field

from kvpool.api.schema import (
    NOT_SUPPORTED_YET,
    Cel,
    Column,
    Later,
    ListAtomic,
    ListMap,
    ListSet,
    MaxProperties,
    Model,
    PreserveUnknown,
    cel,
    resource,
)
from tools.crdgen.definition import definition, rendered
from tools.crdgen.describe import described
from tools.crdgen.rewrite import Node, NotStructuralError, structural
from tools.crdgen.structural import schema_findings

Text = Annotated[str, Field(max_length=8)]


class Leaf(Model):
    """A leaf."""

    name: Text
    weight: Annotated[int, Field(ge=0, le=100)] = 7


class Branch(Model):
    """A branch that holds itself."""

    inner: Branch | None = None


class Colour(StrEnum):
    """Of a thing."""

    RED = "Red"
    BLUE = "Blue"


def field(annotation: object, default: object = ...) -> Node:
    """The node of a model's only field."""
    model = type("Toy", (Model,), {"__annotations__": {"it": annotation}, **_given(default)})
    schema = structural(model)
    assert schema_findings(schema) == []
    node: Node = schema["properties"]["it"]
    return node | {"required": True} if "it" in schema.get("required", []) else node


def _given(default: object) -> dict[str, Any]:
    return {} if default is ... else {"it": default}


def test_a_reference_is_replaced_by_what_it_names() -> None:
    node = field(Leaf)
    assert node["type"] == "object"
    assert node["description"] == "A leaf."
    assert list(node["properties"]) == ["name", "weight"]
    assert "$ref" not in str(node)


def test_a_recursive_model_is_refused_by_name() -> None:
    with pytest.raises(NotStructuralError, match=r"Branch\.inner.*: Branch contains itself"):
        structural(Branch)


def test_an_optional_field_is_its_type_and_not_required() -> None:
    assert field(Text | None, None) == {"type": "string", "maxLength": 8}


def test_an_optional_model_keeps_its_annotations_and_rules() -> None:
    node = field(Annotated[Leaf | None, Cel("has(self.name)", "name it")], None)
    assert node["x-kubernetes-validations"] == [{"rule": "has(self.name)", "message": "name it"}]
    assert node["required"] == ["name"]


def test_integers_and_strings_in_one_field_become_int_or_string() -> None:
    node = field(Annotated[int, Field(gt=0)] | Text)
    assert node == {
        "minimum": 1,
        "maxLength": 8,
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "required": True,
    }


@pytest.mark.parametrize("union", [int | bool, Union[Leaf, Colour], Text | list[Text]])  # noqa: UP007
def test_any_other_union_is_refused_with_a_way_out(union: object) -> None:
    with pytest.raises(NotStructuralError, match=r"one optional member per variant and a CEL rule"):
        field(union)


def test_a_discriminated_union_is_refused_with_a_way_out() -> None:
    class Cat(Model):
        type: Literal["Cat"]

    class Dog(Model):
        type: Literal["Dog"]

    with pytest.raises(NotStructuralError, match=r"Toy\.it: discriminated unions.*string `type` field"):
        field(Annotated[Cat | Dog, Field(discriminator="type")])


@pytest.mark.parametrize(("value", "kind"), [("Only", "string"), (3, "integer"), (True, "boolean")])
def test_a_constant_is_an_enumeration_of_one(value: object, kind: str) -> None:
    node = field(Literal[value])
    assert (node["type"], node["enum"]) == (kind, [value])


def test_an_enumeration_keeps_its_order_and_its_description() -> None:
    node = field(Colour, Colour.BLUE)
    assert node["description"] == "Of a thing."
    assert (node["type"], node["default"], node["enum"]) == ("string", "Blue", ["Red", "Blue"])


def test_later_values_pass_the_enumeration_and_meet_a_rule() -> None:
    node = field(Annotated[Colour, Later("Green")], Colour.RED)
    assert node["enum"] == ["Red", "Blue", "Green"]
    assert node["x-kubernetes-validations"] == [
        {"rule": "!(self in ['Green'])", "messageExpression": "'%s is not supported yet'.format([self])"}
    ]


def test_a_field_without_meaning_yet_is_forbidden() -> None:
    node = field(Annotated[dict[str, Any], PreserveUnknown(), NOT_SUPPORTED_YET] | None, None)
    assert node["x-kubernetes-validations"][0]["rule"] == "false"
    assert set(node) == {"type", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"}


def test_exclusive_bounds_of_integers_become_the_next_number() -> None:
    node = field(Annotated[int, Field(gt=0, lt=10)])
    assert (node["minimum"], node["maximum"], node["format"]) == (1, 9, "int32")


def test_an_integer_without_narrow_bounds_is_int64() -> None:
    assert field(int)["format"] == "int64"
    assert field(Annotated[int, Field(ge=0, le=2**31)])["format"] == "int64"


def test_a_float_is_refused() -> None:
    with pytest.raises(NotStructuralError, match=r"Toy\.it: floats are not portable"):
        field(float)


def test_a_tuple_of_fixed_length_is_refused() -> None:
    with pytest.raises(NotStructuralError, match="use an object with named fields"):
        field(tuple[int, Text])


def test_a_set_becomes_a_list_of_type_set() -> None:
    node = field(Annotated[frozenset[Text], Field(max_length=3)], frozenset())
    assert node["x-kubernetes-list-type"] == "set"
    assert "uniqueItems" not in node


def test_list_types_are_written_out() -> None:
    by_name = field(Annotated[tuple[Leaf, ...], ListMap("name"), Field(max_length=4)], ())
    assert by_name["x-kubernetes-list-map-keys"] == ["name"]
    assert (by_name["x-kubernetes-list-type"], by_name["maxItems"]) == ("map", 4)
    assert (
        field(Annotated[tuple[Text, ...], ListSet(), Field(max_length=4)])["x-kubernetes-list-type"] == "set"
    )
    assert (
        field(Annotated[tuple[Text, ...], ListAtomic(), Field(max_length=4)])["x-kubernetes-list-type"]
        == "atomic"
    )


def test_an_empty_default_of_a_list_or_map_is_not_stored() -> None:
    assert "default" not in field(Annotated[tuple[Text, ...], ListSet(), Field(max_length=4)], ())
    assert "default" not in field(Annotated[dict[str, Text], MaxProperties(4)], {})


def test_an_objects_default_says_everything_its_fields_default_to() -> None:
    class Tree(Model):
        """A tree."""

        leaf: Leaf = Leaf(name="a")
        other: Leaf | None = None

    assert field(Tree, Tree())["default"] == {"leaf": {"name": "a", "weight": 7}}


def test_a_default_made_by_a_function_is_refused_by_field() -> None:
    class Tree(Model):
        leaf: Leaf = Field(default_factory=lambda: Leaf(name="a"))

    with pytest.raises(NotStructuralError, match=r"Tree\.leaf: users cannot see the default"):
        structural(Tree)


def test_forbidding_extra_fields_leaves_no_trace_in_the_schema() -> None:
    assert "additionalProperties" not in structural(Leaf)


def test_a_map_keeps_the_type_of_its_values_and_its_bound() -> None:
    node = field(Annotated[dict[str, Text], MaxProperties(4)])
    assert node["additionalProperties"] == {"type": "string", "maxLength": 8}
    assert node["maxProperties"] == 4


@pytest.mark.parametrize("untyped", [Any, dict[str, Any], list[Any]])
def test_an_untyped_node_is_refused_unless_it_says_so(untyped: object) -> None:
    with pytest.raises(NotStructuralError, match=r"type"):
        field(untyped)


def test_named_fields_beside_a_map_are_refused() -> None:
    class Open(Model, extra="allow"):
        __pydantic_extra__: dict[str, Text] = {}  # noqa: RUF012 - pydantic's way to type what is extra
        name: Text = ""

    with pytest.raises(NotStructuralError, match="give the map a field of its own"):
        structural(Open)


def test_an_open_node_keeps_its_description_and_nothing_else() -> None:
    node = field(Annotated[dict[str, Any], PreserveUnknown(), Field(description="Anything.")], {})
    assert set(node) == {"description", "type", "x-kubernetes-preserve-unknown-fields"}
    assert node["description"] == "Anything."


def test_iso_durations_and_unknown_formats_are_refused() -> None:
    with pytest.raises(NotStructuralError, match="use a pattern such as 60s"):
        field(timedelta)
    with pytest.raises(NotStructuralError, match="'binary' means nothing to Kubernetes"):
        field(bytes)
    assert field(datetime)["format"] == "date-time"


def test_rules_of_a_class_read_from_top_to_bottom_and_are_inherited() -> None:
    @cel("self.weight > 1", "first")
    @cel("self.weight > 2", "second")
    class Ruled(Leaf):
        """Ruled."""

    @cel("self.weight > 3", "third")
    class More(Ruled):
        """More."""

    assert [rule["message"] for rule in structural(More)["x-kubernetes-validations"]] == [
        "third",
        "first",
        "second",
    ]
    assert "x-kubernetes-validations" not in structural(Leaf)


def test_titles_are_dropped_and_fields_called_title_are_not() -> None:
    class Book(Model):
        title: Text

    schema = structural(Book)
    assert "title" not in schema
    assert schema["properties"]["title"] == {"type": "string", "maxLength": 8}


def test_a_docstring_is_reflowed_into_paragraphs_and_items() -> None:
    text = """One line
    and its rest with ``code``.

    - an item
      goes on
    - another
    """
    assert described(text) == "One line and its rest with `code`.\n\n- an item goes on\n- another"


@resource("Toy", "toys", "toy", "Cluster", ("ty",), (Column("Weight", "integer", ".spec.weight"),))
class Toy(Model):
    """A toy."""

    api_version: str = "kvpool.dev/v1alpha1"
    kind: str = "Toy"
    metadata: dict[str, Any]
    spec: Leaf
    status: Leaf = Leaf(name="unseen")


def test_a_definition_leaves_identity_to_the_server_and_has_a_status() -> None:
    version = definition(Toy)["spec"]["versions"][0]
    root = version["schema"]["openAPIV3Schema"]
    assert root["properties"]["metadata"] == {"type": "object"}
    assert root["required"] == ["spec"]
    assert version["subresources"] == {"status": {}}


def test_a_status_has_no_defaults_because_nobody_saw_them() -> None:
    root = definition(Toy)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert root["properties"]["spec"]["properties"]["weight"]["default"] == 7
    assert "default" not in str(root["properties"]["status"])


def test_a_definition_has_names_category_and_age_as_the_last_column() -> None:
    spec = definition(Toy)["spec"]
    assert spec["names"]["categories"] == ["kv"]
    assert spec["names"]["shortNames"] == ["ty"]
    assert spec["names"]["listKind"] == "ToyList"
    assert [column["name"] for column in spec["versions"][0]["additionalPrinterColumns"]] == ["Weight", "Age"]


def test_a_kind_with_fields_beside_spec_and_status_is_refused() -> None:
    @resource("Odd", "odds", "odd", "Cluster")
    class Odd(Model):
        spec: Leaf
        data: Leaf

    with pytest.raises(NotStructuralError, match="Odd: a kind has spec and status, not data"):
        definition(Odd)


def test_a_model_that_is_no_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="Leaf is not the top level of a kind"):
        definition(Leaf)


def test_equal_definitions_are_written_as_equal_bytes_without_anchors() -> None:
    first, second = rendered(definition(Toy)), rendered(definition(Toy))
    assert first == second
    assert "&id" not in first
