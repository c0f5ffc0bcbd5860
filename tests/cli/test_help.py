"""Help of a group of verbs is quick, and tells what each verb does in whole sentences."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from kvpool.cli import kubectl, planner
from kvpool.cli.lazy_group import LazyGroup

GROUPS = {
    "kvpool": planner.kvpool,
    "kvpool simulate": planner.simulate,
    "kvpool trace": planner.trace,
    "kubectl kvpool": kubectl.kvpool,
}
HEAVY = ("aiohttp", "pydantic", "rich", "yaml")


@pytest.mark.parametrize("columns", [50, 80, 200])
@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_what_verbs_do_is_told_whole_however_narrow_the_terminal(group: LazyGroup, columns: int) -> None:
    answer = CliRunner().invoke(group, ["--help"], terminal_width=columns)
    told = " ".join(answer.output.split("Commands:")[1].split()).replace("- ", "-")
    assert "..." not in told
    assert [verb.help for verb in group.verbs.values() if verb.help not in told] == []


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_every_verb_is_where_its_group_says_and_explains_itself(group: LazyGroup) -> None:
    context = click.Context(group)
    for name in group.list_commands(context):
        verb = group.get_command(context, name)
        assert verb is not None
        assert verb.help, name
        assert group.verbs[name].help.endswith(".")


@pytest.mark.parametrize("module", ["kvpool.cli.planner", "kvpool.cli.kubectl"])
def test_the_help_of_all_verbs_waits_for_none_of_them(module: str) -> None:
    program = f"""
import sys
from click.testing import CliRunner
from {module} import kvpool
assert "Commands:" in CliRunner().invoke(kvpool, ["--help"]).output
print(*sorted(name for name in sys.modules if name in {HEAVY!r}))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, ""), ran.stderr


@pytest.mark.parametrize("group", [planner.kvpool, planner.trace, kubectl.kvpool])
def test_a_word_that_is_no_verb_is_told(group: LazyGroup) -> None:
    answer = CliRunner().invoke(group, ["zebra"])
    assert answer.exit_code == 2
    assert "No such command 'zebra'" in answer.output


@pytest.mark.parametrize(
    ("group", "word", "verb"),
    [
        (planner.kvpool, "sizx", "size"),
        (planner.trace, "imprt", "import"),
        (kubectl.kvpool, "statusx", "status"),
    ],
)
def test_a_misspelt_verb_is_told_with_the_one_that_was_meant(group: LazyGroup, word: str, verb: str) -> None:
    answer = CliRunner().invoke(group, [word])
    assert f"No such command '{word}'. Did you mean '{verb}'?" in answer.output
    assert answer.exit_code == 2
