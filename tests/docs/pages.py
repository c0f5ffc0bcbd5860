"""Reads the documentation: its pages, their links, and what stands in code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(
    r"^(?P<mark>```|~~~)(?P<language>\S*).*?\n(?P<text>.*?)^(?P=mark)\s*$", re.MULTILINE | re.DOTALL
)
_INDENTED = re.compile(r"(?:^\n|\A)((?:    \S.*\n?(?:    .*\n?|\n(?=    ))*)+)", re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_TITLE = re.compile(r"^#{1,6}\s+(.*?)\s*$", re.MULTILINE)
_OUTSIDE = ("https://", "http://", "mailto:")


@dataclass(frozen=True)
class Fence:
    """A fenced block."""

    language: str
    text: str


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """Its path from the root of the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def fences(self) -> list[Fence]:
        """Its fenced blocks."""
        return [Fence(found["language"], found["text"]) for found in _FENCE.finditer(self.text)]

    @property
    def prose(self) -> str:
        """The text without fenced blocks."""
        return _FENCE.sub("", self.text)

    def links(self) -> Iterator[str]:
        """Targets of links within the repository."""
        for target in _LINK.findall(_SPAN.sub("", self.prose)):
            if not target.startswith(_OUTSIDE):
                yield target

    def anchors(self) -> frozenset[str]:
        """The anchors of its titles, as they are made from them."""
        return frozenset(
            re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _TITLE.findall(self.prose)
        )

    def section(self, title: str) -> str:
        """The text under the one title that begins so, up to the next title. Raises ValueError."""
        parts = _TITLE.split(self.prose)
        (found,) = [
            text for name, text in zip(parts[1::2], parts[2::2], strict=True) if name.startswith(title)
        ]
        return found

    def rows(self, title: str) -> list[list[str]]:
        """Cells of the table in a section, without its head."""
        lines = [line for line in self.section(title).splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]

    def commands(self) -> Iterator[str]:
        """Everything that stands in code: spans, indented lines, and lines of blocks that are not data."""
        yield from _SPAN.findall(self.prose)
        for block in _INDENTED.findall(self.prose):
            yield from (line.strip() for line in block.splitlines())
        for fence in self.fences:
            if fence.language in ("", "sh", "bash", "console"):
                yield from (line.strip() for line in fence.text.splitlines())


@cache
def pages() -> tuple[Page, ...]:
    """Every page that people read, in path order."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("[a-z]*/**/README.md")]
    written = {path for path in found if not path.is_relative_to(ROOT / "build")}
    return tuple(Page(path, path.read_text()) for path in sorted(written))
