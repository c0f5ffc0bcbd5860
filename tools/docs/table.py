"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """The lines of a table; a bar or a line break within a cell is made harmless."""
    lines = [head, tuple("---" for _ in head), *rows]
    return [f"| {' | '.join(_cell(text) for text in line)} |" for line in lines]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")
