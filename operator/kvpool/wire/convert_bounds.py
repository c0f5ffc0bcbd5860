"""Reading fields that others wrote: strings, lists and numbers have bounds, and clear errors beyond them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum
from typing import Final, TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

MAX_NAME: Final = 253
MAX_NAMESPACED_NAME: Final = 507
MAX_UID: Final = 64
MAX_ITEMS: Final = 64
"""Units, seats, devices, sources or engines of one node; the same as in the KVNode's schema."""
MAX_MEMBERS: Final = 1024
"""Nodes of one guard group."""
MAX_TEXT: Final = 512
MAX_INTEGER: Final = 2**63 - 1
"""Largest integer that the Kubernetes API can store."""


class MalformedError(ValueError):
    """A message that is not what the protocol allows; `field` is a path such as `units[2].name`."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


def identifier(field: str, value: str, limit: int = MAX_NAME, *, required: bool = False) -> str:
    """A name that decisions are made by: too long, or with control characters, is an error."""
    if len(value) > limit:
        raise MalformedError(field, f"has {len(value)} characters, at most {limit} are allowed")
    if not value.isprintable():
        raise MalformedError(field, f"{value[:32]!r} holds characters that cannot be printed")
    if required and not value:
        raise MalformedError(field, "is empty")
    return value


def text(value: str, limit: int = MAX_TEXT) -> str:
    """Words for people: shortened, and never an error."""
    return value if len(value) <= limit else value[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"


def count(field: str, value: int, limit: int = MAX_INTEGER) -> int:
    """A number from 0 to `limit`."""
    if not 0 <= value <= limit:
        raise MalformedError(field, f"{value} is not between 0 and {limit}")
    return value


def numa_node(field: str, value: int) -> int:
    """A NUMA node, or -1 for no placement."""
    if not -1 <= value <= 1023:
        raise MalformedError(field, f"{value} is not between -1 and 1023")
    return value


def seconds(field: str, value: float) -> float:
    """A finite, non-negative number of seconds."""
    if not (math.isfinite(value) and value >= 0):
        raise MalformedError(field, f"{value} is not a number of seconds")
    return value


def word(field: str, value: str, kind: type[E]) -> E:
    """A member of an enumeration, by its value."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(str(member.value) for member in kind)
        raise MalformedError(field, f"{value[:64]!r} is not one of {known}") from None


def one_of(field: str, value: str, allowed: Collection[str]) -> str:
    """A word of a closed set."""
    if value not in allowed:
        raise MalformedError(field, f"{value[:64]!r} is not one of {', '.join(allowed)}")
    return value


def items(
    field: str, values: Sequence[T] | Collection[T], limit: int = MAX_ITEMS
) -> Sequence[T] | Collection[T]:
    """A list of bounded length."""
    if len(values) > limit:
        raise MalformedError(field, f"has {len(values)} entries, at most {limit} are allowed")
    return values


def distinct(field: str, values: Iterable[T], key: Callable[[T], object]) -> None:
    """Refuse a list that names something twice."""
    seen: set[object] = set()
    for value in values:
        name = key(value)
        if name in seen:
            raise MalformedError(field, f"{name!r} is named twice")
        seen.add(name)


def moment(now: float, age_ms: int) -> float:
    """When something happened on the reader's monotonic clock, from its age at sending."""
    return now - age_ms / 1000
