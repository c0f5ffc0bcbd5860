"""Expected faults, told in one message without a traceback, and what exit codes mean."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit code of every verb says."""

    FINE = 0
    FINDINGS = 1
    """The command worked, and found something that a person should look at."""
    TROUBLE = 2
    """Wrong usage, or the cluster could not be asked or would not do it."""


class CliError(Exception):
    """A fault that is to be expected; its text says what, with which values, and what to do."""
