"""One child process with a log file: started, watched for a line or a port, stopped or killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

POLL_SECONDS = 0.02
LOG_TAIL_LINES = 30


class ProcessError(Exception):
    """A process ended or stayed silent when it was expected to work; the message ends with its log."""


class ManagedProcess:
    """A process in a session of its own, so that signals reach its children too.

    `argv` is a list, never a shell line. `env` is added to the environment of this process.
    Output of both kinds goes to `log`, appended, so a restart keeps the earlier lines.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self.argv = [str(part) for part in argv]
        self.log = log
        self.env = dict(env or {})
        self.cwd = cwd
        self._child: subprocess.Popen[bytes] | None = None
        self._log_start_bytes = 0

    def start(self) -> ManagedProcess:
        """Start the process; `start` after its end starts a new one. Raises ProcessError if it runs."""
        if self.running:
            raise ProcessError(f"{self.name}: already running as pid {self.pid}")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._log_start_bytes = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.env},
                cwd=self.cwd,
                start_new_session=True,
            )
        return self

    @property
    def pid(self) -> int:
        """The process id of the running or last process. Raises ProcessError before the first start."""
        if self._child is None:
            raise ProcessError(f"{self.name}: was never started")
        return self._child.pid

    @property
    def running(self) -> bool:
        """True while the process has not ended."""
        return self._child is not None and self._child.poll() is None

    @property
    def returncode(self) -> int | None:
        """Exit status as subprocess gives it (-9 for SIGKILL); None while it runs or before a start."""
        return None if self._child is None else self._child.poll()

    def text(self) -> str:
        """What the current (or last) run has written so far."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as stream:
            stream.seek(self._log_start_bytes)
            return stream.read().decode(errors="replace")

    def tail(self) -> str:
        """The last lines of the log, for messages."""
        return "\n".join(self.text().splitlines()[-LOG_TAIL_LINES:])

    def wait_for(
        self, ready: Callable[[], bool], deadline_seconds: float, what: str = "to become ready"
    ) -> None:
        """Poll `ready` until true. Raises ProcessError at the deadline or when the process ends first."""
        end = time.monotonic() + deadline_seconds
        while True:
            if ready():
                return
            if not self.running:
                raise ProcessError(
                    f"{self.name}: ended with {self.returncode} while waiting for it {what}\n{self.tail()}"
                )
            if time.monotonic() > end:
                raise ProcessError(f"{self.name}: waited {deadline_seconds:g} s for it {what}\n{self.tail()}")
            time.sleep(POLL_SECONDS)

    def wait_for_line(self, pattern: str, deadline_seconds: float = 10) -> re.Match[str]:
        """Wait until the log of this run matches `pattern` (multi-line regexp) and return the match."""
        found: list[re.Match[str]] = []

        def seen() -> bool:
            match = re.search(pattern, self.text(), re.MULTILINE)
            if match:
                found.append(match)
            return bool(found)

        self.wait_for(seen, deadline_seconds, f"to write {pattern!r}")
        return found[0]

    def wait_for_port(self, port: int, address: str = "127.0.0.1", deadline_seconds: float = 10) -> None:
        """Wait until something accepts TCP connections at address:port."""
        self.wait_for(lambda: port_answers(port, address), deadline_seconds, f"to listen on {address}:{port}")

    def signal(self, number: int) -> None:
        """Send a signal to the process and its children; a process that has ended is left alone."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def wait(self, deadline_seconds: float) -> int:
        """Wait for the end and return the exit status. Raises ProcessError at the deadline."""
        if self._child is None:
            raise ProcessError(f"{self.name}: was never started")
        try:
            return self._child.wait(deadline_seconds)
        except subprocess.TimeoutExpired:
            raise ProcessError(
                f"{self.name}: still running {deadline_seconds:g} s later\n{self.tail()}"
            ) from None

    def terminate(self, deadline_seconds: float = 10) -> int | None:
        """SIGTERM, then SIGKILL at the deadline. Returns the exit status, None if never started."""
        if self._child is None:
            return None
        self.signal(signal.SIGTERM)
        try:
            return self._child.wait(deadline_seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int | None:
        """SIGKILL to the process and its children, and reap it."""
        if self._child is None:
            return None
        self.signal(signal.SIGKILL)
        return self._child.wait()

    def __enter__(self) -> ManagedProcess:
        if not self.running:
            self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.terminate()


def port_answers(port: int, address: str = "127.0.0.1") -> bool:
    """True when something accepts a TCP connection at address:port within a second."""
    try:
        with socket.create_connection((address, port), timeout=1):
            return True
    except OSError:
        return False
