"""A long command whose lines are progress, and whose last words are the error."""

from __future__ import annotations

import collections
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from devcluster.build_faults import told_of
from devcluster.progress import Progress
from devcluster.toolchain import BuildError

LAST_LINES = 30
GRACE_SECONDS = 10
"""From the request to end until the end that no program can refuse: debootstrap unmounts what it mounted."""


def run_shown(
    command: Sequence[str], title: str, deadline_seconds: float, folder: Path | None = None
) -> None:
    """Run it and show its lines as they come. Raises BuildError with the last of them.

    At the deadline it is ended together with all that it started.
    """
    progress = Progress(title)
    last: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
    count = 0
    late = threading.Event()
    with (
        told_of(title),
        subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout is not None
        timers = _ended_at(process, deadline_seconds, late)
        try:
            for line in process.stdout:
                count += 1
                last.append(line.rstrip())
                progress.update(count, last[-1])
            code = process.wait()
        finally:
            for timer in timers:
                timer.cancel()
            _end(process)
    if code != 0:
        progress.finish("failed")
        how = f"was not done within {deadline_seconds:g} s" if late.is_set() else f"ended with {code}"
        raise BuildError("\n".join([f"{title}: `{command[0]}` {how}", *last]))
    progress.finish()


def _ended_at(
    process: subprocess.Popen[str], deadline_seconds: float, late: threading.Event
) -> list[threading.Timer]:
    """Start what ends the process and its children at the deadline; sets `late` when that happens."""

    def give_up() -> None:
        late.set()
        _signal(process, signal.SIGTERM)

    timers = [
        threading.Timer(deadline_seconds, give_up),
        threading.Timer(deadline_seconds + GRACE_SECONDS, _signal, (process, signal.SIGKILL)),
    ]
    for timer in timers:
        timer.start()
    return timers


def _end(process: subprocess.Popen[str]) -> None:
    """End it, and all that it started, if it still runs: somebody pressed Ctrl-C."""
    if process.poll() is not None:
        return
    _signal(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_SECONDS)
    _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[str], number: int) -> None:
    # Whether it has ended already makes no difference: what it started may still hold its output open.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
