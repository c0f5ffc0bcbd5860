"""A long command whose lines are progress, and whose last words are the error."""

from __future__ import annotations

import collections
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from devcluster.progress import Progress
from devcluster.toolchain import BuildError

LAST_LINES = 30


def run_shown(
    command: Sequence[str], title: str, deadline_seconds: float, folder: Path | None = None
) -> None:
    """Run it and show its lines as they come. Raises BuildError with the last of them."""
    progress = Progress(title)
    last: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
    count = 0
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        timer = threading.Timer(deadline_seconds, process.kill)
        timer.start()
        try:
            for line in process.stdout:
                count += 1
                last.append(line.rstrip())
                progress.update(count, last[-1])
            code = process.wait()
        finally:
            timer.cancel()
            process.kill()
    if code != 0:
        progress.finish("failed")
        raise BuildError(f"{title}: `{command[0]}` ended with {code}\n" + "\n".join(last))
    progress.finish()
