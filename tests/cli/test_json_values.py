"""What YAML can say and JSON cannot is told by its place; all else can be written."""

from __future__ import annotations

from datetime import UTC, date, datetime

import orjson
import pytest

from kvpool.cli.json_values import MOST_LEVELS, what_json_lacks


def nested(levels: int) -> object:
    """Lists in each other."""
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"a": {"b": [0, 2**64]}}, "a.b[1] is a whole number of more than 64 bits"),
        ({"a": -(2**63) - 1}, "a is a whole number of more than 64 bits"),
        ({"a": {"\ud800": 1}}, "a key of a has half of a character in it"),
        ({"\ud800": 1}, "a key of it has half of a character in it"),
        ({"a": nested(MOST_LEVELS)}, f"... is nested more than {MOST_LEVELS} levels deep"),
        ({"a": nested(100_000)}, f"... is nested more than {MOST_LEVELS} levels deep"),
    ],
    ids=lambda value: "",
)
def test_what_the_client_could_not_write_is_told_with_its_place(value: object, told: str) -> None:
    assert told in what_json_lacks(value)


@pytest.mark.parametrize(
    "value",
    [
        {"a": [2**64 - 1, -(2**63), True, None, 0.5, "\u20ac"]},
        {"a": date(2026, 1, 1), "b": datetime(2026, 1, 1, tzinfo=UTC), "it": {"it": 1}},
        nested(MOST_LEVELS),
    ],
    ids=lambda value: "",
)
def test_what_the_client_can_write_is_no_fault(value: object) -> None:
    assert what_json_lacks(value) == ""
    assert orjson.dumps(value)
