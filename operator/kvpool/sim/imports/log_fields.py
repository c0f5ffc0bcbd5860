"""Where logs keep a request's fields: side by side, or inside `request`, `body`, `response` and such."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvpool.sim.workloads.fields import NS_PER_SECOND, moment_ns, shown
from kvpool.sim.workloads.reading import LineError

ENVELOPES: Final = (
    "request",
    "body",
    "requestBody",
    "input",
    "payload",
    "response",
    "output",
    "metadata",
    "attributes",
)
DEPTH: Final = 3
TIMES: Final = (
    "timestamp",
    "ts",
    "time",
    "@timestamp",
    "start_time",
    "startTime",
    "request_time",
    "request_timestamp",
    "created_at",
    "created",
)
LATEST_SECONDS: Final = 100_000_000_000
"""5138: numbers above it count smaller units than seconds."""


def layers(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a line's object and those inside its envelopes, outer ones first."""
    found: list[Mapping[str, Any]] = [record]
    seen = 0
    for _ in range(DEPTH):
        inner = [
            layer[name]
            for layer in found[seen:]
            for name in ENVELOPES
            if isinstance(layer.get(name), Mapping)
        ]
        seen = len(found)
        found += inner
    return found


def first(found: list[Mapping[str, Any]], *names: str) -> object:
    """Return the value of the first of the names that is in any layer and not null; None if there is none."""
    return next(values(found, *names), None)


def values(found: list[Mapping[str, Any]], *names: str) -> Iterator[object]:
    """Yield the values of names, by name and then by layer, that are not null."""
    for name in names:
        for layer in found:
            if layer.get(name) is not None:
                yield layer[name]


def arrival_ns(found: list[Mapping[str, Any]]) -> int:
    """Return when a request came, in nanoseconds since 1970 (or since whatever the log counts from).

    Numbers are seconds, or milli-, micro- or nanoseconds where seconds would be after the year 5138.
    """
    for name in TIMES:
        for layer in found:
            value = layer.get(name)
            if isinstance(value, str) and not _is_number(value):
                return moment_ns(layer, name)
            if value is not None and not isinstance(value, bool | Mapping | list):
                return _instant_ns(name, float(value) if isinstance(value, str) else value)
    raise LineError(f"has no time: none of {', '.join(TIMES)} is there")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _instant_ns(name: str, number: float) -> int:
    if (isinstance(number, float) and not math.isfinite(number)) or number < 0:
        raise LineError(f"`{name}` is {shown(number)}, and must be a time from 0")
    unit_ns = NS_PER_SECOND
    while unit_ns > 1 and number > LATEST_SECONDS * NS_PER_SECOND // unit_ns:
        unit_ns //= 1000
    if number > LATEST_SECONDS * NS_PER_SECOND:
        raise LineError(f"`{name}` is {shown(number)}, and must be a time")
    return round(number * unit_ns)
