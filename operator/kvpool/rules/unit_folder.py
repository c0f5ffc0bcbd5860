"""The name of a unit's folder on its node: the agent makes it, the keeper's pod is pointed to it."""

import hashlib
import re
from typing import Final

LONGEST_PLAIN_NAME: Final = 200


def unit_directory_name(unit: str, generation: int) -> str:
    """Return the name of a unit's folder, journal record and tmpfs label: `<unit>-g<generation>`.

    Characters other than letters, digits, `.`, `_` and `-` become `_`, and a name that was changed so, begins
    with a dot or is longer than 200 characters gets the first 16 hex digits of its SHA-256 appended, so that
    two units never share a directory.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", unit)
    if plain != unit or plain.startswith(".") or len(plain) > LONGEST_PLAIN_NAME:
        digest = hashlib.sha256(unit.encode()).hexdigest()[:16]
        plain = f"{plain[: LONGEST_PLAIN_NAME - 17].lstrip('.')}-{digest}"
    return f"{plain}-g{generation}"
