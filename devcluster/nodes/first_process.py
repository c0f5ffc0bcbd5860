"""The first process of a member: makes its mounts private, says that it is up, then only reaps orphans.

Started by `devcluster.nodes.member` in new namespaces; when it ends, the kernel ends all the rest. Its one
argument is a file with what to do (`Setup` as JSON).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

SETUP_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Setup:
    """What a member is made of.

    `memory` maps folders to the options of the tmpfs they get, `binds` maps what is seen in the member to
    what lies there really, `settings` are sysctls (set where the kernel has them). `pid_file` gets the
    process id as it is seen outside, once all is done.
    """

    hostname: str
    pid_file: str
    memory: dict[str, str] = field(default_factory=dict)
    binds: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        """Write it for the first process."""
        path.write_text(json.dumps(asdict(self)))
        return path


def set_up(setup: Setup) -> None:
    """Mount and set everything. Raises CalledProcessError or OSError."""
    _do("mount", "--make-rshared", "/")  # mounts made in pods reach the node, and the node's reach pods
    _do("mount", "-t", "proc", "proc", "/proc")
    for seen, real in setup.binds.items():
        _do("mount", "--bind", real, seen)
    for folder, options in setup.memory.items():
        _do("mount", "-t", "tmpfs", "-o", options, "tmpfs", folder)
    for name, value in setup.settings.items():
        path = Path("/proc/sys", *name.split("."))
        if path.exists():
            path.write_text(value)
    _do("hostname", setup.hostname)
    _do("ip", "link", "set", "lo", "up")


def _do(*command: str) -> None:
    subprocess.run(command, check=True, timeout=SETUP_SECONDS)


def main() -> None:
    """Set up, then become a program that only waits: with SIGCHLD ignored the kernel reaps every orphan."""
    seen_outside = Path("/proc/self").readlink()  # /proc is still the one of the sandbox
    setup = Setup(**json.loads(Path(sys.argv[1]).read_text()))
    pid_file = Path(setup.pid_file)
    set_up(setup)
    partial = pid_file.with_suffix(".partial")
    partial.write_text(str(seen_outside))
    partial.rename(pid_file)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.execvp("sleep", ["sleep", "infinity"])


if __name__ == "__main__":
    main()
