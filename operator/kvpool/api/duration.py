"""Durations as Kubernetes users write them: ``500ms``, ``60s``, ``5m``, ``24h``, ``1h30m``."""

import re
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from kvpool.api.schema import Cel

DURATION_PATTERN: Final = r"^([0-9]+(ms|s|m|h))+$"
_PART: Final = re.compile(r"(\d+)(ms|s|m|h)")
_TOO_FINE: Final = re.compile(r"^[0-9.]+(ns|us|\u00b5s|\u03bcs)$")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

_LONGEST: Final = 32

Duration = Annotated[str, Field(max_length=_LONGEST, pattern=DURATION_PATTERN)]


PositiveDuration = Annotated[
    Duration,
    Cel(
        f"!self.matches('{DURATION_PATTERN}') || duration(self) > duration('0s')",
        message_expression="'a duration must be above 0, not %s'.format([self])",
    ),
]


def parse_duration(text: str) -> float:
    """Return the seconds that ``text`` stands for.

    Raises:
        ValueError: when it is no duration, below 0, of a unit below the millisecond, or longer than
            the API takes.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"'{text[:_LONGEST]}...' has more than {_LONGEST} characters: write 5m or 1h30m")
    if not re.fullmatch(DURATION_PATTERN, text):
        raise ValueError(f"{text!r} {_fault(text)}: write 500ms, 60s, 5m or 1h30m")
    return sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def _read(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


SecondCount = Annotated[float, BeforeValidator(_read)]
"""A number of seconds, or a text that `parse_duration` reads."""


def _fault(text: str) -> str:
    """What is wrong with a text that is no duration."""
    if re.fullmatch(DURATION_PATTERN, text.removeprefix("-")):
        return "is below 0, and a duration is not"
    if _TOO_FINE.fullmatch(text):
        return "is too small, and the smallest unit is ms"
    if re.fullmatch(DURATION_PATTERN, text.replace(".", "")):
        return "has a fraction, and a duration is whole numbers of h, m, s and ms"
    return "is not a duration"
