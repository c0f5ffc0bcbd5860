"""Prints screens: tables of at most 100 columns for people, JSON or YAML for programs."""

import json
from collections.abc import Mapping
from io import StringIO
from typing import Final

import yaml
from pydantic import JsonValue
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from kvpool.cli.options import Format
from kvpool.cli.screen import Lines, Screen, Section, Table

TABLE_COLUMNS: Final = 100
WIDE_COLUMNS: Final = 240


def render(screen: Screen, output: Format) -> str:
    """Return the text of a screen, without its last line end."""
    if output in (Format.JSON, Format.YAML):
        return render_document({**screen.document, "findings": [*screen.findings]}, output)
    width = WIDE_COLUMNS if output is Format.WIDE else TABLE_COLUMNS
    console = Console(file=StringIO(), width=width, color_system=None, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(as_renderable(screen, wide=output is Format.WIDE))
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))


def render_document(document: Mapping[str, JsonValue], output: Format) -> str:
    """Return a document as JSON or YAML."""
    if output is Format.JSON:
        return json.dumps(document, indent=2, ensure_ascii=False)
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True).rstrip("\n")


def as_renderable(screen: Screen, *, wide: bool) -> RenderableType:
    """Return what rich prints for a screen."""
    parts: list[RenderableType] = []
    sections: list[Section] = list(screen.sections)
    if screen.findings:
        sections.append(Lines("Findings", [f"! {finding}" for finding in screen.findings]))
    for section in sections:
        if parts:
            parts.append(Text(""))
        if section.title:
            parts.append(Text(section.title.upper()))
        parts.extend(_parts(section, wide=wide))
    return Group(*parts)


def _parts(section: Section, *, wide: bool) -> list[RenderableType]:
    if isinstance(section, Lines):
        return [Text(line, overflow="fold") for line in section.lines]
    parts: list[RenderableType] = [_table(section, wide=wide)] if section.rows else []
    if section.note:
        parts.append(Text(section.note, overflow="fold"))
    return parts


def _table(table: Table, *, wide: bool) -> RichTable:
    printed = RichTable(
        box=box.SIMPLE_HEAD, show_edge=False, show_lines=False, pad_edge=False, padding=(0, 1, 0, 0)
    )
    shown = [index for index, column in enumerate(table.columns) if wide or not column.wide]
    for index in shown:
        column = table.columns[index]
        printed.add_column(
            Text(column.name), justify="right" if column.right else "left", overflow="fold", no_wrap=False
        )
    for row in table.rows:
        printed.add_row(*(Text(row[index]) for index in shown))
    return printed
