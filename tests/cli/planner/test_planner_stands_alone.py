"""`kvpool` needs no cluster and none of the packages that talk to one."""

from __future__ import annotations

import subprocess
import sys

BLOCKED = ("kopf", "kubernetes", "grpc", "google", "aiohttp", "prometheus_client", "structlog", "orjson")

PROGRAM = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"blocked: {{name}}")

sys.meta_path.insert(0, Blocked())
from click.testing import CliRunner
from kvpool.cli.planner import kvpool

def ask(group, *words):
    answer = CliRunner().invoke(kvpool, [*words, "--help"])
    assert answer.exit_code == 0, (words, answer.output, answer.exception)
    for name, command in sorted(getattr(group, "commands", {{}}).items()):
        ask(command, *words, name)

ask(kvpool)
print("every verb answered")
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


def test_every_verb_explains_itself_where_kopf_kubernetes_and_grpc_are_not_installed() -> None:
    ran = run(PROGRAM)
    assert (ran.returncode, ran.stdout.strip()) == (0, "every verb answered"), ran.stderr


def test_the_block_of_this_test_blocks() -> None:
    ran = run(PROGRAM.replace("from kvpool.cli.planner", "import kubernetes\nfrom kvpool.cli.planner"))
    assert "blocked: kubernetes" in ran.stderr
