"""Says which known word a misspelt one was probably meant to be, and where in a document it stands."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kvpool.plan.nearest_name import nearest_name

_QUOTED: Final = re.compile(r"'([^']*)'")
"""A known value, in the list that a message has."""
MOST_SHOWN: Final = 60
"""Characters of a wrong value."""
_BOUNDS: Final = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}
_WANTED: Final = (
    (("int_parsing", "int_type", "int_from_float"), "is no whole number: write digits alone"),
    (("int_parsing_size",), "has too many digits"),
    (("float_parsing", "float_type", "finite_number"), "is no number"),
    (("bool_parsing", "bool_type"), "is neither true nor false"),
    (("string_type",), "is no text: write it in quotes"),
    (("tuple_type", "list_type"), "is no list: write [...], or one entry a line after -"),
    (("model_type", "dict_type", "model_attributes_type"), "is no set of fields: write NAME: VALUE"),
)
"""By what pydantic calls a fault: what people should know of it."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'price'?` for `pric`, and nothing when no known word is near."""
    near = nearest_name(word, known)
    return f"; did you mean {near!r}?" if near else ""


def faults_of(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Return one line for each fault of a document that did not fit a model: where, what, what to write.

    `tiers[1].pric: no such field; did you mean 'price'?`
    """
    faults = error.errors()
    return [_told(model, fault) for fault in faults if not _only_follows(fault, faults)]


def _only_follows(fault: ErrorDetails, faults: Sequence[ErrorDetails]) -> bool:
    """Whether a list is said to be too short because the items that it has do not fit."""
    where = fault["loc"]
    return fault["type"] == "too_short" and any(
        other["loc"][: len(where)] == where and len(other["loc"]) > len(where) for other in faults
    )


def _told(model: type[BaseModel], fault: ErrorDetails) -> str:
    where, kind, message = fault["loc"], fault["type"], fault["msg"]
    place = path_of(where)
    if kind == "extra_forbidden":
        known = _fields_beside(model, where)
        near = suggestion(str(where[-1]), known)
        return f"{place}: no such field{near or '; known are ' + ', '.join(known)}"
    if kind == "missing":
        return f"{place}: is missing"
    if kind in ("enum", "literal_error"):
        known = _QUOTED.findall(fault["ctx"]["expected"])
        near = suggestion(str(fault["input"]), known)
        return f"{place}: no such value {fault['input']!r}{near or '; known are ' + ', '.join(known)}"
    return f"{place or 'the document'}: {_plain(fault) or message.removeprefix('Value error, ')}"


def _plain(fault: ErrorDetails) -> str:
    """The value and what it should be; empty when pydantic says it as well."""
    kind, limits = fault["type"], fault.get("ctx", {})
    if isinstance(fault["input"], float) and math.isnan(fault["input"]):
        kind = "finite_number"  # it is on no side of a bound
    if kind in _BOUNDS:
        words, limit = _BOUNDS[kind]
        return f"{_shown(fault['input'])} must be {words} {_digits(limits[limit])}"
    if kind == "too_short":
        return f"has {limits['actual_length']} entries, and needs {limits['min_length']} or more"
    if kind == "too_long":
        return f"has more than {limits['max_length']} entries, which is the most"
    wanted = next((words for kinds, words in _WANTED if kind in kinds), "")
    return f"{_shown(fault['input'])} {wanted}" if wanted else ""


def _digits(limit: float) -> str:
    """`1,000,000,000` and not `1e+09`."""
    return f"{limit:,}" if isinstance(limit, int) else f"{limit:,.16g}"


def _shown(value: object) -> str:
    """A value as people write it, the beginning of a long one."""
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def path_of(where: Sequence[int | str]) -> str:
    """Return `options[0].tiers[1].price` for the steps of a path."""
    text = ""
    for step in where:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def _fields_beside(model: type[BaseModel], where: Sequence[int | str]) -> list[str]:
    """Names that are known where the last step of the path stands."""
    candidates = [model]
    for step in where[:-1]:
        inner = [
            found
            for candidate in candidates
            for name, field in candidate.model_fields.items()
            if step in (name, field.alias)
            for found in _models_in(field.annotation)
        ]
        # An index, a key of a mapping or the tag of a union leads to no other model.
        candidates = inner or candidates
    return sorted(
        field.alias or name for candidate in candidates for name, field in candidate.model_fields.items()
    )


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in _models_in(part)]
