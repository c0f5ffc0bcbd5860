"""Faults that are put into the code, each with the test that has to notice it."""

# ruff: noqa: ANN401 - a mutant replaces functions of any signature

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Mutant:
    """A fault: `target.name` becomes `wrong(right)`; `killer` is the test that must fail."""

    fault: str
    target: Any
    name: str
    wrong: Callable[[Any], Any]
    killer: Callable[[], None]


def always(value: Any) -> Callable[[Any], Any]:
    return lambda _right: lambda *_args, **_kwargs: value


def instead(wrong: Any) -> Callable[[Any], Any]:
    return lambda _right: wrong


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    right = getattr(mutant.target, mutant.name)
    setattr(mutant.target, mutant.name, mutant.wrong(right))
    try:
        yield
    finally:
        setattr(mutant.target, mutant.name, right)


def notice(mutant: Mutant) -> None:
    """The test passes, and fails once the fault is there: also by an error or a refusal that stays away."""
    mutant.killer()
    with planted(mutant), pytest.raises((AssertionError, ValueError, pytest.fail.Exception)):
        mutant.killer()
