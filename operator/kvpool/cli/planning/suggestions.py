"""Says which known word a misspelt one was probably meant to be, and where in a document it stands."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kvpool.plan.nearest_name import nearest_name

_QUOTED: Final = re.compile(r"'([^']*)'")
"""A known value, in the list that a message has."""


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
    return f"{place or 'the document'}: {message.removeprefix('Value error, ')}"


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
