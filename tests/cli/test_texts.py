"""Files of people: YAML or JSON, and no key twice."""

from __future__ import annotations

import pytest
import yaml

from kvpool.cli.texts import documents_of


def test_json_is_read_with_tabs_and_with_numbers_that_yaml_takes_for_text() -> None:
    assert documents_of('\ufeff{\n\t"a": 1e-05,\n\t"b": [1E3, "x"]\n}') == [{"a": 1e-05, "b": [1000.0, "x"]}]


def test_yaml_that_begins_like_json_is_read_too() -> None:
    assert documents_of("{a: 1}") == [{"a": 1}]
    assert documents_of('{"a": 1}\n---\n[b]\n') == [{"a": 1}, ["b"]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: 2\na: 3", "'a' is given twice, in line 1 and in line 3"),
        ("x:\n  y: 1\n  'y': 2", "'y' is given twice, in line 2 and in line 3"),
        ("- {z: 1, z: 1}", "'z' is given twice, in line 1 and in line 1"),
        ("<<: {a: 1}\n<<: {b: 1}", "'<<' is given twice"),
        ('{\n\t"a": {"b": 1,\n\t"b": 1}}', "'b' is given twice, in line 2 and in line 3"),
    ],
)
def test_a_key_that_is_given_twice_is_refused_with_both_lines(text: str, told: str) -> None:
    with pytest.raises(yaml.YAMLError, match=told):
        documents_of(text)


def test_what_is_merged_in_may_be_given_anew() -> None:
    text = "b: &b {x: 1}\nq: {r: &r {<<: *b, x: 2}}\ns: {<<: *r, x: 3}\n1: a\n'1': b"
    assert documents_of(text) == [{"b": {"x": 1}, "q": {"r": {"x": 2}}, "s": {"x": 3}, 1: "a", "1": "b"}]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "a: 2020-99-99", '{"a": 1' + "0" * 5_000 + "}", "a: !!int x"]
)
def test_what_the_readers_stumble_over_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        documents_of(text)
