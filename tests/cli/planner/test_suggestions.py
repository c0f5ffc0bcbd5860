"""A misspelt field is answered with where it stands and what it probably is."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from kvpool.api.schema import Model
from kvpool.cli.planning.suggestions import faults_of, path_of, suggestion


class Cheap(Model):
    kind: Literal["cheap"]
    price_each: float


class Dear(Model):
    kind: Literal["dear"]
    luxury_tax: float


class Colour(StrEnum):
    RED = "Red"
    GREEN = "Green"


class Shelf(Model):
    items: tuple[Annotated[Cheap | Dear, Field(discriminator="kind")], ...] = ()
    by_name: dict[str, Cheap] = Field(default_factory=dict)
    label: str | None = None
    colour: Colour = Colour.RED
    size: Literal["small", "large"] = "small"
    count: Annotated[int, Field(ge=1, le=100)] = 1
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    wanted: bool = False
    few: Annotated[tuple[int, ...], Field(max_length=2)] = ()
    some: Annotated[tuple[Cheap, ...], Field(min_length=1)] = (Cheap(kind="cheap", price_each=1),)


def faults(document: object) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Shelf.model_validate(document)
    return faults_of(caught.value, Shelf)


def test_a_near_word_is_suggested_and_a_far_one_is_not() -> None:
    assert suggestion("pric", ("price", "power")) == "; did you mean 'price'?"
    assert suggestion("SESSIONZ", ("sessions",)) == "; did you mean 'sessions'?"
    assert suggestion("zebra", ("price", "power")) == ""


def test_a_misspelt_field_is_told_with_its_place_and_the_name_as_people_write_it() -> None:
    assert faults({"labelz": "x"}) == ["labelz: no such field; did you mean 'label'?"]
    item = {"kind": "cheap", "priceEach": 1, "priceEech": 2}
    assert faults({"byName": {"a": item}}) == ["byName.a.priceEech: no such field; did you mean 'priceEach'?"]


def test_a_field_inside_one_kind_of_a_union_is_told_apart_from_the_other_kinds() -> None:
    item = {"kind": "dear", "luxuryTax": 1, "luxuriTax": 2}
    assert faults({"items": [item]}) == ["items[0].dear.luxuriTax: no such field; did you mean 'luxuryTax'?"]


def test_where_nothing_is_near_the_known_fields_are_listed() -> None:
    assert faults({"zebra": 1}) == [
        "zebra: no such field; known are byName, colour, count, few, items, label, share, size, some, wanted"
    ]


def test_missing_and_wrong_values_are_told_with_their_place() -> None:
    assert faults({"byName": {"a": {"kind": "cheap"}}}) == ["byName.a.priceEach: is missing"]
    assert faults([]) == ["the document: [] is no set of fields: write NAME: VALUE"]
    assert path_of(("options", 0, "tiers", 1, "price")) == "options[0].tiers[1].price"


def test_a_misspelt_value_of_a_few_is_answered_with_the_one_it_probably_is() -> None:
    cheap = {"kind": "cheap", "priceEach": 1}
    assert faults({"colour": "Redd", "byName": {"a": cheap}}) == [
        "colour: no such value 'Redd'; did you mean 'Red'?"
    ]
    assert faults({"colour": "zzz"}) == ["colour: no such value 'zzz'; known are Red, Green"]
    assert faults({"size": "smalls"}) == ["size: no such value 'smalls'; did you mean 'small'?"]


def test_a_list_whose_one_item_does_not_fit_is_not_said_to_be_empty() -> None:
    assert faults({"some": [{"kind": "cheap", "priceEach": 1, "priceEech": 2}]}) == [
        "some[0].priceEech: no such field; did you mean 'priceEach'?"
    ]
    assert faults({"some": []}) == ["some: has 0 entries, and needs 1 or more"]


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("count", "32k", "'32k' is no whole number: write digits alone"),
        ("count", 1.5, "1.5 is no whole number: write digits alone"),
        ("count", None, "null is no whole number: write digits alone"),
        ("count", [1], "[1] is no whole number: write digits alone"),
        ("count", 0, "0 must be at least 1"),
        ("count", 101, "101 must be at most 100"),
        ("share", 0, "0 must be above 0"),
        ("share", 1, "1 must be below 1"),
        ("share", float("nan"), "nan is no number"),
        ("share", "half", "'half' is no number"),
        ("wanted", "perhaps", "'perhaps' is neither true nor false"),
        ("label", 5, "5 is no text: write it in quotes"),
        ("some", "x", "'x' is no list: write [...], or one entry a line after -"),
        ("some", ["x"], "'x' is no set of fields: write NAME: VALUE"),
        ("byName", 7, "7 is no set of fields: write NAME: VALUE"),
        ("few", [1, 2, 3], "has more than 2 entries, which is the most"),
        (
            "label",
            list(range(100)),
            "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1... is no text",
        ),
    ],
)
def test_a_wrong_value_is_shown_with_what_it_should_be(field: str, value: object, told: str) -> None:
    [fault] = faults({field: value})
    assert fault.split(": ", 1)[1].startswith(told)
