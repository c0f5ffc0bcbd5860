"""`kvpool` needs no cluster and none of the packages that talk to one."""

from __future__ import annotations

import subprocess
import sys

from kvpool.cli.planner import SIMULATIONS, TRACES, VERBS

BLOCKED = ("kopf", "kubernetes", "grpc", "google", "aiohttp", "prometheus_client", "structlog", "orjson")

PROGRAM = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"blocked: {{name}}")

sys.meta_path.insert(0, Blocked())
import click
from click.testing import CliRunner
from kvpool.cli.planner import kvpool

def ask(command, *words):
    answer = CliRunner().invoke(kvpool, [*words, "--help"])
    assert answer.exit_code == 0, (words, answer.output, answer.exception)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            ask(command.get_command(context, name), *words, name)
    else:
        print(*words)

ask(kvpool)
"""

ALL = sorted(
    [
        *(name for name in VERBS if name not in ("simulate", "trace")),
        *(f"simulate {name}" for name in SIMULATIONS),
        *(f"trace {name}" for name in TRACES),
    ]
)


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


def test_every_verb_explains_itself_where_kopf_kubernetes_and_grpc_are_not_installed() -> None:
    ran = run(PROGRAM)
    assert (ran.returncode, sorted(ran.stdout.splitlines())) == (0, ALL), ran.stderr


def test_the_block_of_this_test_blocks() -> None:
    ran = run(PROGRAM.replace("from kvpool.cli.planner", "import kubernetes\nfrom kvpool.cli.planner"))
    assert "blocked: kubernetes" in ran.stderr
