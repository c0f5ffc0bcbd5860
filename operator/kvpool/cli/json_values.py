"""What YAML can say and JSON, in which the API server is spoken to, cannot."""

import math
from datetime import date


def what_json_lacks(value: object, place: str = "it") -> str:
    """Say what within a value JSON has no form for, and where; empty when there is nothing of the kind.

    Dates are no fault: the client writes them as text.
    """
    if isinstance(value, dict):
        for name, part in value.items():
            if not isinstance(name, str):
                return f"{place} has a key {name!r}, which is no text: write it in quotes"
            found = what_json_lacks(part, name if place == "it" else f"{place}.{name}")
            if found:
                return found
        return ""
    if isinstance(value, list):
        parts = (what_json_lacks(part, f"{place}[{number}]") for number, part in enumerate(value))
        return next((found for found in parts if found), "")
    if isinstance(value, str):
        return _not_utf8(value, place)
    if isinstance(value, float) and not math.isfinite(value):
        return f"{place} is {value}, which is no number of JSON"
    if value is None or isinstance(value, bool | int | float | date):
        return ""
    return f"{place} is a {type(value).__name__}, which JSON does not have: write text, numbers or lists"


def _not_utf8(text: str, place: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{place} has half of a character in it (a surrogate): write the whole character"
    return ""
