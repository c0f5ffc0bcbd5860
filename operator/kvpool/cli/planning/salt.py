"""The salt of an import: read from a file, or made and kept in a file that only its owner can read."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kvpool.cli.faults import CliError
from kvpool.sim.imports.salted import FEWEST_SALT_BYTES

FRESH_BYTES: Final = 32
MOST_BYTES: Final = 1 << 20
OWNER_ONLY: Final = 0o600


def salt_from(file: Path) -> bytes:
    """Return the salt in a file. Raises CliError if it cannot be read, or is too short or no salt at all."""
    try:
        with file.open("rb") as stream:
            salt = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise CliError(f"the salt {file} cannot be read: {error.strerror or error}") from None
    if not FEWEST_SALT_BYTES <= len(salt) <= MOST_BYTES:
        raise CliError(
            f"the salt {file} has {len(salt)} bytes, and must have {FEWEST_SALT_BYTES} to {MOST_BYTES}: "
            f"make one with `head -c {FRESH_BYTES} /dev/urandom > {file}`, or leave --salt-file out"
        )
    return salt


def fresh_salt() -> bytes:
    """Return a salt that nobody can guess."""
    return secrets.token_bytes(FRESH_BYTES)


@contextmanager
def kept(salt: bytes, file: Path) -> Iterator[None]:
    """Write a salt to a new file with no rights for others; whatever ends what is done with it takes it away.

    Raises CliError.
    """
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    except OSError as error:
        raise CliError(f"the salt {file} cannot be written: {error.strerror or error}") from None
    try:
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(salt)
        except OSError as error:
            raise CliError(f"the salt {file} cannot be written: {error.strerror or error}") from None
        yield
    except BaseException:  # Ctrl-C too: a salt without its trace says nothing
        file.unlink(missing_ok=True)
        raise
