"""``python -m benchmarks``: measure, and print; nothing is judged by time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from benchmarks import measures, planner


def main() -> None:
    """Print every measurement as soon as its part is done."""
    console = Console()
    console.print("Times of one run on this machine (CPU time, but for writing). Compare the ratios.")
    show(console, "Facts", measures.events())
    show(console, "Planning", measures.planning())
    show(console, "Rules of the planner", planner.answers())
    show(console, "Writing", asyncio.run(measures.applies()))


def show(console: Console, title: str, rows: Iterable[measures.Row]) -> None:
    """Print one part."""
    table = Table(title=title, title_justify="left", box=None)
    table.add_column("what")
    table.add_column("ms", justify="right")
    table.add_column("compared")
    for row in rows:
        table.add_row(row.what, f"{1000 * row.seconds:,.2f}" if row.seconds else "-", row.compared)
    console.print()
    console.print(table)


if __name__ == "__main__":
    main()
