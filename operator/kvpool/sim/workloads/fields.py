"""Fields of a trace's lines, checked: JSON objects and CSV cells as whole numbers, times and ids."""

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

from kvpool.sim.workloads.reading import LineError

MOST_TOKENS: Final = 100_000_000
"""Of one request: 100 times the longest context on offer; above it a field is not what it seems."""
MOST_SECONDS: Final = 10_000_000_000
"""317 years: times since 1970 pass, times in wrong units do not."""
NS_PER_SECOND: Final = 1_000_000_000
NS_PER_MS: Final = 1_000_000
SHORT: Final = 40
MOST_NAMED: Final = 12


def _no_number(constant: str) -> NoReturn:
    raise LineError(f"holds {constant}, which is no number")


_MOMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?\s?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DECODER: Final = json.JSONDecoder(parse_constant=_no_number)


def json_value(text: str) -> object:
    """Return what a line of JSON is; `LineError` says where it stops being one."""
    try:
        value: object = _DECODER.decode(text)
    except LineError:
        raise
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" starting at").removesuffix(" at")
        raise LineError(
            f"is not whole JSON: {what} at character {min(error.pos + 1, len(text))} of {len(text)}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise LineError(f"cannot be read as JSON: {error}") from None
    return value


def json_object(text: str) -> dict[str, Any]:
    """Return the JSON object that a line is; `LineError` if it is none."""
    record = json_value(text)
    if not isinstance(record, dict):
        raise LineError(f"is a JSON {_kind(record)}, and must be an object with the fields of one request")
    return record


def csv_cells(text: str) -> list[str]:
    """Return the cells of a CSV line, without blanks around them; `LineError` if it is none."""
    text = text.rstrip("\r\n")
    try:
        cells = next(csv.reader([text])) if '"' in text else text.split(",")
    except csv.Error as error:
        raise LineError(f"cannot be read as CSV: {error}") from None
    return [cell.strip() for cell in cells]


def csv_row(text: str, columns: Sequence[str]) -> dict[str, str]:
    """Return a line's cells by column; a line with more or fewer is cut or of another file."""
    cells = csv_cells(text)
    if len(cells) != len(columns):
        # What is taken for a header may be anything: no more of it is told than a header's names would be.
        names = ", ".join(column[:SHORT] for column in columns[:MOST_NAMED])
        raise LineError(f"has {len(cells)} columns, and the header has {len(columns)}: {names}")
    return dict(zip(columns, cells, strict=True))


def moment_ns(record: Mapping[str, Any], field: str) -> int:
    """Return a date with a time of day in nanoseconds since 1970; without a zone it is taken as UTC."""
    value = record.get(field)
    match = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise LineError(_lacking(field, value, "a date and time like 2023-11-16 18:17:03.9799600"))
    day, clock, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in (None, 'Z') else zone}")
    except ValueError as error:
        raise LineError(f"`{field}` is {shown(value)}: {error}") from None
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * NS_PER_SECOND + int((fraction or "").ljust(9, "0")[:9])


def tokens(record: Mapping[str, Any], field: str) -> int:
    """Return a number of tokens, 0 to `MOST_TOKENS`, from a JSON number or a CSV cell."""
    value = record.get(field)
    if type(value) is int and 0 <= value <= MOST_TOKENS:
        return value
    number = _number(field, value)
    if number != int(number):
        raise LineError(f"`{field}` is {shown(value)}, and must be a whole number of tokens")
    if not 0 <= number <= MOST_TOKENS:
        raise LineError(f"`{field}` is {shown(value)}, and must be from 0 to {MOST_TOKENS} tokens")
    return int(number)


def time_ns(record: Mapping[str, Any], field: str, unit_ns: int) -> int:
    """Return a time or duration in nanoseconds; the field is in units of `unit_ns`, and not negative."""
    value = record.get(field)
    number = value if type(value) is int else _number(field, value)
    if not 0 <= number * unit_ns <= MOST_SECONDS * NS_PER_SECOND:
        most = MOST_SECONDS * NS_PER_SECOND // unit_ns
        raise LineError(f"`{field}` is {shown(value)}, and must be a time from 0 to {most}")
    return round(number * unit_ns)


def whole_number(record: Mapping[str, Any], field: str) -> int:
    """Return a whole number of any size, as ids are."""
    value = record.get(field)
    if type(value) is not int:
        raise LineError(_lacking(field, value, "a whole number"))
    return value


def text_or_number(record: Mapping[str, Any], field: str) -> str:
    """Return an id that some write as text and some as a number; empty if it is not there."""
    value = record.get(field)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise LineError(f"`{field}` is {shown(value)}, and must be a text or a whole number")
    return str(value)


def whole_numbers(record: Mapping[str, Any], field: str) -> list[int]:
    """Return a list of whole numbers, as block ids are."""
    value = record.get(field)
    if not isinstance(value, list):
        raise LineError(_lacking(field, value, "a list of whole numbers"))
    if value and set(map(type, value)) != {int}:
        odd = next(each for each in value if type(each) is not int)
        raise LineError(f"`{field}` holds {shown(odd)}, and must hold whole numbers only")
    return value


def check_cover(
    blocks: int, prompt_tokens: int, block_tokens: int, field: str, length_field: str, remedy: str
) -> None:
    """Refuse ids that cannot be those of the prompt: neither its full blocks, nor those and a partial one."""
    full = prompt_tokens // block_tokens
    if full <= blocks <= -(-prompt_tokens // block_tokens):
        return
    fitting = round(prompt_tokens / blocks) if blocks else 0
    hint = f", which would fit {fitting} tokens a block" if fitting else ""
    raise LineError(
        f"`{field}` has {blocks} ids{hint}, and `{length_field}` {prompt_tokens} is {full} full blocks of "
        f"{block_tokens} tokens{remedy}"
    )


def _number(field: str, value: object) -> int | float:
    """Return a finite number from a JSON number or a CSV cell."""
    number: int | float
    if isinstance(value, str):
        try:
            number = int(value) if value.lstrip("+-").isdigit() else float(value)
        except ValueError:
            raise LineError(_lacking(field, value, "a number")) from None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    else:
        raise LineError(_lacking(field, value, "a number"))
    if isinstance(number, float) and not math.isfinite(number):
        raise LineError(f"`{field}` is {shown(value)}, and must be a finite number")
    return number


def _lacking(field: str, value: object, wanted: str) -> str:
    if value is None or value == "":
        return f"`{field}` is missing, and must be {wanted}"
    return f"`{field}` is {shown(value)}, and must be {wanted}"


def shown(value: object) -> str:
    """Return a value short enough for a message; longer texts by their length, as they may be private."""
    if isinstance(value, str) and len(value) > SHORT:
        return f"a text of {len(value)} characters"
    if isinstance(value, Sequence | Mapping) and not isinstance(value, str):
        return f"a {_kind(value)}"
    text = repr(value)
    return text if len(text) <= SHORT else f"{text[:SHORT]}... ({len(text)} digits)"


def _kind(value: object) -> str:
    names = {list: "list", dict: "object", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "number")
