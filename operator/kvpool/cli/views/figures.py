"""Figures as people read them: sizes, ages, and the moments they are counted from."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Final

from pydantic import JsonValue
from pydantic.alias_generators import to_camel

from kvpool.model.instant import Instant, parse_moment
from kvpool.plan.sizes import short_size

UNKNOWN: Final = "-"
_STEPS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"))


def size_text(size_bytes: int | None) -> str:
    """`64Gi`; a dash for what is not known."""
    return UNKNOWN if size_bytes is None else short_size(size_bytes)


def age_seconds(moment: str | None, now: Instant) -> float | None:
    """Seconds since a moment of an object; None when there is none, or it cannot be read."""
    if not moment:
        return None
    try:
        return max(0.0, (now.wall - parse_moment(moment)).total_seconds())
    except (TypeError, ValueError):
        return None


def age_text(seconds: float | None) -> str:
    """`4s`, `12m`, `3h`, `2d`; a dash for what is not known."""
    if seconds is None:
        return UNKNOWN
    for length, suffix in _STEPS:
        if seconds >= 2 * length:
            return f"{int(seconds // length)}{suffix}"
    return f"{int(seconds)}s"


def count_text(part: int, whole: int) -> str:
    """`3/4`."""
    return f"{part}/{whole}"


def joined(texts: Iterable[str], empty: str = UNKNOWN) -> str:
    """Join with commas; a dash for none."""
    return ", ".join(text for text in texts if text) or empty


def as_document(value: Mapping[str, object]) -> dict[str, JsonValue]:
    """Rows as JSON types: dataclasses become mappings with camelCase names, tuples become lists."""
    return {name: as_json(item) for name, item in value.items()}


def as_json(value: object) -> JsonValue:
    """One value as a JSON type."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {to_camel(field.name): as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return str(value)
