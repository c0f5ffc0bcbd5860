"""No program, no room, no time: what befalls a build, told as a BuildError that says what to do."""

from __future__ import annotations

import contextlib
import errno
import subprocess
from collections.abc import Iterator

from devcluster.toolchain import BuildError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


@contextlib.contextmanager
def told_of(what: str) -> Iterator[None]:
    """Raise BuildError, beginning with `what`, for what goes wrong beneath: files, programs, deadlines."""
    try:
        yield
    except subprocess.TimeoutExpired as error:
        text = f"`{_program(error.cmd)}` was not done within {error.timeout:g} s"
        raise BuildError(f"{what}: {text}: run it again when machine and network are less busy") from error
    except OSError as error:
        raise BuildError(f"{what}: {_told(error)}") from error


def _told(error: OSError) -> str:
    if error.errno in _NO_ROOM:
        return f"{error}: free some room, or name a folder with more of it in KVPOOL_CACHE"
    if isinstance(error, PermissionError | FileExistsError | NotADirectoryError):
        return f"{error}: name a folder that you may write to in KVPOOL_CACHE"
    if isinstance(error, FileNotFoundError) and "/" not in str(error.filename):
        return f"`{error.filename}` is not on PATH: install it"
    return str(error)


def _program(command: object) -> str:
    return str(command[0] if isinstance(command, list | tuple) and command else command)
