"""The page about `kvpool` names every verb with its flags and outputs, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from kvpool.cli.planner import kvpool
from tests.docs.pages import pages

PAGE = next(page for page in pages() if page.name == "docs/reference/planner-cli.md")
SECTIONS = dict(zip(*[iter(re.split(r"^## (.*)$", PAGE.text, flags=re.MULTILINE)[1:])] * 2, strict=True))
OF_TRACES = "Flags of traces"


def verbs(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    """Every verb that does something, by all its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        words = f"{before} {name}"
        if isinstance(command, click.Group):
            yield from verbs(command, words)
        else:
            yield words, command


VERBS = dict(verbs(kvpool, "kvpool"))


def flags(section: str) -> set[str]:
    """What the first column of a section's table names."""
    rows = re.findall(r"^\| (`-.*?) \|", section, re.MULTILINE)
    return {flag for row in rows for flag in re.findall(r"`(--?[a-z-]+)`", row)}


def test_every_verb_has_a_section_and_a_line_in_the_first_table() -> None:
    named = {title.strip("`") for title in SECTIONS if title.startswith("`kvpool")}
    assert named == set(VERBS)
    listed = re.findall(r"^\| `([a-z ]+?)(?: FILE)?` \|", PAGE.text.split("## ")[1] + PAGE.text, re.MULTILINE)
    assert {f"kvpool {verb}" for verb in listed} >= {verb.removesuffix(" run") for verb in VERBS}


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_section_names_the_flags_of_its_verb_and_no_others(verb: str) -> None:
    section = SECTIONS[f"`{verb}`"]
    told = flags(section)
    if f"And the [{OF_TRACES.lower()}]" in section:
        told |= flags(SECTIONS[OF_TRACES])
    there = {name for one in VERBS[verb].params if isinstance(one, click.Option) for name in one.opts}
    assert told == there


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_section_names_the_outputs_of_its_verb(verb: str) -> None:
    row = re.search(r"^\| `-o`, `--output` \| (.*) \|$", SECTIONS[f"`{verb}`"], re.MULTILINE)
    assert row is not None
    output = next(one for one in VERBS[verb].params if one.name == "output")
    assert isinstance(output.type, click.Choice)
    assert re.findall(r"`(\w+)`", row[1]) == list(output.type.choices)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_defaults_that_the_page_gives_are_those_of_the_verb(verb: str) -> None:
    defaults = {
        one.opts[-1]: one.default
        for one in VERBS[verb].params
        if isinstance(one, click.Option) and one.default
    }
    section = SECTIONS[f"`{verb}`"] + SECTIONS[OF_TRACES]
    for flag, told in re.findall(
        r"^\|[^|]*`(--[a-z-]+)` \|.*; default `?([\w.,]+)`? \|$", section, re.MULTILINE
    ):
        if flag in defaults and re.search(r"\d", told):
            assert str(told) in {
                f"{defaults[flag]}",
                f"{defaults[flag]:g}" if _is_number(defaults[flag]) else "",
            }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def test_the_exit_codes_of_the_page_are_those_that_the_help_gives() -> None:
    codes = re.findall(r"^\| (\d) \|", SECTIONS["Exit codes"], re.MULTILINE)
    assert codes == re.findall(r"\b(\d) \w+", kvpool.epilog or "")
