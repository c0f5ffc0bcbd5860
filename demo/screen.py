"""What a person sees: steps with their times, plain lines, tables, and what was expected."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH = 110


class Screen:
    """Writes to standard output; `broken` collects the expectations that did not hold."""

    def __init__(self) -> None:
        self._console = Console(width=WIDTH, highlight=False, soft_wrap=True)
        self._started = time.monotonic()
        self.broken: list[str] = []
        self.step_seconds: dict[str, float] = {}

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the demonstration began."""
        return time.monotonic() - self._started

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """A step of the scenario: its title before, its time after."""
        began = time.monotonic()
        self._console.print()
        self._console.rule(Text(f"{title}", style="bold"), align="left")
        yield
        took = self.step_seconds[title] = time.monotonic() - began
        self._console.print(f"[dim]{took:.1f} s, {self.elapsed_seconds:.0f} s in all[/dim]")

    def say(self, line: str) -> None:
        """One plain line."""
        self._console.print(line, markup=False)

    def note(self, line: str) -> None:
        """Something that a person should not miss, and that is nobody's fault."""
        self._console.print(Text(line, style="yellow"))

    def ran(self, command: Sequence[str], output: str) -> None:
        """A command as a person would type it, and what it said."""
        self._console.print(Text(f"$ {' '.join(command)}", style="cyan"))
        if output.strip():
            self._console.print(output.rstrip(), markup=False)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table; all but the first column are figures."""
        table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
        for index, column in enumerate(columns):
            table.add_column(column, justify="left" if index == 0 else "right", header_style="dim")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        self._console.print(table)

    def expect_within(self, seconds: float, most_seconds: float, text: str) -> None:
        """Say how long something took, and how long it may take.

        Times depend on what else the machine does: one that is over is shown as SLOW, and only one that is
        over twice makes the demonstration fail.
        """
        told = f"{text} {seconds:.2f} s, at most {most_seconds:g} s"
        if most_seconds < seconds <= 2 * most_seconds:
            self._console.print(Text(f"  SLOW  {told}", style="yellow"))
        else:
            self.expect(seconds <= most_seconds, told)

    def expect(self, holds: bool, text: str) -> None:
        """Say what was expected and whether it held; what did not makes the demonstration fail."""
        mark, style = ("ok", "green") if holds else ("NOT SO", "bold red")
        self._console.print(Text(f"{mark:>6}  {text}", style=style))
        if not holds:
            self.broken.append(text)


def size(byte_count: float) -> str:
    """Bytes for people: `48.0 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(byte_count) < 1024:
            return f"{byte_count:.0f} {unit}" if unit == "B" else f"{byte_count:.1f} {unit}"
        byte_count /= 1024
    return f"{byte_count:.1f} TiB"
