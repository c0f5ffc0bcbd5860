"""Runs `kvpool` in this process, as its command line would."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from click.testing import CliRunner

from kvpool.cli.faults import CliError
from kvpool.cli.planner import kvpool


@dataclass(frozen=True, slots=True)
class Answered:
    """What a run gave; a fault that is told in one message has code 2 and its text."""

    code: int
    out: str
    fault: str

    @property
    def document(self) -> dict[str, Any]:
        """Standard output as JSON; figures that JSON does not know are refused."""

        def refuse(word: str) -> None:
            raise AssertionError(f"{word} is not JSON")

        parsed: dict[str, Any] = json.loads(self.out, parse_constant=refuse)
        return parsed


def ask(*arguments: str, stdin: str | None = None) -> Answered:
    """Run a verb; whatever ends it but a fault that is to be expected is raised."""
    ran = CliRunner().invoke(kvpool, list(arguments), input=stdin)
    if isinstance(ran.exception, CliError):
        return Answered(2, ran.stdout, str(ran.exception))
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return Answered(ran.exit_code, ran.stdout, ran.stderr)
