"""The forms of the demonstration, and which of them this machine gets: decided from a few facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

VARIABLE = "DEMO_FORM"
STRICT_VARIABLE = "KVPOOL_STRICT"
NO_KIND = "kind is not supported by the demo yet"


class Form(StrEnum):
    """Where Pods run; the values are what DEMO_FORM takes."""

    NODES = "nodes"
    PROCESSES = "processes"

    @property
    def name_in_summary(self) -> str:
        """As summary.json has it."""
        return {Form.NODES: "RealNodes", Form.PROCESSES: "Processes"}[self]


class FormError(Exception):
    """The form that was asked for cannot be had; one line says why."""


@dataclass(frozen=True)
class Machine:
    """What of a machine matters. `obstacle` says why real nodes cannot run whatever is installed, else empty.

    `absent` are the Debian packages that real nodes lack, `installs` tells whether apt-get can add them.
    """

    obstacle: str = ""
    absent: Sequence[str] = ()
    installs: bool = False
    has_kind: bool = False


@dataclass(frozen=True)
class Choice:
    """A form, the packages to install before, and a line to say (empty when there is nothing to say)."""

    form: Form
    packages: Sequence[str] = ()
    line: str = ""


def choose(asked: str, machine: Machine, strict: bool = False) -> Choice:
    """Choose by what was asked (the value of DEMO_FORM, empty for none): real nodes where they can be had.

    Raises FormError when what was asked for cannot be had, and when strict in place of falling back.
    """
    if asked == "kind":
        raise FormError(f"{NO_KIND}: leave {VARIABLE} out, or use one of {', '.join(Form)}")
    if asked and asked not in list(Form):
        raise FormError(f"{VARIABLE} is {asked!r}: use one of {', '.join(Form)}")
    if asked == Form.PROCESSES:
        return Choice(Form.PROCESSES)
    reason = machine.obstacle
    if not reason and machine.absent and not machine.installs:
        reason = f"real nodes need programs that are missing here: {', '.join(machine.absent)}"
    if not reason:
        return Choice(Form.NODES, machine.absent, _installing(machine.absent))
    if asked:
        raise FormError(f"{VARIABLE} is {asked}, but {reason}")
    if strict:
        ways = f"mend that, or ask for {VARIABLE}={Form.PROCESSES}"
        raise FormError(f"{STRICT_VARIABLE} is 1 and takes no second best, but {reason}: {ways}")
    instead = "the demo runs Pods as processes on simulated hosts instead"
    return Choice(Form.PROCESSES, line=f"{reason}: {instead}" + (f" ({NO_KIND})" if machine.has_kind else ""))


def _installing(packages: Sequence[str]) -> str:
    if not packages:
        return ""
    return f"real nodes need Debian packages that are missing here; installing them: {' '.join(packages)}"
