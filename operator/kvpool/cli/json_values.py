"""What YAML can say and JSON, in which the API server is spoken to, cannot."""

import math
from datetime import date
from typing import Final

MOST_LEVELS: Final = 200
"""Of mappings and lists in each other; the client writes no more than 254."""
_INTEGERS: Final = range(-(2**63), 2**64)


def what_json_lacks(value: object, place: str = "", levels: int = MOST_LEVELS) -> str:
    """Say what within a value JSON has no form for, and where; empty when there is nothing of the kind.

    Dates are no fault: the client writes them as text.
    """
    named = place or "it"
    if isinstance(value, dict | list) and not levels:
        return f"{named[:60]}... is nested more than {MOST_LEVELS} levels deep"
    if isinstance(value, dict):
        for name, part in value.items():
            if not isinstance(name, str):
                return f"{named} has a key {name!r}, which is no text: write it in quotes"
            found = _not_utf8(name, f"a key of {named}") or what_json_lacks(
                part, f"{place}.{name}".removeprefix("."), levels - 1
            )
            if found:
                return found
        return ""
    if isinstance(value, list):
        parts = (what_json_lacks(part, f"{named}[{number}]", levels - 1) for number, part in enumerate(value))
        return next((found for found in parts if found), "")
    return _no_scalar(value, named)


def _no_scalar(value: object, place: str) -> str:
    if isinstance(value, str):
        return _not_utf8(value, place)
    if isinstance(value, float) and not math.isfinite(value):
        return f"{place} is {value}, which is no number of JSON"
    if isinstance(value, int) and value not in _INTEGERS:
        return f"{place} is a whole number of more than 64 bits: write one that can be, or text in quotes"
    if value is None or isinstance(value, bool | int | float | date):
        return ""
    return f"{place} is a {type(value).__name__}, which JSON does not have: write text, numbers or lists"


def _not_utf8(text: str, place: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{place} has half of a character in it (a surrogate): write the whole character"
    return ""
