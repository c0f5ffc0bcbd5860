"""What a verb has to say, before it is printed: tables and lines for people, a document for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    right: bool = False
    wide: bool = False
    """Shown with `-o wide` only."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under named columns; every row has one text for each column."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""
    """A line below, such as what is left out."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Plain lines under a title (empty: none)."""

    title: str
    lines: Sequence[str]


Section = Table | Lines


@dataclass(frozen=True, slots=True)
class Screen:
    """All that one verb answers."""

    sections: Sequence[Section]
    document: Mapping[str, JsonValue]
    """The same figures for programs: JSON types only, bytes as integers."""
    findings: Sequence[str] = field(default=())
    """What a person should look at; any makes the exit code 1."""
