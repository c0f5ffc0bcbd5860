"""Commands that pages name: make targets, verbs of the plugin, and flags."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache

import click
import pytest
import yaml

from kvpool.cli.kubectl import kvpool as plugin
from kvpool.cli.planner import kvpool as planner
from tests.docs.pages import ROOT, Page, pages

PAGES = pages()
PROGRAMS = (
    "kvpool.main",
    "kvpool_agent.main",
    "kvpool_keeper.main",
    "devcluster",
    "devcluster.build",
    "devcluster.sandbox",
    "tools.crdgen",
    "tools.docs",
)
# What pages say to programs of others.
FOREIGN_FLAGS = {
    "helm": {"--create-namespace", "--reuse-values", "--set", "--install", "--wait"},
    "kubectl": {"--from-literal", "--dry-run", "--server-side", "--all-namespaces", "--force"},
    "docker": {"--target", "--build-arg"},
}
_MAKE = re.compile(r"^make ([a-z][a-z0-9-]*)")
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_PLUGIN = re.compile(r"kubectl kvpool ([a-z][a-z-]*)(.*)")
_PLANNER = re.compile(r"^kvpool ([a-z].*)")


@cache
def make_targets() -> frozenset[str]:
    text = (ROOT / "Makefile").read_text()
    return frozenset(re.findall(r"^([a-z][a-z0-9-]*):", text, re.MULTILINE))


@cache
def flags_of(program: str) -> frozenset[str]:
    """The flags that a program of ours knows, by its own help."""
    done = subprocess.run(
        [sys.executable, "-m", program, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return frozenset(_FLAG.findall(done.stdout))


@cache
def all_flags() -> frozenset[str]:
    ours = {flag for program in PROGRAMS for flag in flags_of(program)}
    verbs = {
        option
        for program in (plugin, planner)
        for verb in verbs_below(program)
        for option in options_of(verb)
    }
    return frozenset(ours | verbs | {flag for flags in FOREIGN_FLAGS.values() for flag in flags})


def verb_of(group: click.Group, word: str) -> click.Command | None:
    return group.get_command(click.Context(group), word)


def verbs_below(group: click.Group) -> list[click.Command]:
    """The verbs of a group and of the groups in it."""
    verbs = [verb_of(group, name) for name in group.list_commands(click.Context(group))]
    return [
        inner
        for verb in verbs
        if verb is not None
        for inner in (verb, *(verbs_below(verb) if isinstance(verb, click.Group) else ()))
    ]


def options_of(verb: click.Command) -> set[str]:
    return {name for option in verb.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_that_a_page_names_exists(page: Page) -> None:
    named = {found[1] for text in page.commands() if (found := _MAKE.match(text)) is not None}
    assert named - make_targets() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_verb_of_the_plugin_that_a_page_names_exists_and_takes_the_flags(page: Page) -> None:
    wrong = []
    for text in page.commands():
        for verb, rest in _PLUGIN.findall(text):
            command = verb_of(plugin, verb)
            if command is None or set(_FLAG.findall(rest)) - options_of(command):
                wrong.append(text)
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_verb_of_the_planner_that_a_page_names_exists_and_takes_the_flags(page: Page) -> None:
    wrong = []
    for text in page.commands():
        for said in _PLANNER.findall(text):
            command: click.Command | None = planner
            for word in said.split():
                if not isinstance(command, click.Group):
                    break
                # What is no verb of `simulate` is the file of a scenario.
                command = verb_of(command, word) or verb_of(command, "run")
            if command is None or set(_FLAG.findall(said)) - options_of(command):
                wrong.append(text)
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_flag_that_a_page_names_is_known_to_some_program(page: Page) -> None:
    named = {flag for text in page.commands() for flag in _FLAG.findall(text)}
    assert named - all_flags() == set()


def test_every_value_of_the_chart_that_a_page_sets_exists() -> None:
    values = yaml.safe_load((ROOT / "charts" / "kvpool" / "values.yaml").read_text())
    unknown = []
    for page in PAGES:
        for text in page.commands():
            if "helm" not in text:
                continue
            for name in re.findall(r"--set '?([\w.]+)=", text):
                node = values
                for part in name.split("."):
                    node = node.get(part) if isinstance(node, dict) else None
                if node is None:
                    unknown.append(f"{page.name}: {name}")
    assert unknown == []
