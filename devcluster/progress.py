"""Progress of a long step: one line that is rewritten on a terminal, else a line every 15 seconds."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

QUIET_SECONDS = 15.0
REDRAW_SECONDS = 0.2
WIDEST = 100


class Progress:
    """Counts towards `total` (0: unknown) and shows percent and elapsed time."""

    def __init__(self, title: str, total: int = 0, stream: TextIO | None = None) -> None:
        self.title = title
        self.total = total
        self.done = 0
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._started = time.monotonic()
        self._shown = self._started if not self._terminal else 0.0

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since this step began."""
        return time.monotonic() - self._started

    def update(self, done: int, note: str = "") -> None:
        """Say how far it is; call as often as you like, it is shown as often as is good to read."""
        self.done = done
        if time.monotonic() - self._shown >= (REDRAW_SECONDS if self._terminal else QUIET_SECONDS):
            self._shown = time.monotonic()
            self._show(self._line(note, self._width()))

    def finish(self, note: str = "done") -> None:
        """The closing line."""
        self._show(f"{self.title}: {note} ({_clock(self.elapsed_seconds)})", last=True)

    def _width(self) -> int:
        """Columns of a line; one that is too long for a terminal would not be rewritten but left behind."""
        return min(WIDEST, shutil.get_terminal_size().columns - 1) if self._terminal else sys.maxsize

    def _line(self, note: str, width: int) -> str:
        if self.total:
            percent = 100 * min(self.done, self.total) // self.total
            count = f"{self.done}/{self.total} {percent:3d}%"
        else:
            count = str(self.done)
        figures = f": {count}  {_clock(self.elapsed_seconds)}"
        room = width - len(figures)
        title = self.title if len(self.title) <= room else f"{self.title[: room - 3]}..."
        return f"{title}{figures}  {note}".rstrip()[:width]

    def _show(self, line: str, last: bool = False) -> None:
        if self._terminal:
            end = "\n" if last else ""
            self._stream.write(f"\r\033[K{line}{end}")
        else:
            self._stream.write(line + "\n")
        self._stream.flush()


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
