"""The one place that ends the process without ceremony.

A leader that may have lost its Lease must not run one more line that could write: no clean-up handlers, no
`finally`, no waiting for tasks. Everything else in kvpool ends by returning.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

EXIT_CODE = 70
"""Seen in the pod's last state: this exit was decided here."""

_STDERR = 2
_CHECK_SECONDS = 0.1


def hard_exit(reason: str) -> NoReturn:
    """Say why on standard error, if it takes the line without waiting, and end the process now."""
    with suppress(OSError):
        # A full pipe or a closed standard error must not keep a former leader alive.
        os.set_blocking(_STDERR, False)
        os.write(_STDERR, f"kvpool-operator: ending at once: {reason}\n".encode())
    os._exit(EXIT_CODE)


class DeadlineGuard:
    """Ends the process when a deadline passes that nobody moved, also while the event loop hangs.

    It is a thread, so that a blocked loop, or one just resumed after a stop, cannot outlive its Lease.
    """

    def __init__(
        self, clock: Callable[[], float], reason: str, *, end: Callable[[str], object] = hard_exit
    ) -> None:
        self._clock = clock
        self._reason = reason
        self._end = end
        self._deadline: float | None = None
        self._stopped = threading.Event()

    def move(self, deadline: float) -> None:
        """Set the deadline, in the clock's seconds; the first call starts the guard."""
        starts = self._deadline is None
        self._deadline = deadline
        if starts:
            threading.Thread(target=self._watch, name="lease-deadline", daemon=True).start()

    def stop(self) -> None:
        """Guard no more."""
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(_CHECK_SECONDS):
            if self._deadline is not None and self._clock() > self._deadline:
                self._end(self._reason)
                return
