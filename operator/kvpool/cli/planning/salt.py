"""The salt of an import: read from a file, or made and kept in a file that only its owner can read."""

import os
import secrets
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


def kept_salt(file: Path) -> tuple[bytes, bool]:
    """Return the salt in a file and whether it was made now, with no rights for others. Raises CliError."""
    if file.exists():
        return salt_from(file), False
    salt = secrets.token_bytes(FRESH_BYTES)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(salt)
    except OSError as error:
        raise CliError(f"the salt {file} cannot be written: {error.strerror or error}") from None
    return salt, True
