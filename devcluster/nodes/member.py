"""A member of the cluster: its namespaces, held by a first process, and the programs started in them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from devcluster.nodes.first_process import Setup
from devcluster.process import ManagedProcess, ProcessError

NAMESPACES = ["--net", "--mount", "--pid", "--ipc", "--uts"]
START_SECONDS = 20.0
STOP_SECONDS = 10.0
RUN_SECONDS = 60.0


class Member:
    """Namespaces of its own for `name`; `folder` holds what is written about it (`log/`, set-up, pid).

    The folder must be one that the member's own mounts do not hide.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self._pid_file = folder / "pid"
        self._first: ManagedProcess | None = None
        self._programs: dict[str, ManagedProcess] = {}

    def start(
        self,
        memory: Mapping[str, str] | None = None,
        binds: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Make the namespaces and set them up as `Setup` says. Raises ProcessError."""
        if self.running:
            raise ProcessError(f"{self.name} is running")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._pid_file.unlink(missing_ok=True)
        setup = Setup(
            self.name, str(self._pid_file), dict(memory or {}), dict(binds or {}), dict(settings or {})
        )
        file = setup.write(self.folder / "setup.json")
        options = [*NAMESPACES, "--propagation", "private", "--fork", "--kill-child"]
        first: list[str | Path] = [sys.executable, "-m", "devcluster.nodes.first_process", file]
        self._first = self._process("first-process", ["unshare", *options, *first]).start()
        self._first.wait_for(self._pid_file.exists, START_SECONDS, "to be set up")

    @property
    def running(self) -> bool:
        """True while the namespaces are held."""
        return self._first is not None and self._first.running

    @property
    def pid(self) -> int:
        """The first process, as seen from here. Raises ProcessError when it is not running."""
        if not self.running:
            raise ProcessError(f"{self.name} is not running")
        return int(self._pid_file.read_text())

    @property
    def root(self) -> Path:
        """The member's file system, as a path that can be read from here."""
        return Path(f"/proc/{self.pid}/root")

    def enter(self, processes: bool = True) -> list[str]:
        """The start of a command line that runs the rest in the member.

        With `processes` it is a process of the member and ends with it; without, only files, network and host
        name are the member's, and signals sent to the command reach it directly.
        """
        kinds = ["--net", "--mount", "--ipc", "--uts", *(["--pid"] if processes else [])]
        return ["nsenter", f"--target={self.pid}", *kinds, "--"]

    def spawn(
        self,
        name: str,
        argv: Sequence[str | Path],
        env: Mapping[str, str] | None = None,
        processes: bool = True,
    ) -> ManagedProcess:
        """Start a program that runs on; it writes to `log/<name>.log`."""
        process = self._process(name, [*self.enter(processes), *argv], env).start()
        self._programs[name] = process
        return process

    def run(
        self, argv: Sequence[str | Path], input_text: str = "", deadline_seconds: float = RUN_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the member to its end. Raises subprocess.TimeoutExpired at the deadline."""
        return subprocess.run(
            [*self.enter(), *map(str, argv)],
            input=input_text,
            capture_output=True,
            text=True,
            timeout=deadline_seconds,
            check=False,
        )

    def end(self, program: str) -> None:
        """End one program that was spawned, at once. Raises KeyError when there is none of that name."""
        self._programs.pop(program).kill()

    def kill(self) -> None:
        """End every process of the member at once, with its mounts and links."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        for process in [self._first, *self._programs.values()]:
            if process is not None:
                process.kill()
        self._programs.clear()
        self._first = None

    def _process(
        self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None
    ) -> ManagedProcess:
        return ManagedProcess(f"{self.name}: {name}", argv, self.folder / "log" / f"{name}.log", env)
